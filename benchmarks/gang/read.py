"""A gang-placement case is read leniently: fields that are absent or null take their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import Any

from benchmarks.gang.case import (
    Case,
    Counts,
    Gang,
    Host,
    Job,
    Limit,
    Reserve,
    Running,
    Slice,
    Spread,
    Together,
)
from benchmarks.gang.tree import planted

FORM: Mapping[str, frozenset[str]] = {
    where: frozenset(names.split())
    for where, names in {
        "": "id name source levels nodes gangs co_locate limits reserve running jobs peer_policy expected truth "
        "artefact artefact_why unhealthy_nodes",
        "nodes": "name domain free used labels taints",
        "gangs": "name pods per_pod topology slices eligible_nodes excluded_nodes pinned previous lost min_pods "
        "max_per_node prefer_nodes spread node_selector tolerations labels policy subgroup subgroup_policy "
        "group",
        "topology": "required preferred",
        "slices": "level size",
        "spread": "level max",
        "co_locate": "gangs required preferred distinct min_pods optional min_subgroups name",
        "limits": "gangs resource max_new queues name",
        "reserve": "level count tenant name",
        "running": "name on per_pod movable evictable priority queue eligible_nodes job labels",
        "jobs": "name gangs co_locate",
    }.items()
}


class Unreadable(Exception):
    """A case that says nothing that could be planned; the message says where."""


def strange_fields(raw: Any, where: str = "") -> tuple[str, ...]:
    """Return the fields of a case that the form does not have and that nothing here reads, by path, each once."""
    if isinstance(raw, list):
        return tuple(dict.fromkeys(path for each in raw for path in strange_fields(each, where)))
    if not isinstance(raw, Mapping):
        return ()
    found = [key for key, value in raw.items() if key not in FORM[where] and value not in (None, [], {})]
    inner = [key for key in raw if key in FORM and key != where and key in FORM[where]]
    return (*found, *(f"{key}.{path}" for key in inner for path in strange_fields(raw[key], key)))


def read_case(raw: Mapping[str, Any]) -> Case:
    """Return a case, or raise `Unreadable`."""
    try:
        return _case(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def _case(raw: Mapping[str, Any]) -> Case:
    jobs = _apart(_list(raw, "jobs"), {str(each["name"]): each for each in _list(raw, "gangs")})
    inside = [gang for job in jobs for gang in _inline(job)]
    sets = [*_list(raw, "co_locate"), *(each for job in jobs for each in _list(job, "co_locate"))]
    levels = tuple(raw.get("levels") or ())
    nodes = tuple(_host(each) for each in _list(raw, "nodes"))
    known = frozenset(node.name for node in nodes)
    told = [*_list(raw, "gangs"), *inside]
    together = tuple(_together(each) for each in sets)
    counted = _counted({str(each["name"]): each.get("min_pods") for each in told}, together)
    gangs = tuple(_gang(each, known, alone=str(each["name"]) not in counted) for each in told)
    case = Case(
        id=str(raw.get("id")),
        levels=levels,
        nodes=planted(levels, nodes),
        gangs=gangs,
        sets=together,
        limits=tuple(_limit(each) for each in _list(raw, "limits") if each.get("max_new") is not None),
        reserve=_reserves(_list(raw, "reserve")),
        running=_distinct([_running(each, i, known) for i, each in enumerate(_list(raw, "running"))], gangs),
        jobs=tuple(_job(each) for each in jobs),
        raw=raw,
    )
    _check_names(case)
    return case


def _check_names(case: Case) -> None:
    for what, names in (("node", [n.name for n in case.nodes]), ("gang", [g.name for g in case.gangs])):
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise Unreadable(f"{what} {twice[0]!r} is there twice")
    known = {gang.name for gang in case.gangs}
    for listed in case.lists:
        strangers = sorted(set(listed) - known)
        if strangers:
            raise Unreadable(f"there is no gang {strangers[0]!r}")


def _list(raw: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = raw.get(key)
    if isinstance(found, Mapping) and key not in {"gangs"}:
        return [found]
    return found or []


def _counts(raw: Mapping[str, Any], key: str) -> Counts:
    found = raw.get(key)
    if isinstance(found, list):  # one entry per pod
        return {str(name): found.count(name) for name in found}
    return {str(name): _whole(key, amount) for name, amount in (found or {}).items() if amount is not None}


def _whole(key: str, amount: Any) -> int:
    """Return an amount, which is a whole number; one that is not would be cut to less."""
    if isinstance(amount, float) and not amount.is_integer():
        raise Unreadable(f"{key} has {amount}, and amounts are whole numbers")
    return int(amount)


def _nodes(raw: Mapping[str, Any], key: str) -> frozenset[str] | None:
    found = raw.get(key)
    return None if found is None else frozenset(map(str, found))


def _host(raw: Mapping[str, Any]) -> Host:
    domain = {str(level): str(path) for level, path in (raw.get("domain") or {}).items() if path is not None}
    return Host(str(raw["name"]), domain, _counts(raw, "free"), _counts(raw, "used"))


def _gang(raw: Mapping[str, Any], nodes: frozenset[str], *, alone: bool) -> Gang:
    """Return a gang; one that is not `alone` is counted with its set."""
    topology = {key: str(level) for key, level in (raw.get("topology") or {}).items() if level is not None}
    pods, least = int(raw["pods"]), raw.get("min_pods")
    known = [str(raw[key]) for key in ("policy", "subgroup", "subgroup_policy", "group") if raw.get(key)]
    return Gang(
        name=str(raw["name"]),
        pods=pods,
        least=(pods if least is None else min(pods, int(least))) if alone else 0,
        per_pod={name: amount for name, amount in _counts(raw, "per_pod").items() if amount},
        required=topology.get("required"),
        slices=tuple(Slice(str(each["level"]), int(each["size"])) for each in _list(raw, "slices")),
        eligible=_nodes(raw, "eligible_nodes"),
        excluded=_nodes(raw, "excluded_nodes") or frozenset(),
        pinned=_left(raw, "pinned", nodes),
        previous=_left(raw, "previous", nodes),
        max_per_node=_optional(raw, "max_per_node"),
        prefer_nodes=_weights(raw.get("prefer_nodes") or {}),
        spread=tuple(_spread(each) for each in _list(raw, "spread") if each.get("max") is not None),
        topology=topology,
        labels=frozenset(known),
        lost=frozenset(_positive(raw, "lost")),
    )


def _weights(raw: Mapping[str, Any] | Iterable[str]) -> Counts:
    """Return what nodes are worth as whole numbers, in thousandths where not all are whole."""
    listed = raw if isinstance(raw, Mapping) else dict.fromkeys(raw, 1)
    found = {str(node): float(weight) for node, weight in listed.items() if weight is not None}
    scale = 1 if all(map(float.is_integer, found.values())) else 1000
    return {node: round(weight * scale) for node, weight in found.items()}


def _spread(raw: Mapping[str, Any]) -> Spread:
    return Spread(str(raw["level"]), int(raw["max"]))


def _positive(raw: Mapping[str, Any], key: str) -> Counts:
    return {node: count for node, count in _counts(raw, key).items() if count > 0}


def _left(raw: Mapping[str, Any], key: str, nodes: frozenset[str]) -> Counts:
    """Return earlier pods that are left: not those that were lost, nor those on nodes that are gone."""
    lost, before = _positive(raw, "lost"), _positive(raw, key)
    left = {node: count - lost.get(node, 0) for node, count in before.items() if node in nodes}
    return {node: count for node, count in left.items() if count > 0}


def _optional(raw: Mapping[str, Any], key: str) -> int | None:
    return None if raw.get(key) is None else int(raw[key])


def _together(raw: Mapping[str, Any]) -> Together:
    return Together(
        gangs=tuple(map(str, raw["gangs"])),
        required=raw.get("required"),
        preferred=raw.get("preferred"),
        distinct=raw.get("distinct"),
        min_pods=_optional(raw, "min_pods"),
        optional=bool(raw.get("optional")),
        min_subgroups=_counts(raw, "min_subgroups"),
    )


def _counted(least: Mapping[str, Any], sets: Iterable[Together]) -> frozenset[str]:
    """Return the gangs of which any number will do, as their sets count pods in all.

    What a gang needs by itself, it needs wherever its set is there, unless the set needs less than its gangs do.
    """
    found: set[str] = set()
    for each in sets:
        own = {name: int(least[name]) for name in each.gangs if least.get(name) is not None}
        if each.min_pods is not None:
            found |= set(each.gangs) - (own.keys() if each.min_pods >= sum(own.values()) else set())
    return frozenset(found.difference(*(each.gangs for each in sets if each.atomic)))


def _limit(raw: Mapping[str, Any]) -> Limit:
    queues = raw.get("queues") or ()
    listed = (queues,) if isinstance(queues, str) else queues
    return Limit(tuple(map(str, raw["gangs"])), str(raw["resource"]), int(raw["max_new"]), tuple(map(str, listed)))


def _reserves(raw: Iterable[Mapping[str, Any]]) -> tuple[Reserve, ...]:
    """Return one per level: what is left to one tenant is not left to another."""
    counts: dict[str, int] = {}
    for each in raw:
        level, amount = str(each["level"]), each.get("count")
        counts[level] = counts.get(level, 0) + (1 if amount is None else max(0, int(amount)))
    return tuple(Reserve(level, amount) for level, amount in counts.items())


def _running(raw: Mapping[str, Any], index: int, nodes: frozenset[str]) -> Running:
    """Return running pods, those on nodes that are not there left out."""
    return Running(
        name=str(raw.get("name") or f"running-{index}"),
        on={node: pods for node, pods in _positive(raw, "on").items() if node in nodes},
        per_pod={name: amount for name, amount in _counts(raw, "per_pod").items() if amount},
        movable=bool(raw.get("movable")),
        evictable=bool(raw.get("evictable")),
        priority=int(raw.get("priority") or 0),
        queue=str(raw.get("queue") or ""),
        eligible=_nodes(raw, "eligible_nodes"),
    )


def _distinct(running: Sequence[Running], gangs: Iterable[Gang]) -> tuple[Running, ...]:
    """Return running pods with names of their own: the second of a name has its number behind it, and so on.

    So does the name of a gang, which is told without it.
    """
    called = _numbered([each.name for each in running], [])
    names = _numbered(called, [gang.name for gang in gangs])
    trios = zip(running, names, called, strict=True)
    return tuple(replace(each, name=name, called=own) for each, name, own in trios)


def _numbered(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Return distinct names: the first of a name keeps it, unless it is taken."""
    found: list[str] = []
    used = {*taken}
    for name in names:
        others = (f"{name}-{number}" for number in count(2))
        free = chain([name], (each for each in others if each not in names))
        found.append(next(each for each in free if each not in used))
        used.add(found[-1])
    return found


def _apart(jobs: Sequence[Mapping[str, Any]], gangs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return named jobs whose own gangs have names that no others have: the job's name stands before them if need be.

    A gang that a job tells of just as the case does outside all jobs is that one.
    """
    called = [str(job.get("name") or f"job-{index}") for index, job in enumerate(jobs)]
    told = [{**job, "gangs": [_known(each, gangs) for each in job["gangs"]]} for job in jobs]
    own = [{str(each["name"]) for each in _inline(job)} for job in told]
    found: list[Mapping[str, Any]] = []
    for index, (job, before) in enumerate(zip(told, _numbered(called, []), strict=True)):
        others = {*gangs, *chain.from_iterable(own[:index] + own[index + 1 :])}
        new = {name: f"{before}/{name}" for name in own[index] & others}
        found.append({**_renamed(job, new), "name": called[index]})
    return found


def _known(told: Any, gangs: Mapping[str, Any]) -> Any:
    """Return the name of a gang that is told just so outside all jobs, anything else as it is."""
    return str(told["name"]) if isinstance(told, Mapping) and gangs.get(str(told["name"])) == told else told


def _inline(job: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [each for each in job["gangs"] if isinstance(each, Mapping)]


def _renamed(job: Mapping[str, Any], new: Mapping[str, str]) -> Mapping[str, Any]:
    """Return a job with some of its own gangs renamed, in its sets too."""
    gangs = [{**e, "name": new.get(str(e["name"]), e["name"])} if isinstance(e, Mapping) else e for e in job["gangs"]]
    sets = [{**each, "gangs": [new.get(str(g), g) for g in each["gangs"]]} for each in _list(job, "co_locate")]
    return {**job, "gangs": gangs, "co_locate": sets}


def _job(raw: Mapping[str, Any]) -> Job:
    gangs = (each["name"] if isinstance(each, Mapping) else each for each in raw["gangs"])
    return Job(str(raw["name"]), tuple(map(str, gangs)))
