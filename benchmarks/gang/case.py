"""A gang-placement case: its nodes, gangs and running pods, and what it asks of them.

The form is that of a public collection of schedulers' own tests: `levels`, `nodes`, `gangs`, `co_locate`, `limits`,
`reserve`, `running`, `jobs`. Amounts are integers in the case's own units (`cpu_m`, `memory_b`, `gpu`, `pods`, ...).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Host:
    """A node: its domain by level, what is left for new pods, and what was taken off that.

    Parameters
    ----------
    domain : by level, of the levels at which it is in one.
    free : negative where what is there takes more than the node has.
    homes : by level; at a level at which it is in no domain, what stands for one.
    """

    name: str
    domain: Mapping[str, str]
    free: Counts
    used: Counts
    homes: Mapping[str, str] = field(default_factory=dict)

    def home(self, level: str) -> str:
        """Return what a node counts to at a level; at one that the case does not have, to itself."""
        return self.homes.get(level, f"alone:{self.name}")


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
        """Tell whether the set counts as there by numbers of its own, and not by all of its gangs."""
        return self.min_pods is not None or bool(self.min_subgroups)

    @property
    def counts(self) -> bool:
        """Tell whether it needs any pods or subgroups by numbers of its own; zero is none."""
        return max(self.min_pods or 0, *self.min_subgroups.values(), 0) > 0

    @property
    def atomic(self) -> bool:
        """Tell whether its gangs may be missing, each as a whole, whatever they need by themselves."""
        return bool(self.min_subgroups)


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
    """Pods in the cluster whose use is already taken off `free`; no gang has their name, `called` is what is told."""

    name: str
    on: Counts
    per_pod: Counts
    movable: bool = False
    evictable: bool = False
    priority: int = 0
    queue: str = ""
    eligible: frozenset[str] | None = None
    called: str = ""

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

    def home(self, node: str, level: str) -> str:
        """Return what a node counts to at a level, one that is gone to itself."""
        host = self.by_name.get(node)
        return host.home(level) if host else f"alone:{node}"

    def firm(self, together: Together) -> tuple[str, ...]:
        """Return the gangs without which a set is not there: those that need pods and that no other set may lack.

        An optional set says so of its own gangs, whatever others say of these.
        """
        others = [each for each in self.sets if each is not together and (each.optional or each.atomic)]
        free = set() if together.optional else {name for each in others for name in each.gangs}
        return tuple(name for name in together.gangs if self.gang[name].least and name not in free)

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
    broken = [each for each in case.sets if not each.atomic and set(case.firm(each)) & set(gangs)]
    out = {*gangs, *(name for each in broken for name in each.gangs)}
    if not out:
        return case
    rest = replace(case, sets=tuple(replace(e, gangs=_others(e.gangs, out)) for e in case.sets if e not in broken))
    rest = replace(rest, jobs=tuple(replace(job, gangs=_others(job.gangs, out)) for job in rest.jobs))
    return part_of(rest, [gang.name for gang in case.gangs if gang.name not in out])


def _others(gangs: Iterable[str], out: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in gangs if name not in out)
