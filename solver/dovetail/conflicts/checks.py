"""The checks, each from facts to what cannot be; `TABLE` lists them.

A check finds what no placement can keep, however large the cluster's other parts are. It takes the admission of
`facts.needed` as given.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final, TypeVar

from dovetail.conflicts.facts import Facts
from dovetail.quantities import counted
from dovetail.rules import Apart, Cap, Claims, Crowd, Together
from dovetail.rules.claims import Short
from dovetail.rules.quota import requested_of
from dovetail.spec import Node, Role, Workload
from dovetail.spec.cluster import GPU_LEVEL
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Found:
    """What cannot be: about which workloads, by which policies (perhaps more than it takes), and why."""

    workloads: tuple[str, ...]
    policies: frozenset[str]
    why: str


Check = Callable[[Facts], Iterator[Found]]
LevelClaim = TypeVar("LevelClaim", Apart, Crowd)


def nowhere(facts: Facts) -> Iterator[Found]:
    """A role that has to run, and no node that is open to it could host one replica even if empty."""
    for workload in facts.needed.values():
        for role in workload.roles:
            if role.replicas and not facts.hosts(workload, role):
                policies = frozenset((*facts.demanding(workload), *facts.closing(workload)))
                yield Found((workload.id,), policies, f"no node is left that can host {_named(workload, role)}")


def barred(facts: Facts) -> Iterator[Found]:
    """A workload, no replica of which any open node could host: not even a part of it is ever admitted."""
    for workload in facts.needed.values():
        if not facts.hosts(workload):
            yield Found(
                (workload.id,), _involved(facts, (workload.id,)), f"no node is left that can host {workload.id}"
            )


def lost_for_good(facts: Facts) -> Iterator[Found]:
    """A workload that has to survive failures, and could restart on no node, whatever else there is."""
    for name in sorted(facts.names & facts.ground.claims.keys()):
        for workload in facts.ground.claims[name].barred:
            if workload.id in facts.needed and facts.hosts(workload):
                why = f"no replica of {workload.id} could restart after a failure that '{name}' lets it survive"
                yield Found((workload.id,), _demanding(facts, (workload.id,)) | {name}, why)


def too_few_gpus(facts: Facts) -> Iterator[Found]:
    """More whole GPUs have to be given out than the nodes have that are open to those who ask for them."""
    asked: dict[frozenset[str], list[tuple[Workload, Role]]] = {}
    for workload in facts.needed.values():
        for role in workload.roles:
            if role.replicas and role.request.gpus:
                asked.setdefault(facts.hosts(workload, role), []).append((workload, role))
    nodes = facts.ground.spec.cluster.by_name
    for hosts, roles in asked.items():
        wanted = sum(role.replicas * role.request.gpus for _, role in roles)
        there = sum(len(nodes[name].healthy_gpus()) for name in hosts)
        if hosts and wanted > there:
            workloads = tuple(dict.fromkeys(workload.id for workload, _ in roles))
            why = f"{_some(workloads)} {_need(workloads)} {wanted:,} GPUs, and the open nodes have {there:,}"
            yield Found(workloads, _involved(facts, workloads), why)
    for workload in facts.needed.values():
        yield from _too_narrow(facts, workload, nodes)


def _too_narrow(facts: Facts, workload: Workload, nodes: Mapping[str, Node]) -> Iterator[Found]:
    for role in workload.roles:
        if role.replicas and role.request.gpus > 1 and (hosts := facts.hosts(workload, role)):
            room = sum(len(nodes[name].healthy_gpus()) // role.request.gpus for name in hosts)
            if room < role.replicas:
                why = (
                    f"the open nodes have room for {room:,} of {role.replicas:,} replicas of {_role(workload, role)} "
                    f"with {role.request.gpus} GPUs each"
                )
                yield Found((workload.id,), _involved(facts, (workload.id,)), why)


def beside_reserves(facts: Facts) -> Iterator[Found]:
    """What has to run and what is held free ask for more whole GPUs than the cluster has."""
    claims = facts.ground.claims
    names = [n for n in sorted(facts.names & claims.keys()) if claims[n].places or claims[n].domains]
    names = [name for name in names if not facts.ground.excused(name)]
    # Places are apart from each other and from untouched domains; the same domain may count for several policies.
    held = sum(claims[name].places for name in names) + max((claims[name].domains for name in names), default=0)
    gpus = {w.id: sum(role.replicas * role.request.gpus for role in w.roles) for w in facts.needed.values()}
    there = sum(len(node.healthy_gpus()) for node in facts.ground.spec.cluster.nodes)
    wanted = sum(gpus.values())
    if names and wanted + held > there:
        ids = tuple(name for name, count in gpus.items() if count)
        asks = f"{_some(ids)} {_need(ids)} {wanted:,} GPUs, " if ids else ""
        why = f"{asks}{held:,} are held free, and the cluster has {there:,}"
        yield Found(ids, _demanding(facts, ids) | frozenset(names), why)


def never_free(facts: Facts) -> Iterator[Found]:
    """More is held free than there would be if nothing ran."""
    for name in sorted(facts.names & facts.ground.claims.keys()):
        short = facts.ground.claims[name].short
        if short is not None and not facts.ground.excused(name):
            yield Found((), frozenset({name}), told_short(short))


def told_short(short: Short) -> str:
    """Return what is to be held free and what there would be in an empty cluster."""
    return f"{short.wanted:,} {short.unit} are held free, and an empty cluster has {short.there:,}"


def over_a_cap(facts: Facts) -> Iterator[Found]:
    """What has to be admitted asks for more than a limit of amounts."""
    told = {(name, cap.subject): cap for w in facts.needed for name, cap in facts.ground.caps.get(w, ())}
    for (name, subject), cap in sorted(told.items(), key=lambda item: item[0]):
        members = [workload for workload in cap.workloads if workload.id in facts.needed]
        wanted = sum(_asked(workload, cap.resource) for workload in members)
        if name in facts.names and wanted > cap.limit + facts.ground.excused(name).get(subject, 0):
            ids = tuple(workload.id for workload in members if _asked(workload, cap.resource))
            amounts = f"{_amount(cap, wanted)}, and '{subject.rpartition('/')[0]}' may hold {_amount(cap, cap.limit)}"
            yield Found(ids, _demanding(facts, ids) | {name}, f"{_some(ids)} {_need(ids)} {amounts}")


def crowded(facts: Facts) -> Iterator[Found]:
    """More replicas have to run than a limit per domain lets into the domains that are open to them."""
    for name in sorted(facts.names & facts.ground.claims.keys()):
        crowd = facts.ground.claims[name].crowd
        for workload in facts.needed.values() if crowd is not None else ():
            paths = facts.paths(workload, crowd.level) if crowd and facts.covers(name, workload) else None
            if crowd is not None and paths is not None and workload.replicas > crowd.most * len(paths):
                why = (
                    f"{crowd.most:,} per {crowd.level} in {counted(len(paths), 'domains')} make "
                    f"{crowd.most * len(paths):,}, and {workload.id} has {workload.replicas:,} replicas"
                )
                yield Found((workload.id,), _involved(facts, (workload.id,)) | {name}, why)


def too_many_sides(facts: Facts) -> Iterator[Found]:
    """Work of more sides has to run apart than there are domains for them."""
    for name in sorted(facts.names & facts.ground.claims.keys()):
        apart = facts.ground.claims[name].apart
        if apart is None or apart.level == GPU_LEVEL or facts.ground.excused(name):
            continue
        sides, paths = _sides_of(facts, name, apart)
        needed = sum(sides.values())
        if len(sides) > 1 and needed > len(paths):
            ids = tuple(w for w in facts.needed if w in apart.sides)
            why = (
                f"{len(sides):,} sides that stay apart need {counted(needed, 'domains')} of level {apart.level}, "
                f"and {len(paths):,} are open to them"
            )
            yield Found(ids, _involved(facts, ids) | {name}, why)


def _sides_of(facts: Facts, name: str, apart: Apart) -> tuple[dict[Hashable, int], frozenset[str]]:
    """Return how many domains each side takes at least, and the domains that are open to any."""
    gpus: dict[Hashable, int] = {}
    paths: set[str] = set()
    for workload in facts.needed.values():
        side = apart.sides.get(workload.id)
        found = facts.paths(workload, apart.level) if side is not None and facts.inside(name, workload) else None
        if found is not None:
            gpus[side] = gpus.get(side, 0) + sum(role.replicas * role.request.gpus for role in workload.roles)
            paths |= found
    largest = _largest(facts, apart.level, paths)
    return {side: max(1, -(-count // largest) if largest else 1) for side, count in gpus.items()}, frozenset(paths)


def _largest(facts: Facts, level: str, paths: set[str]) -> int:
    """Return the most GPUs that one of some domains has."""
    found = dict.fromkeys(paths, 0)
    for node in facts.ground.spec.cluster.nodes:
        path = node.domain(level)
        if path in found:
            found[path] += len(node.healthy_gpus())
    return max(found.values(), default=0)


def together_and_apart(facts: Facts) -> Iterator[Found]:
    """Workloads have to be in one domain, and never share a domain that holds it."""
    for names, together, apart, inside in _against_groups(facts, lambda claims: claims.apart, Facts.inside):
        sides: dict[Hashable, str] = {}
        for workload in inside:
            if workload.id in apart.sides:
                sides.setdefault(apart.sides[workload.id], workload.id)
        if len(sides) > 1:
            ids = tuple(sorted(sides.values())[:2])
            why = f"{ids[0]} and {ids[1]} share one {together.level}, and never one {apart.level}"
            yield Found(ids, _involved(facts, ids) | names, why)


def together_and_crowded(facts: Facts) -> Iterator[Found]:
    """A workload has to be in one domain, and more of its replicas than that domain may hold."""
    for names, together, crowd, covered in _against_groups(facts, lambda claims: claims.crowd, Facts.covers):
        for workload in covered:
            if workload.replicas > crowd.most:
                why = (
                    f"all {workload.replicas:,} replicas of {workload.id} are in one {together.level}, "
                    f"and at most {crowd.most:,} of them in one {crowd.level}"
                )
                yield Found((workload.id,), _involved(facts, (workload.id,)) | names, why)


def too_wide(facts: Facts) -> Iterator[Found]:
    """Workloads have to be in one domain, and need more whole GPUs than any domain that is open to them has."""
    by_name = facts.ground.spec.cluster.by_name
    for name, together, group in _groups(facts):
        wanted = sum(role.replicas * role.request.gpus for workload in group for role in workload.roles)
        there: dict[str | None, int] = {}
        for node in frozenset[str]().union(*(facts.hosts(workload) for workload in group)):
            path = by_name[node].domain(together.level)
            there[path] = there.get(path, 0) + len(by_name[node].healthy_gpus())
        largest = max(there.values(), default=0)
        if wanted > largest:
            ids = tuple(workload.id for workload in group)
            why = (
                f"{_some(ids)} {_need(ids)} {wanted:,} GPUs in one {together.level}, "
                f"and the most that one has open is {largest:,}"
            )
            yield Found(ids, _involved(facts, ids) | {name}, why)


def _groups(facts: Facts) -> Iterator[tuple[str, Together, list[Workload]]]:
    """Yield what has to be together, as far as it has to run and its nodes are all in domains of the level."""
    for name in sorted(facts.names & facts.ground.claims.keys()):
        if facts.ground.excused(name):
            continue
        for together in facts.ground.claims[name].together:
            for group in together.groups:
                found = [workload for workload in group if workload.id in facts.needed]
                if found and all(facts.paths(workload, together.level) is not None for workload in found):
                    yield name, together, found


def _against_groups(
    facts: Facts,
    claim_of: Callable[[Claims], LevelClaim | None],
    concerns: Callable[[Facts, str, Workload], bool],
) -> Iterator[tuple[frozenset[str], Together, LevelClaim, list[Workload]]]:
    """Yield each group beside each claim about domains that hold the group's one, with whom of it that concerns."""
    for name, together, group in _groups(facts):
        for other in sorted(facts.names & facts.ground.claims.keys()):
            claim = claim_of(facts.ground.claims[other])
            if claim is not None and _holds(facts, claim.level, together.level) and not facts.ground.excused(other):
                yield frozenset((name, other)), together, claim, [w for w in group if concerns(facts, other, w)]


def _holds(facts: Facts, outer: str, inner: str) -> bool:
    """Tell whether every domain of `inner` lies in one of `outer`, or is one."""
    levels = facts.ground.spec.cluster.levels
    return outer in levels and inner in levels and levels.index(outer) <= levels.index(inner)


def _involved(facts: Facts, workloads: tuple[str, ...]) -> frozenset[str]:
    """Return the policies that make some workloads run, and those that close nodes for them."""
    closing = (name for w in workloads for name in facts.closing(facts.ground.spec.by_id[w]))
    return _demanding(facts, workloads) | frozenset(closing)


def _demanding(facts: Facts, workloads: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name for w in workloads for name in facts.demanding(facts.ground.spec.by_id[w]))


def _asked(workload: Workload, resource: str) -> int:
    return sum(role.replicas * requested_of(role.request, resource) for role in workload.roles)


_UNITS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType(
    {"gpus": (MILLI, " GPUs"), "cpu": (MILLI, " cores"), "memory": (1, " MiB of memory")}
)


def _amount(cap: Cap, number: int) -> str:
    scale, unit = _UNITS.get(cap.resource, (1, f" of {cap.resource}"))
    return f"{Decimal(number) / scale:,f}{unit}"


def _named(workload: Workload, role: Role) -> str:
    return f"a replica of {_role(workload, role)}"


def _role(workload: Workload, role: Role) -> str:
    return f"{workload.id}.{role.name}" if role.name else workload.id


def _some(workloads: tuple[str, ...]) -> str:
    return workloads[0] if len(workloads) == 1 else f"{workloads[0]} and {len(workloads) - 1:,} more"


def _need(workloads: tuple[str, ...]) -> str:
    return "needs" if len(workloads) == 1 else "need"


TABLE: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "DT1621": nowhere,
        "DT1622": over_a_cap,
        "DT1623": crowded,
        "DT1624": too_few_gpus,
        "DT1625": too_many_sides,
        "DT1626": together_and_apart,
        "DT1627": together_and_crowded,
        "DT1628": too_wide,
        "DT1629": beside_reserves,
        "DT1632": never_free,
        "DT1633": lost_for_good,
    }
)
"""Checks by the code of the fault they lead to."""
