"""How much one node can earn where what runs there today may earn by staying: an upper bound in exact integers.

Either all stays that is protected, and others take what it leaves, of GPUs and of CPU, memory and resources alike;
or some of it goes, and the rest and the others share the GPUs, whatever CPU and memory say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd
from typing import NamedTuple

from dovetail.problem import Problem
from dovetail.proof.cutting import best_layout, profiles_of
from dovetail.proof.kinds import Kind, room_for
from dovetail.proof.node import packed
from dovetail.proof.swaps import Coming, Leaving, gained
from dovetail.rules.quota import requested_of
from dovetail.spec.workload import MILLI

PARTS = 2520  # of a GPU: what up to ten share is told without a rest


class Stay(NamedTuple):
    """A protected replica where it runs; `cut` tells whether on a MIG instance."""

    shape: int
    gpus: tuple[int, ...]
    cut: bool = False


@dataclass(frozen=True)
class Contents:
    """What is protected on one node, by its position in the Problem's list."""

    problem: Problem
    node: int
    stays: Sequence[Stay]

    @cached_property
    def free(self) -> Mapping[str, int]:
        """What it leaves of CPU, memory and resources."""
        node = self.problem.nodes[self.node]
        found = {"cpu": node.cpu, "memory": node.memory, **node.resources}
        for stay in self.stays:
            request = self.problem.shapes[stay.shape].request
            for name in found:
                found[name] -= requested_of(request, name)
        return found

    @cached_property
    def untouched(self) -> int:
        """The healthy GPUs that it leaves alone."""
        taken = {gpu for stay in self.stays for gpu in stay.gpus}
        return len(set(self.problem.nodes[self.node].healthy_gpus()) - taken)

    def left(self, kept: Sequence[Stay]) -> tuple[int, ...]:
        """Return what is left beside some: CPU, memory, resources, untouched GPUs in parts, thousandths of GPUs."""
        node = self.problem.nodes[self.node]
        requests = [self.problem.shapes[stay.shape].request for stay in kept]
        most = {"cpu": node.cpu, "memory": node.memory, **node.resources}
        hosts = (most[name] - sum(requested_of(request, name) for request in requests) for name in self.free)
        taken = {gpu for stay in kept for gpu in stay.gpus}
        loads: Counter[int] = Counter()
        for stay, request in zip(kept, requests, strict=True):
            for gpu in stay.gpus:
                loads[gpu] += self._load(stay) if request.partial else MILLI
        healthy = node.healthy_gpus()
        idle = sum(MILLI - min(MILLI, loads[gpu]) for gpu in healthy)
        return (*hosts, PARTS * len(set(healthy) - taken), idle)

    def freed(self, kept: Sequence[Stay]) -> Iterator[tuple[int, ...]]:
        """Yield what each of some that stay would free of these at the most.

        Of a GPU that several share each frees a part, and all of them together all.
        """
        sharing = Counter(stay.gpus[0] for stay in kept if self.problem.shapes[stay.shape].request.partial)
        for stay in kept:
            request = self.problem.shapes[stay.shape].request
            parts, load = request.gpus * PARTS, request.gpus * MILLI
            if request.partial:
                parts, load = -(-PARTS // sharing[stay.gpus[0]]), self._load(stay)
            yield (*(requested_of(request, name) for name in self.free), parts, load)

    def _load(self, stay: Stay) -> int:
        """Return the thousandths of its GPU that a share takes, none for an instance, whose GPU may be cut anew."""
        return 0 if stay.cut else self.problem.load(stay.shape, self.problem.nodes[self.node])

    @cached_property
    def by_gpu(self) -> tuple[tuple[Stay, ...], ...]:
        """Those that take parts of a GPU, GPU by GPU."""
        found: dict[int, list[Stay]] = {}
        for stay in self.stays:
            if self.problem.shapes[stay.shape].request.partial:
                found.setdefault(stay.gpus[0], []).append(stay)
        return tuple(tuple(stays) for _, stays in sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Lot:
    """Nodes of a kind that no rule tells apart.

    Parameters
    ----------
    counts : per shape, the variables that count a replica of it here: on the kind, and on a cell of it.
    closed : the shapes of which none may come anew.
    bare : how many nodes there are where nothing is protected; `contents` are those of the others.
    """

    counts: Mapping[int, tuple[int, ...]]
    closed: frozenset[int]
    bare: int
    contents: tuple[Contents, ...]


class StayingLimit:
    """What the nodes of one kind can earn in all.

    Parameters
    ----------
    lots : its nodes, by what rules ask of them.
    kept : per shape, the variable of how many of its replicas stay in place.
    used, gpus_used : those of nodes that host anything and of GPUs in use, where the model has them.
    """

    def __init__(
        self,
        problem: Problem,
        kind: Kind,
        lots: Sequence[Lot],
        kept: Mapping[int, int],
        used: int | None,
        gpus_used: int | None,
    ) -> None:
        self._problem, self._kind = problem, kind
        self._lots, self._kept = lots, kept
        self._used, self._gpus_used = used, gpus_used
        self._last: tuple[Mapping[int, int], int] | None = None

    @property
    def variables(self) -> list[int]:
        """The counts, those that stay, and what counts nodes and GPUs in use."""
        extra = [variable for variable in (self._used, self._gpus_used) if variable is not None]
        counts = dict.fromkeys(v for lot in self._lots for counted in lot.counts.values() for v in counted)
        return [*counts, *self._kept.values(), *extra]

    def limit(self, costs: Mapping[int, int]) -> int:
        """Return a value that the costs of what all nodes of the kind hold never exceed; the last one is kept."""
        key = {variable: cost for variable, cost in costs.items() if cost}
        if self._last is None or self._last[0] != key:
            self._last = key, self._limit(costs)
        return self._last[1]

    def _limit(self, costs: Mapping[int, int]) -> int:
        opening = 0 if self._used is None else costs[self._used]
        total = 0
        for lot in self._lots:
            earning = _Earning(self._problem, self._kind, lot, self._kept, self._gpus_used, costs)
            if lot.bare:
                total += lot.bare * max(0, opening + earning.bare())
            total += sum(max(0, opening + earning.best(contents)) for contents in lot.contents)
        return total


@dataclass
class _Earning:
    """What nodes of a lot can earn at given costs of variables."""

    problem: Problem
    kind: Kind
    lot: Lot
    kept: Mapping[int, int]
    gpus_used: int | None
    costs: Mapping[int, int]
    _stays: dict[int, int] = field(default_factory=dict)
    _found: dict[Hashable, int] = field(default_factory=dict)

    @cached_property
    def gpu(self) -> int:
        """What a GPU in use earns by that; often negative."""
        return 0 if self.gpus_used is None else self.costs[self.gpus_used]

    @cached_property
    def gpus(self) -> int:
        """How many GPUs a node has."""
        return len(self.kind.node.healthy_gpus())

    @cached_property
    def worth(self) -> Mapping[int, int]:
        """What may come anew and earns anything, each with what it earns with its whole GPUs."""
        open_ = (s for s in self.lot.counts if s not in self.lot.closed)
        found = {s: sum(self.costs[v] for v in self.lot.counts[s]) + self._by_use(s) for s in open_}
        return {s: value for s, value in found.items() if value > 0}

    @cached_property
    def rooms(self) -> Mapping[int, int]:
        """How many replicas of what may come anew an empty node has room for."""
        return {s: room_for(self.kind, self.problem.shapes[s]) for s in self.worth}

    def _by_use(self, shape: int) -> int:
        return self.gpu * self.problem.shapes[shape].request.gpus

    def stays(self, stay: Stay) -> int:
        """Return what a replica earns that stays, with its whole GPUs."""
        if stay.shape not in self._stays:
            own = (self.kept[stay.shape], *self.lot.counts.get(stay.shape, ()))
            self._stays[stay.shape] = sum(self.costs[variable] for variable in own) + self._by_use(stay.shape)
        return self._stays[stay.shape]

    def bare(self) -> int:
        """Return what a node earns where nothing is protected."""
        return max(self._arriving(self.gpus, rooms, []) for _, rooms in self._sides)

    @cached_property
    def _sides(self) -> Sequence[tuple[frozenset[int], Mapping[int, int]]]:
        """Sets of shapes that rules let be on a node together, each with the rooms of those that may come anew."""
        sides = map(frozenset, self.kind.sides)
        return [(side, {s: room for s, room in self.rooms.items() if s in side}) for side in sides]

    def best(self, contents: Contents) -> int:
        """Return what a node earns with all that is protected on it, or without some of it, whichever is more."""
        if not self.worth:  # nothing is gained by taking one off, but what staying costs
            return sum(max(0, self.stays(stay)) for stay in contents.stays) + max(0, self.gpu) * self.gpus
        here = {stay.shape for stay in contents.stays}
        found = []
        for side, rooms in self._sides:
            if here <= side:
                found.append(self._all(contents, rooms))
                found.append(self._some_gone(contents, side, rooms))
            elif rooms or not found:
                found.append(self._some_gone(contents, side, rooms))
        if not any(here <= side for side, _ in self._sides):  # rules that today breaks let them stay
            found.append(self._all(contents, self.rooms))
        return max(*found, sum(max(0, self.stays(stay)) for stay in contents.stays))

    def _all(self, contents: Contents, rooms: Mapping[int, int]) -> int:
        """Return what a node earns where all stays."""
        fits = {s: self._fitting(contents, s, room) for s, room in rooms.items()}
        fitting = {s: room for s, room in fits.items() if room > 0}
        beside = sum(self.gpu + self._beside(stays, fitting) for stays in contents.by_gpu)
        return sum(map(self.stays, contents.stays)) + beside + self._arriving(contents.untouched, fitting, [])

    def _some_gone(self, contents: Contents, side: frozenset[int], rooms: Mapping[int, int]) -> int:
        """Return what a node earns where not all stay: those go that are not of the side, else one at the least."""
        if self.gpu:
            return self._by_gpus(contents, side, rooms)
        swapped = self._swapped(contents, side, rooms)
        if swapped <= sum(max(0, self.stays(stay)) for stay in contents.stays):
            return swapped
        return min(swapped, self._by_gpus(contents, side, rooms))

    def _by_gpus(self, contents: Contents, side: frozenset[int], rooms: Mapping[int, int]) -> int:
        """Return the same, told by GPUs alone."""
        whole = {stay.shape for stay in contents.stays} <= side
        gone = self._dispensable(contents) if whole else [None]
        return max((self._without(contents, stay, side, rooms) for stay in gone), default=0)

    def _swapped(self, contents: Contents, side: frozenset[int], rooms: Mapping[int, int]) -> int:
        """Return the same, told by who leaves for whom: CPU, memory and resources count."""
        kept = [stay for stay in contents.stays if stay.shape in side and self.stays(stay) > 0]
        freed = contents.freed(kept)
        leaving = [Leaving(self.stays(stay), each) for stay, each in zip(kept, freed, strict=True)]
        free = contents.left(kept)
        coming = [Coming(s, self.worth[s], self._needs(contents, s), room) for s, room in rooms.items()]
        lost = min((each.loss for each in leaving), default=0) if len(kept) == len(contents.stays) else 0
        return sum(each.loss for each in leaving) + gained(free, leaving, coming, self._packed, lost)

    def _packed(self, coming: Sequence[Coming]) -> int:
        return self._arriving(self.gpus, {each.shape: each.room for each in coming}, [])

    def _needs(self, contents: Contents, shape: int) -> tuple[int, ...]:
        """Return what a replica that comes takes of each dimension of a node, at the least."""
        request = self.problem.shapes[shape].request
        load = self.problem.load(shape, self.kind.node) if request.share and not request.may_use_mig else 0
        return (*(requested_of(request, n) for n in contents.free), request.gpus * PARTS, request.gpus * MILLI + load)

    def _fitting(self, contents: Contents, shape: int, room: int) -> int:
        request = self.problem.shapes[shape].request
        asked = ((name, requested_of(request, name)) for name in contents.free)
        return min([room, *(max(0, contents.free[name]) // amount for name, amount in asked if amount)])

    def _beside(self, stays: Sequence[Stay], fitting: Iterable[int]) -> int:
        """Return what else a GPU earns beside those on it."""
        parts = self._parts(fitting)
        if not parts or any(stay.cut for stay in stays):
            return self._part(MILLI, parts)
        taken = sum(self.problem.load(stay.shape, self.kind.node) for stay in stays)
        return self._part(max(0, MILLI - taken), parts)

    def _parts(self, shapes: Iterable[int]) -> frozenset[int]:
        return frozenset(s for s in shapes if self.problem.shapes[s].request.partial)

    def _dispensable(self, contents: Contents) -> Iterator[Stay]:
        """Yield one of each that it makes no difference which of them goes."""
        seen: set[tuple[int, int]] = set()
        for stay in contents.stays:
            key = self.problem.shapes[stay.shape].request.gpus, self.stays(stay)
            if self.problem.shapes[stay.shape].request.partial or key not in seen:
                seen.add(key)
                yield stay

    def _without(self, contents: Contents, gone: Stay | None, side: frozenset[int], rooms: Mapping[int, int]) -> int:
        """Return what a node earns without one of those protected on it, the CPU and memory of all set aside.

        Who is not of the side is gone too.
        """
        light, whole = 0, []
        left = [stay for stay in contents.stays if stay.shape in side]
        if gone is not None:
            left.remove(gone)
        shared: dict[int, int] = {}
        for stay in left:
            request, earned = self.problem.shapes[stay.shape].request, max(0, self.stays(stay))
            if request.gpus:
                whole.append((request.gpus, earned))
            elif request.partial:
                shared[stay.gpus[0]] = shared.get(stay.gpus[0], 0) + earned
            else:
                light += earned
        more = self._part(MILLI, self._parts(rooms)) + self.gpu
        items = [*whole, *((1, each + more) for each in shared.values())]
        return light + self._arriving(self.gpus, rooms, items)

    def _arriving(self, gpus: int, rooms: Mapping[int, int], items: Sequence[tuple[int, int]]) -> int:
        """Return what GPUs earn with items, each so many GPUs large, and with what comes anew."""
        key = gpus, tuple(rooms.items()), tuple(sorted(items))
        if key not in self._found:
            self._found[key] = self._arrived(gpus, rooms, items)
        return self._found[key]

    def _arrived(self, gpus: int, rooms: Mapping[int, int], items: Iterable[tuple[int, int]]) -> int:
        total, sizes = max(0, self.gpu) * gpus, [item for item in items if item[1] > 0]
        for shape, room in rooms.items():
            request = self.problem.shapes[shape].request
            if request.gpus:
                sizes += [(request.gpus, self.worth[shape])] * min(room, gpus // request.gpus)
            elif not request.partial:
                total += self.worth[shape] * room
        shared = self._part(MILLI, self._parts(rooms)) + self.gpu
        sizes += [(1, shared)] * gpus if shared > 0 else []
        return total + packed(_by_size(sizes), gpus)

    def _part(self, milli: int, shapes: frozenset[int]) -> int:
        """Return what new shares earn on one GPU with so many thousandths left, or on its instances."""
        key = milli, shapes
        if shapes and key not in self._found:
            self._found[key] = max(self._fractions(milli, shapes), self._instances(shapes))
        return self._found[key] if shapes else 0

    def _fractions(self, milli: int, shapes: frozenset[int]) -> int:
        node = self.kind.node
        fractions = (s for s in sorted(shapes) if self.problem.shapes[s].request.share)
        loads = {s: self.problem.load(s, node) for s in fractions if "" in self.problem.modes(s, node)}
        step = gcd(MILLI, milli, *loads.values())
        items: list[tuple[int, int]] = []
        for s, load in loads.items():
            items += [(load // step, self.worth[s])] * min(self.rooms[s], milli // load)
        return packed(_by_size(items), milli // step)

    def _instances(self, shapes: frozenset[int]) -> int:
        worth: dict[str, int] = {}
        for s, profiles in profiles_of(self.problem, self.kind, sorted(shapes)).items():
            for profile in profiles:
                worth[profile] = max(self.worth[s], worth.get(profile, 0))
        return best_layout(self.kind.geometry, worth) if self.kind.geometry is not None and worth else 0


def _by_size(items: Iterable[tuple[int, int]]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for size, value in items:
        found.setdefault(size, []).append(value)
    return found
