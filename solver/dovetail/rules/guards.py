"""Running accounts of rules, for constructions that add replicas step by step.

Each answers for one workload and place at once, whatever it holds. What `changed`, or is `full`, is told by domain,
so that masks over all nodes can be kept up to date without asking node by node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from dovetail.rules.scope import Scope
from dovetail.spec import Node, Role, Workload
from dovetail.spec.cluster import GPU_LEVEL


def domain_of(level: str, scope: Scope, node: Node, gpu: int | None) -> str | None:
    """Return the domain that a place lies in, None where the level does not concern it (a GPU nobody can share)."""
    if scope.nodes is not None and node.name not in scope.nodes:
        return None
    if level == GPU_LEVEL:
        return None if gpu is None else f"{node.name}/{gpu}"
    return node.domain(level)


class Plain:
    """What most guards have in common: GPUs of a node do not differ, and what is blocked stays so as nodes fill."""

    __slots__ = ()

    @property
    def by_gpu(self) -> bool:
        """Whether the GPUs of a node may differ."""
        return False

    def bars(self, workload: Workload, role: Role) -> bool:
        """Leave it to the place."""
        return False

    def opened(self, workload: Workload) -> int:
        """Return how often places opened: never."""
        return 0

    def excess(self, workload: Workload, node: Node, gpu: int | None) -> int:
        """Return how many replicas of a workload there would have to be less where one of them is: none."""
        return 0


@dataclass(slots=True)
class ApartGuard(Plain):
    """Blocks a domain for a key while another key is there.

    `key` gives a workload's key, None for no subject. `changed` is the log of domains whose set of keys changed.
    Where it is not `exact`, what it blocks may be allowed; one that stands for parts of nodes knows `gpus_alone`.
    """

    scope: Scope
    level: str
    key: Callable[[Workload], Hashable | None]
    held: defaultdict[str, dict[Hashable, int]] = field(default_factory=lambda: defaultdict(dict))
    changed: list[str] = field(default_factory=list)
    exact: bool = True
    gpus_alone: bool = False

    @property
    def by_gpu(self) -> bool:
        """Whether the GPUs of a node may differ."""
        return self.level == GPU_LEVEL

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where another key is present."""
        if self.gpus_alone and not role.request.gpu_count:
            return False
        path = domain_of(self.level, self.scope, node, gpu)
        held = self.held.get(path) if path is not None else None
        if not held:
            return False
        key = self.key(workload)
        return key is not None and (len(held) > 1 or key not in held)

    def clashes(self, workload: Workload, node: Node, gpu: int | None) -> bool:
        """Tell whether a domain that holds one key would certainly hold two."""
        path, key = domain_of(self.level, self.scope, node, gpu), self.key(workload)
        held = self.held.get(path) if path is not None else None
        return self.exact and held is not None and key is not None and len(held) == 1 and key not in held

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by domain and key."""
        path, key = domain_of(self.level, self.scope, node, gpu), self.key(workload)
        if path is None or key is None or (self.gpus_alone and not role.request.gpu_count):
            return
        held = self.held[path]
        before = held.get(key, 0)
        if before + count:
            held[key] = before + count
        else:
            held.pop(key, None)
        if not before or not before + count:
            self.changed.append(path)


@dataclass(slots=True)
class TogetherGuard(Plain):
    """Blocks every domain for a value but the one that holds it.

    `value` gives the value of each matched workload, None for no subject. Where it stands for parts of nodes it knows
    `gpus_alone`, and what it blocks may be allowed.
    """

    scope: Scope
    level: str
    value: Mapping[str, Hashable | None]
    gpus_alone: bool = False
    held: defaultdict[Hashable, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))

    def home(self, workload: Workload) -> str | None:
        """Return the domain that a workload must join, None where it may begin anywhere."""
        value = self.value.get(workload.id)
        held = self.held.get(value) if value is not None else None
        return max(held, key=lambda path: (held[path], path)) if held else None

    def opened(self, workload: Workload) -> int:
        """Return a number that changes as soon as there is a domain to join."""
        return int(self.home(workload) is not None)

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where the value is not, once it is anywhere."""
        if self.gpus_alone and not role.request.gpu_count:
            return False
        path, home = domain_of(self.level, self.scope, node, None), self.home(workload)
        return path is not None and home is not None and path not in self.held[self.value[workload.id]]

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by value and domain."""
        path, value = domain_of(self.level, self.scope, node, None), self.value.get(workload.id)
        if path is not None and value is not None and (role.request.gpu_count or not self.gpus_alone):
            held = self.held[value]
            held[path] += count
            if not held[path]:
                del held[path]


@dataclass(slots=True)
class CapGuard(Plain):
    """Blocks what would take an amount above its limit.

    `amounts` gives, for one replica on a node, the subjects it counts towards and by how much.
    """

    amounts: Callable[[Workload, Role, Node], Mapping[Hashable, int]]
    limit: Callable[[Hashable], int]
    used: Counter[Hashable] = field(default_factory=Counter)

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where any subject would exceed its limit."""
        amounts = self.amounts(workload, role, node)
        return any(amount and self.used[key] + amount > self.limit(key) for key, amount in amounts.items())

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count amounts in."""
        for key, amount in self.amounts(workload, role, node).items():
            self.used[key] += count * amount


@dataclass(slots=True)
class CrowdGuard(Plain):
    """Blocks a domain for a matched workload that has `most` replicas there.

    `full` holds, per workload, the domains that take no more of it. Where it stands for parts of nodes it knows
    `gpus_alone`, and what it blocks may be allowed.
    """

    scope: Scope
    level: str
    most: int
    gpus_alone: bool = False
    held: Counter[tuple[str, str]] = field(default_factory=Counter)
    full: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where the workload has as many as it may."""
        if workload.id not in self.scope.ids or (self.gpus_alone and not role.request.gpu_count):
            return False
        path = domain_of(self.level, self.scope, node, None)
        return path is not None and self.held[workload.id, path] >= self.most

    def excess(self, workload: Workload, node: Node, gpu: int | None) -> int:
        """Return how many more there are in a domain than may be; where it stands for parts of it nobody can tell."""
        told = workload.id in self.scope.ids and not self.gpus_alone
        path = domain_of(self.level, self.scope, node, None) if told else None
        return 0 if path is None else self.held[workload.id, path] - self.most

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by workload and domain."""
        path = domain_of(self.level, self.scope, node, None) if workload.id in self.scope.ids else None
        if path is not None and (role.request.gpu_count or not self.gpus_alone):
            self.held[workload.id, path] += count
            if self.held[workload.id, path] >= self.most:
                self.full[workload.id].add(path)
            else:
                self.full[workload.id].discard(path)


@dataclass(slots=True)
class ClientsGuard(Plain):
    """Blocks a GPU for a matched workload while `most` matched replicas are on it."""

    scope: Scope
    most: int
    held: Counter[str] = field(default_factory=Counter)

    @property
    def by_gpu(self) -> bool:
        """Whether the GPUs of a node may differ."""
        return True

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where there are as many as may be."""
        path = self._path(workload, node, gpu)
        return path is not None and self.held[path] >= self.most

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count matched replicas by GPU."""
        path = self._path(workload, node, gpu)
        if path is not None:
            self.held[path] += count

    def excess(self, workload: Workload, node: Node, gpu: int | None) -> int:
        """Return how many more are on a GPU than may be."""
        path = self._path(workload, node, gpu)
        return 0 if path is None else self.held[path] - self.most

    def _path(self, workload: Workload, node: Node, gpu: int | None) -> str | None:
        return domain_of(GPU_LEVEL, self.scope, node, gpu) if workload.id in self.scope.ids else None


@dataclass(slots=True)
class ClosedGuard(Plain):
    """Blocks matched nodes for who asks for whole GPUs, or for a profile, where that mode is closed."""

    scope: Scope
    closed: frozenset[str]

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block by what is asked for; what a share lands on is not known yet."""
        if role.request.mode not in self.closed or workload.id not in self.scope.ids:
            return False
        return self.scope.nodes is None or node.name in self.scope.nodes

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count nothing: who is where changes nothing."""


@dataclass(slots=True)
class _Tally:
    """A workload's replicas per domain; `sizes` tells how many of its `domains` hold how many, `least` the fewest."""

    domains: frozenset[str]
    held: Counter[str] = field(default_factory=Counter)
    sizes: Counter[int] = field(default_factory=Counter)
    least: int = 0
    risen: int = 0

    def add(self, path: str, count: int) -> None:
        """Count replicas in."""
        before = self.held[path]
        self.held[path] = now = before + count
        if path not in self.domains:
            return
        self.sizes[before] -= 1
        self.sizes[now] += 1
        lowest = self.least
        self.least = min(lowest, now)
        while not self.sizes[self.least]:
            self.least += 1
        self.risen += self.least > lowest


@dataclass(slots=True)
class SkewGuard(Plain):
    """Blocks a workload's domain that is already `skew` fuller than its emptiest eligible one.

    Where no difference is allowed, one replica alone is one too many. With `leeway`, a domain may then be ahead by
    one, or, of who is placed domain by domain, come to an equal share; what is ahead in the end has to go. `given`
    counts how often there was leeway anew. `eased` tells by how much more workloads may differ for now.
    """

    scope: Scope
    level: str
    skew: int
    eligible: Mapping[str, tuple[str, ...]]
    tallies: dict[str, _Tally] = field(default_factory=dict)
    sets: dict[tuple[str, ...], frozenset[str]] = field(default_factory=dict)
    leeway: bool = False
    given: int = 0
    eased: Counter[str] = field(default_factory=Counter)

    def give_leeway(self, given: bool) -> None:
        """Give leeway where no difference is allowed, or take it back."""
        self.leeway = given and not self.skew
        self.given += self.leeway

    def opened(self, workload: Workload) -> int:
        """Return how often the emptiest domain of a workload became fuller, or leeway was given."""
        tally = self._tally(workload)
        return tally.risen + self.given if tally else 0

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where one more would widen the difference beyond the limit."""
        path, tally = domain_of(self.level, self.scope, node, None), self._tally(workload)
        return path is not None and tally is not None and tally.held[path] + 1 > self._most(workload, tally)

    def excess(self, workload: Workload, node: Node, gpu: int | None) -> int:
        """Return by how many replicas a domain is further ahead of the emptiest one than it may be."""
        path, tally = domain_of(self.level, self.scope, node, None), self._tally(workload)
        if path is None or tally is None or path not in tally.domains:
            return 0
        return tally.held[path] - tally.least - self.skew

    def _most(self, workload: Workload, tally: _Tally) -> int:
        """Return how many replicas a domain may have for now."""
        if not self.leeway:
            return self.skew + self.eased[workload.id] + tally.least
        return max(tally.least + 1, workload.replicas // len(tally.domains) if workload.ranked else 0)

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by workload and domain."""
        path, tally = domain_of(self.level, self.scope, node, None), self._tally(workload)
        if path is not None and tally is not None:
            tally.add(path, count)

    def full(self, workload: Workload) -> tuple[bool, tuple[str, ...]]:
        """Return whether a domain without any of the workload is blocked, and the domains that differ from that."""
        tally = self._tally(workload)
        if tally is None:
            return False, ()
        room = self._most(workload, tally)
        empty = room < 1
        return empty, tuple(path for path, count in tally.held.items() if (count + 1 > room) != empty)

    def ahead(self, workload: Workload) -> Mapping[str, int]:
        """Return by how many replicas domains are fuller than the emptiest, those that are."""
        tally = self._tally(workload)
        if tally is None or tally.sizes[tally.least] == len(tally.domains):
            return {}
        return {p: n - tally.least for p, n in tally.held.items() if p in tally.domains and n > tally.least}

    def _tally(self, workload: Workload) -> _Tally | None:
        """Return the tally of a workload, None for one that is not matched or cannot be uneven."""
        found = self.tallies.get(workload.id)
        if found is None and len(paths := self.eligible.get(workload.id, ())) > 1:
            domains = self.sets.setdefault(paths, frozenset(paths))
            found = self.tallies[workload.id] = _Tally(domains, sizes=Counter({0: len(domains)}))
        return found
