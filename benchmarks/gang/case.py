"""A gang-placement case, read leniently: fields that are absent or null take their defaults.

The form is that of a public collection of schedulers' own tests: `levels`, `nodes`, `gangs`, `co_locate`, `limits`,
`reserve`, `running`, `jobs`. Amounts are integers in the case's own units (`cpu_m`, `memory_b`, `gpu`, `pods`, ...).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

Counts = Mapping[str, int]


class Unreadable(Exception):
    """A case that says nothing that could be planned; the message says where."""


@dataclass(frozen=True, slots=True)
class Host:
    """A node: its domain by level, what is left for new pods, and what was taken off that."""

    name: str
    domain: Mapping[str, str]
    free: Counts
    used: Counts


@dataclass(frozen=True, slots=True)
class Slice:
    """In every domain of `level` the number of pods is a multiple of `size`."""

    level: str
    size: int


@dataclass(frozen=True, slots=True)
class Spread:
    """No domain of `level` holds more than `most` pods of the gang."""

    level: str
    most: int


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that are alike; `pods` counts the kept ones too, `least` is how many are enough."""

    name: str
    pods: int
    least: int
    per_pod: Counts
    required: str | None = None
    slices: tuple[Slice, ...] = ()
    eligible: frozenset[str] | None = None
    excluded: frozenset[str] = frozenset()
    pinned: Counts = field(default_factory=dict)
    previous: Counts = field(default_factory=dict)
    max_per_node: int | None = None
    prefer_nodes: Counts = field(default_factory=dict)
    spread: tuple[Spread, ...] = ()
    priority: int | None = None
    topology: Mapping[str, str] = field(default_factory=dict)
    labels: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()

    @property
    def shrinks(self) -> bool:
        """Tell whether it keeps a part of its earlier pods and gets no new ones."""
        return sum(self.previous.values()) > self.pods

    @property
    def kept(self) -> Counts:
        """Pods that stay where they are, by node."""
        if self.shrinks or not self.previous:
            return self.pinned
        nodes = self.pinned.keys() | self.previous.keys()
        return {node: max(self.pinned.get(node, 0), self.previous.get(node, 0)) for node in sorted(nodes)}

    @property
    def charged(self) -> Counts:
        """Pods whose use is already taken off `free`, by node."""
        return self.previous if self.shrinks else self.kept

    def hosts(self, case: Case) -> frozenset[str]:
        """Return the nodes that new pods may go to."""
        nodes = frozenset(case.by_name) if self.eligible is None else self.eligible & case.by_name.keys()
        levels = {self.required, *(each.level for each in self.slices), *(each.level for each in self.spread)}
        levels |= {level for each in case.sets if self.name in each.gangs for level in (each.required, each.distinct)}
        levels &= set(case.levels)
        placed = {name for name in nodes if levels <= case.by_name[name].domain.keys()}
        return frozenset(placed) - self.excluded - self.lost


@dataclass(frozen=True, slots=True)
class Together:
    """Gangs that belong together."""

    gangs: tuple[str, ...]
    required: str | None = None
    preferred: str | None = None
    distinct: str | None = None
    min_pods: int | None = None
    optional: bool = False
    min_subgroups: Counts = field(default_factory=dict)

    @property
    def partial(self) -> bool:
        """Tell whether some of its gangs may be missing while the set counts as there."""
        return self.min_pods is not None or bool(self.min_subgroups)


@dataclass(frozen=True, slots=True)
class Limit:
    """New pods of `gangs` take at most `most` of a resource; evictions from `queues` give theirs back."""

    gangs: tuple[str, ...]
    resource: str
    most: int
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reserve:
    """`count` whole untouched domains of `level` must remain."""

    level: str
    count: int


@dataclass(frozen=True, slots=True)
class Running:
    """Pods in the cluster whose use is already taken off `free`."""

    name: str
    on: Counts
    per_pod: Counts
    movable: bool = False
    evictable: bool = False
    priority: int = 0
    queue: str = ""
    eligible: frozenset[str] | None = None

    @property
    def pods(self) -> int:
        """How many there are."""
        return sum(self.on.values())


@dataclass(frozen=True, slots=True)
class Job:
    """Gangs that are admitted all together or not at all."""

    name: str
    gangs: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One case; `raw` is what was read, `busy` are nodes on which pods stay that nothing else tells of."""

    id: str
    levels: tuple[str, ...]
    nodes: tuple[Host, ...]
    gangs: tuple[Gang, ...]
    sets: tuple[Together, ...] = ()
    limits: tuple[Limit, ...] = ()
    reserve: tuple[Reserve, ...] = ()
    running: tuple[Running, ...] = ()
    jobs: tuple[Job, ...] = ()
    busy: frozenset[str] = frozenset()
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_name(self) -> Mapping[str, Host]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    @property
    def gang(self) -> Mapping[str, Gang]:
        """Gangs by name."""
        return {gang.name: gang for gang in self.gangs}

    @property
    def lists(self) -> tuple[tuple[str, ...], ...]:
        """The gangs that are named together, list by list: of sets, limits and jobs."""
        sets, limits = [each.gangs for each in self.sets], [each.gangs for each in self.limits]
        return (*sets, *limits, *(each.gangs for each in self.jobs))

    def set_of(self, gang: str) -> Together | None:
        """Return the set that a gang belongs to, the first that names it."""
        return next((each for each in self.sets if gang in each.gangs), None)


def part_of(case: Case, gangs: Collection[str]) -> Case:
    """Return a case of some of its gangs, with the sets, limits and jobs of these; what others keep stays."""
    away = (gang for gang in case.gangs if gang.name not in gangs)
    return replace(
        case,
        busy=case.busy | {node for gang in away for node in gang.charged},
        gangs=tuple(gang for gang in case.gangs if gang.name in gangs),
        sets=tuple(each for each in case.sets if set(each.gangs) <= set(gangs)),
        limits=tuple(replace(e, gangs=tuple(name for name in e.gangs if name in gangs)) for e in case.limits),
        jobs=tuple(job for job in case.jobs if set(job.gangs) <= set(gangs)),
    )


def left_as_is(case: Case, gangs: Collection[str]) -> Case:
    """Return a case without some gangs, and without sets that are there whole or not at all; what they keep stays."""
    broken = [each for each in case.sets if not each.partial and set(each.gangs) & set(gangs)]
    out = {*gangs, *(name for each in broken for name in each.gangs)}
    if not out:
        return case
    rest = replace(case, sets=tuple(replace(e, gangs=_others(e.gangs, out)) for e in case.sets if e not in broken))
    rest = replace(rest, jobs=tuple(replace(job, gangs=_others(job.gangs, out)) for job in rest.jobs))
    return part_of(rest, [gang.name for gang in case.gangs if gang.name not in out])


def _others(gangs: Iterable[str], out: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in gangs if name not in out)


FORM: Mapping[str, frozenset[str]] = {
    where: frozenset(names.split())
    for where, names in {
        "": "id name source levels nodes gangs co_locate limits reserve running jobs peer_policy expected truth "
        "artefact artefact_why unhealthy_nodes",
        "nodes": "name domain free used labels taints",
        "gangs": "name pods per_pod topology slices eligible_nodes excluded_nodes pinned previous lost min_pods "
        "max_per_node prefer_nodes spread priority node_selector tolerations labels policy subgroup subgroup_policy "
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
    jobs = tuple(_job(each, index) for index, each in enumerate(_list(raw, "jobs")))
    inside = [gang for each in _list(raw, "jobs") for gang in _list(each, "gangs") if isinstance(gang, Mapping)]
    sets = [*_list(raw, "co_locate"), *(each for job in _list(raw, "jobs") for each in _list(job, "co_locate"))]
    case = Case(
        id=str(raw["id"]),
        levels=tuple(raw.get("levels") or ()),
        nodes=tuple(_host(each) for each in _list(raw, "nodes")),
        gangs=tuple(_gang(each) for each in [*_list(raw, "gangs"), *inside]),
        sets=tuple(_together(each) for each in sets),
        limits=tuple(_limit(each) for each in _list(raw, "limits")),
        reserve=tuple(Reserve(str(each["level"]), int(each.get("count", 1))) for each in _list(raw, "reserve")),
        running=_distinct(_running(each, index) for index, each in enumerate(_list(raw, "running"))),
        jobs=jobs,
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
    return {str(name): int(amount) for name, amount in (found or {}).items()}


def _nodes(raw: Mapping[str, Any], key: str) -> frozenset[str] | None:
    found = raw.get(key)
    return None if found is None else frozenset(map(str, found))


def _host(raw: Mapping[str, Any]) -> Host:
    domain = {str(level): str(path) for level, path in (raw.get("domain") or {}).items() if path is not None}
    return Host(str(raw["name"]), domain, _counts(raw, "free"), _counts(raw, "used"))


def _gang(raw: Mapping[str, Any]) -> Gang:
    topology = {key: str(level) for key, level in (raw.get("topology") or {}).items() if level is not None}
    pods, least = int(raw["pods"]), raw.get("min_pods")
    known = [str(raw[key]) for key in ("policy", "subgroup", "subgroup_policy", "group") if raw.get(key)]
    return Gang(
        name=str(raw["name"]),
        pods=pods,
        least=pods if least is None else min(pods, int(least)),
        per_pod={name: amount for name, amount in _counts(raw, "per_pod").items() if amount},
        required=topology.get("required"),
        slices=tuple(Slice(str(each["level"]), int(each["size"])) for each in _list(raw, "slices")),
        eligible=_nodes(raw, "eligible_nodes"),
        excluded=_nodes(raw, "excluded_nodes") or frozenset(),
        pinned=_positive(raw, "pinned"),
        previous=_positive(raw, "previous"),
        max_per_node=_optional(raw, "max_per_node"),
        prefer_nodes=_counts(raw, "prefer_nodes"),
        spread=tuple(Spread(str(each["level"]), int(each["max"])) for each in _list(raw, "spread")),
        priority=_optional(raw, "priority"),
        topology=topology,
        labels=frozenset(known),
        lost=frozenset(_positive(raw, "lost")),
    )


def _positive(raw: Mapping[str, Any], key: str) -> Counts:
    return {node: count for node, count in _counts(raw, key).items() if count > 0}


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


def _limit(raw: Mapping[str, Any]) -> Limit:
    queues = raw.get("queues") or ()
    listed = (queues,) if isinstance(queues, str) else queues
    return Limit(tuple(map(str, raw["gangs"])), str(raw["resource"]), int(raw["max_new"]), tuple(map(str, listed)))


def _running(raw: Mapping[str, Any], index: int) -> Running:
    return Running(
        name=str(raw.get("name") or f"running-{index}"),
        on=_positive(raw, "on"),
        per_pod={name: amount for name, amount in _counts(raw, "per_pod").items() if amount},
        movable=bool(raw.get("movable")),
        evictable=bool(raw.get("evictable")),
        priority=int(raw.get("priority") or 0),
        queue=str(raw.get("queue") or ""),
        eligible=_nodes(raw, "eligible_nodes"),
    )


def _distinct(running: Iterable[Running]) -> tuple[Running, ...]:
    """Return running pods with names of their own: the second of a name has its number behind it, and so on."""
    found: dict[str, Running] = {}
    for each in running:
        own = next(name for name in chain([each.name], (f"{each.name}-{n}" for n in count(2))) if name not in found)
        found[own] = replace(each, name=own)
    return tuple(found.values())


def _job(raw: Mapping[str, Any], index: int) -> Job:
    gangs = (each["name"] if isinstance(each, Mapping) else each for each in raw["gangs"])
    return Job(str(raw.get("name") or f"job-{index}"), tuple(map(str, gangs)))
