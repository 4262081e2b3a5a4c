"""Cohorts that lie in each other: what each has in its pool, keeps and lends on, and what a plan takes of it.

The words are those of Kueue's Cohorts. A cohort's pool is its own amount and what its members put in. Of use u, which
is what its members take, it takes max(0, u - k) from the cohort that it lies in, where k is the pool less what it
lends on. It lends at most what it may, and where it lends only idle amounts, what its members would not take with all
that they ask for. A tree is in order where no cohort's use is above its pool and what it may borrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.linear import Linear, Model
from dovetail.rules.cohorts import Lends, Queue, asked_by, requested_of
from dovetail.rules.totals import TotalGuard
from dovetail.spec import Role, Workload


@dataclass(frozen=True, slots=True)
class Cohort:
    """What is said of a cohort; amounts by resource.

    Parameters
    ----------
    parent : the cohort that it lies in; empty for none.
    own : what is its own, beside what its members put in.
    borrowing, lending : the most that it borrows and lends; a resource without an entry has no limit.
    """

    name: str
    parent: str = ""
    own: Mapping[str, int] = field(default_factory=dict)
    borrowing: Mapping[str, int] = field(default_factory=dict)
    lending: Mapping[str, int] = field(default_factory=dict)
    lends: Lends = "idle"


@dataclass(frozen=True, slots=True)
class Pool:
    """A cohort in its tree; amounts by resource.

    Parameters
    ----------
    parent : the position of the pool that it lies in, None for the outermost.
    most : what its members may take at the most, borrowed amounts included; without an entry there is no limit.
    kept : what they may take without taking anything from the parent.
    """

    name: str
    parent: int | None
    most: Mapping[str, int]
    kept: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Tree:
    """Groups and the cohorts that they are in.

    Parameters
    ----------
    homes : per group, the position of its pool.
    pools : every cohort after those that lie in it, the outermost last.
    """

    queues: Sequence[Queue]
    homes: Sequence[int]
    pools: Sequence[Pool]

    @property
    def resources(self) -> tuple[str, ...]:
        """The resources that groups lend to each other, sorted."""
        return tuple(sorted({name for queue in self.queues for name in queue.kept}))

    def above(self, held: Callable[[Queue, str], int]) -> Mapping[str, int]:
        """Return by `COHORT/resource` what a cohort's members take above what they may."""
        found = {}
        for name in self.resources:
            used = [0] * len(self.pools)
            for queue, home in zip(self.queues, self.homes, strict=True):
                used[home] += max(0, held(queue, name) - queue.kept[name]) if name in queue.kept else 0
            for pool, use in zip(self.pools, used, strict=True):
                if name in pool.most:
                    found[f"{pool.name}/{name}"] = max(0, use - pool.most[name])
                if pool.parent is not None:
                    used[pool.parent] += max(0, use - pool.kept[name])
        return found

    def encoded(self, model: Model, held: Callable[[Queue, str], Linear]) -> Mapping[str, Linear]:
        """Return what `above` returns, as expressions of a model that are at least that."""
        found = {}
        for name in self.resources:
            used = [Linear() for _ in self.pools]
            for queue, home in zip(self.queues, self.homes, strict=True):
                if name in queue.kept:
                    used[home].add(model.positive_part(held(queue, name).plus(-queue.kept[name])))
            for pool, use in zip(self.pools, used, strict=True):
                if name in pool.most:
                    found[f"{pool.name}/{name}"] = model.positive_part(use.plus(-pool.most[name]))
                if pool.parent is not None:
                    used[pool.parent].add(model.positive_part(use.plus(-pool.kept[name])))
        return found


def outermost(parents: Mapping[str, str]) -> Mapping[str, str | None]:
    """Return, per cohort that lies in one, the cohort around it that lies in none; None for those in a ring."""
    found: dict[str, str | None] = {}
    for name in parents:
        chain: dict[str, None] = {}
        while name in parents and name not in found and name not in chain:
            chain[name] = None
            name = parents[name]
        root = None if name in chain else found.get(name, None if name in found else name)
        found.update(dict.fromkeys(chain, root))
    return found


def tree_of(cohorts: Sequence[Cohort], queues: Sequence[tuple[str, Queue]]) -> Tree:
    """Return the tree of groups, each with the name of its cohort, and of what is said of cohorts.

    Parameters
    ----------
    cohorts : those of which anything is said; all lie in one, by way of each other.
    """
    said = {cohort.name: cohort for cohort in cohorts}
    named = {*said, *(cohort.parent for cohort in cohorts if cohort.parent), *(home for home, _ in queues)}
    every = {name: said.get(name, Cohort(name)) for name in sorted(named)}
    order = _inner_first(every)
    positions = {name: position for position, name in enumerate(order)}
    resources = sorted({resource for _, queue in queues for resource in queue.kept})
    put, wanted = _of_groups(queues)
    pools = []
    for name in order:
        cohort = every[name]
        most, kept = {}, {}
        for resource in resources:
            key = name, resource
            pool = cohort.own.get(resource, 0) + put[key]
            may = _most(cohort, resource, pool)
            if may is not None:
                most[resource] = may
            lent = _lent(cohort, resource, pool, wanted[key])
            kept[resource] = pool - lent
            put[cohort.parent, resource] += lent
            wants = wanted[key] if may is None else min(wanted[key], may)
            wanted[cohort.parent, resource] += max(0, wants - kept[resource])
        pools.append(Pool(name, positions.get(cohort.parent), most, kept))
    return Tree([queue for _, queue in queues], [positions[home] for home, _ in queues], pools)


def _of_groups(queues: Sequence[tuple[str, Queue]]) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Return what groups put into their cohorts, and what they would take for all that they ask, by resource."""
    put: Counter[tuple[str, str]] = Counter()
    wanted: Counter[tuple[str, str]] = Counter()
    for home, queue in queues:
        for resource, kept in queue.kept.items():
            put[home, resource] += queue.lent.get(resource, 0)
            asked = asked_by(queue.members, resource)
            wanted[home, resource] += max(0, min(asked, queue.most.get(resource, asked)) - kept)
    return put, wanted


def _most(cohort: Cohort, resource: str, pool: int) -> int | None:
    if not cohort.parent:
        return pool
    more = cohort.borrowing.get(resource)
    return None if more is None else pool + more


def _lent(cohort: Cohort, resource: str, pool: int, wanted: int) -> int:
    if not cohort.parent:
        return 0
    idle = pool if cohort.lends == "unused" else max(0, pool - wanted)
    return min(idle, cohort.lending.get(resource, idle))


def _inner_first(cohorts: Mapping[str, Cohort]) -> list[str]:
    """Return the names of cohorts, each after all that lie in it."""
    inside: dict[str, list[str]] = {}
    for name, cohort in cohorts.items():
        inside.setdefault(cohort.parent, []).append(name)
    found, row = [], inside.get("", [])
    while row:
        found += sorted(row, reverse=True)
        row = [inner for name in row for inner in inside.get(name, ())]
    return found[::-1]


@dataclass(slots=True)
class CohortGuard(TotalGuard):
    """A `TotalGuard` that also keeps what groups take from their cohorts within what these have.

    Parameters
    ----------
    shares : per workload id, the groups of the tree that it counts in, by position in `tree.queues`.
    """

    tree: Tree = field(default_factory=lambda: Tree((), (), ()))
    shares: Mapping[str, Sequence[int]] = field(default_factory=dict)
    held: Counter[tuple[int, str]] = field(default_factory=Counter)
    taken: Counter[tuple[int, str]] = field(default_factory=Counter)

    def _counts(self, workload: Workload, role: Role) -> list[tuple[int, str, int]]:
        """Return the groups and resources that a replica counts in, and how much."""
        return [
            (position, name, amount)
            for position in self.shares.get(workload.id, ())
            for name in self.tree.queues[position].kept
            if (amount := requested_of(role.request, name))
        ]

    def counts(self, workload: Workload, role: Role) -> bool:
        """Tell whether a replica counts in a group of the tree, or towards a limit."""
        return bool(self._counts(workload, role)) or TotalGuard.counts(self, workload, role)

    def above(self) -> int:
        """Return by how much groups are above their limits, and cohorts above what they have and may borrow."""
        taken = (
            (self.tree.pools[position].most.get(name, amount), amount)
            for (position, name), amount in self.taken.items()
        )
        return TotalGuard.above(self) + sum(max(0, amount - most) for most, amount in taken)

    def _more(self, counts: Sequence[tuple[int, str, int]]) -> Mapping[tuple[int, str], int]:
        """Return how much more is taken of each pool with amounts more in groups."""
        more: Counter[tuple[int, str]] = Counter()
        for position, name, amount in counts:
            kept, held = self.tree.queues[position].kept[name], self.held[position, name]
            more[self.tree.homes[position], name] += max(0, held + amount - kept) - max(0, held - kept)
        for name in {name for _, name in more}:
            for position, pool in enumerate(self.tree.pools):
                if pool.parent is not None and (rise := more[position, name]):
                    left = self.taken[position, name] - pool.kept[name]
                    more[pool.parent, name] += max(0, left + rise) - max(0, left)
        return more

    def bars(self, workload: Workload, role: Role) -> bool:
        """Bar what would take a group above its limit, or a cohort above what it has and may borrow."""
        short = any(
            rise > 0 and self.taken[key] + rise > self.tree.pools[key[0]].most.get(key[1], self.taken[key] + rise)
            for key, rise in self._more(self._counts(workload, role)).items()
        )
        return short or TotalGuard.bars(self, workload, role)

    def room(self, workload: Workload, role: Role) -> int | None:
        """Return how many more replicas there is room for; where groups overlap, one at a time."""
        found = TotalGuard.room(self, workload, role)
        rooms = [] if found is None else [found]
        counts = self._counts(workload, role)
        if len({name for _, name, _ in counts}) < len(counts):
            return min([int(not self.bars(workload, role)), *rooms])
        for position, name, amount in counts:
            own = max(0, self.tree.queues[position].kept[name] - self.held[position, name])
            rooms.append((own + self._left(self.tree.homes[position], name)) // amount)
        return min(rooms, default=None)

    def _left(self, position: int, name: str) -> int:
        """Return how much more may be taken of a pool, borrowed amounts included."""
        chain = [position]
        while (outer := self.tree.pools[chain[-1]].parent) is not None:
            chain.append(outer)
        left = 0
        for each in reversed(chain):
            pool, taken = self.tree.pools[each], self.taken[each, name]
            if pool.parent is not None:
                left += max(0, pool.kept[name] - taken)
            most = max(0, pool.most[name] - taken) if name in pool.most else left
            left = most if pool.parent is None else min(left, most)
        return left

    def add(self, workload: Workload, role: Role, node: object, gpu: int | None, count: int) -> None:
        """Count amounts in."""
        TotalGuard.add(self, workload, role, node, gpu, count)  # type: ignore[arg-type]
        counts = [(position, name, count * amount) for position, name, amount in self._counts(workload, role)]
        self.taken.update(self._more(counts))
        for position, name, amount in counts:
            self.held[position, name] += amount
