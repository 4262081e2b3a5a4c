"""How much one node can earn where what runs there today may earn by staying: an upper bound in exact integers.

Either all stays that is protected, and others take what it leaves, of GPUs and of CPU, memory and resources alike;
or some of it goes, and the rest and the others share the GPUs, whatever CPU and memory say.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import gcd

from dovetail.problem import Problem
from dovetail.proof.contents import PARTS, Comer, Contents, Lot, Rooms, Stay, capacity_of, names_of
from dovetail.proof.cutting import best_layout, profiles_of
from dovetail.proof.kinds import Kind, room_for
from dovetail.proof.packed import packed
from dovetail.proof.swaps import Coming, Leaving, gained, together
from dovetail.rules.quota import requested_of
from dovetail.spec.workload import MILLI


class StayingLimit:
    """What the nodes of one kind can earn in all.

    Parameters
    ----------
    lots : its nodes, by what rules ask of them.
    kept : per shape, the variable of how many of its replicas stay in place.
    new : per shape, the variable of how many more come than are protected, and their number in all.
    used, gpus_used : those of nodes that host anything and of GPUs in use, where the model has them.
    """

    def __init__(
        self,
        problem: Problem,
        kind: Kind,
        lots: Sequence[Lot],
        kept: Mapping[int, int],
        new: Mapping[int, tuple[int, int]],
        used: int | None,
        gpus_used: int | None,
    ) -> None:
        self._problem, self._kind = problem, kind
        self._lots, self._kept, self._new = lots, kept, new
        self._used, self._gpus_used = used, gpus_used
        self._last: tuple[Mapping[int, int], int] | None = None
        self.gains: list[tuple[Contents, int]] = []  # of the last costs: where others than all who stay earn more

    @property
    def variables(self) -> list[int]:
        """The counts, those that stay, and what counts nodes and GPUs in use."""
        extra = [variable for variable in (self._used, self._gpus_used) if variable is not None]
        counts = dict.fromkeys(v for lot in self._lots for counted in lot.counts.values() for v in counted)
        return [*counts, *self._kept.values(), *(variable for variable, _ in self._new.values()), *extra]

    def free(self, shape: int) -> Iterator[tuple[Lot, int]]:
        """Yield the nodes that a shape may come to, with how many more of it come at the most while all stay."""
        for lot in self._lots:
            if shape not in lot.counts or shape in lot.closed:
                continue
            earning = _Earning(self._problem, self._kind, lot, self._kept, self._new, None, {})
            room = room_for(self._kind, self._problem.shapes[shape])
            places = lot.bare * room
            for contents in lot.contents:
                if any({shape, *(s for s, _ in contents.shapes)} <= side for side in self._kind.groups):
                    places += contents.times * earning.fitting(contents.free, shape, room)
            yield lot, places

    def limit(self, costs: Mapping[int, int]) -> int:
        """Return a value that the costs of what all nodes of the kind hold never exceed; the last one is kept."""
        key = {variable: cost for variable, cost in costs.items() if cost}
        if self._last is None or self._last[0] != key:
            self._last = key, self._limit(costs)
        return self._last[1]

    def _limit(self, costs: Mapping[int, int]) -> int:
        opening = 0 if self._used is None else costs[self._used]
        total = 0
        self.gains = []
        for lot in self._lots:
            earning = _Earning(self._problem, self._kind, lot, self._kept, self._new, self._gpus_used, costs)
            if not (opening or earning.worth):
                total += earning.nobody_comes()
                continue
            if lot.bare:
                total += lot.bare * max(0, opening + earning.bare())
            for contents in lot.contents:
                stays = earning.all_stay(contents)
                best = earning.best(contents, stays)
                total += contents.times * max(0, opening + best)
                if (gain := best - stays) > 0:
                    self.gains.append((contents, gain))
        return total


@dataclass
class _Earning:
    """What nodes of a lot can earn at given costs of variables."""

    problem: Problem
    kind: Kind
    lot: Lot
    kept: Mapping[int, int]
    new: Mapping[int, tuple[int, int]]
    gpus_used: int | None
    costs: Mapping[int, int]
    _stays: dict[int, int] = field(default_factory=dict)
    _needed: dict[int, tuple[int, ...]] = field(default_factory=dict)
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
    def worth(self) -> Mapping[Comer, int]:
        """What may come anew and earns anything, each with what it earns with its whole GPUs."""
        found = {}
        for shape in self.lot.counts:
            if shape not in self.lot.closed:
                value = sum(self.costs[v] for v in self.lot.counts[shape]) + self._by_use(shape)
                found[Comer(shape, False)] = value
                if shape in self.new and self.costs[self.new[shape][0]] > 0:
                    found[Comer(shape, True)] = value + self.costs[self.new[shape][0]]
        return {comer: value for comer, value in found.items() if value > 0}

    @cached_property
    def rooms(self) -> Rooms:
        """How many replicas of what may come anew an empty node has room for."""
        rooms = {comer: room_for(self.kind, self.problem.shapes[comer.shape]) for comer in self.worth}
        return {c: min(room, self.new[c.shape][1]) if c.new else room for c, room in rooms.items()}

    def _by_use(self, shape: int) -> int:
        return self.gpu * self.problem.shapes[shape].request.gpus

    def stays(self, shape: int) -> int:
        """Return what a replica of a shape earns that stays, with its whole GPUs."""
        if shape not in self._stays:
            own = (self.kept[shape], *self.lot.counts.get(shape, ()))
            self._stays[shape] = sum(self.costs[variable] for variable in own) + self._by_use(shape)
        return self._stays[shape]

    def bare(self) -> int:
        """Return what a node earns where nothing is protected."""
        free = capacity_of(self.kind.node)
        return max(self._joined(free, rooms, self._arriving(self.gpus, rooms, [])) for _, rooms in self._sides)

    @cached_property
    def _sides(self) -> Sequence[tuple[frozenset[int], Rooms]]:
        """Sets of shapes that rules let be on a node together, each with the rooms of those that may come anew."""
        groups = self.kind.groups
        return [(side, {c: room for c, room in self.rooms.items() if c.shape in side}) for side in groups]

    def best(self, contents: Contents, stays: int) -> int:
        """Return what a node earns with all that is protected on it, or without some of it, whichever is more.

        Parameters
        ----------
        stays : what `all_stay` says.
        """
        if not self.worth:  # nothing is gained by taking one off, but what staying costs
            return stays + max(0, self.gpu) * self.gpus
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
        return max(*found, stays)

    def all_stay(self, contents: Contents) -> int:
        """Return what those earn that are protected on a node and gain by staying."""
        return sum(count * max(0, self.stays(shape)) for shape, count in contents.shapes)

    def nobody_comes(self) -> int:
        """Return what all nodes earn where nobody comes who earns anything."""
        stay = sum(count * max(0, self.stays(shape)) for shape, count in self.lot.protected.items())
        return stay + self.lot.nodes * max(0, self.gpu) * self.gpus

    def _all(self, contents: Contents, rooms: Rooms) -> int:
        """Return what a node earns where all stays."""
        fits = {comer: self.fitting(contents.free[:-2], comer.shape, room) for comer, room in rooms.items()}
        fitting = {comer: room for comer, room in fits.items() if room > 0}
        beside = sum(self.gpu + self._beside(stays, fitting) for stays in contents.by_gpu)
        more = beside + self._arriving(contents.untouched, fitting, [])
        stay = sum(count * self.stays(shape) for shape, count in contents.shapes)
        return stay + self._joined(contents.free, fitting, more)

    def _joined(self, free: tuple[int, ...], rooms: Rooms, most: int) -> int:
        """Return what replicas that come earn together, `most` by GPUs, with CPU, memory and resources as well."""
        if self.gpu or not rooms or most <= 0:
            return most
        coming = self._coming(rooms)
        return min([most, *(together(coming, d, room) for d, room in enumerate(free))])

    def _coming(self, rooms: Rooms) -> list[Coming[Comer]]:
        return [Coming(c, self.worth[c], self._needs(c.shape), room) for c, room in rooms.items()]

    def _some_gone(self, contents: Contents, side: frozenset[int], rooms: Rooms) -> int:
        """Return what a node earns where not all stay: those go that are not of the side, else one at the least."""
        if self.gpu:
            return self._by_gpus(contents, side, rooms)
        swapped = self._swapped(contents, side, rooms)
        if swapped <= self.all_stay(contents):
            return swapped
        return min(swapped, self._by_gpus(contents, side, rooms))

    def _by_gpus(self, contents: Contents, side: frozenset[int], rooms: Rooms) -> int:
        """Return the same, told by GPUs alone."""
        whole = {stay.shape for stay in contents.stays} <= side
        gone = self._dispensable(contents) if whole else [None]
        return max((self._without(contents, stay, side, rooms) for stay in gone), default=0)

    def _swapped(self, contents: Contents, side: frozenset[int], rooms: Rooms) -> int:
        """Return the same, told by who leaves for whom: CPU, memory and resources count."""
        kept = tuple(stay for stay in contents.stays if stay.shape in side and self.stays(stay.shape) > 0)
        free, freed = contents.beside(kept)
        leaving = [Leaving(self.stays(stay.shape), each) for stay, each in zip(kept, freed, strict=True)]
        lost = min((each.loss for each in leaving), default=0) if len(kept) == len(contents.stays) else 0
        return sum(each.loss for each in leaving) + gained(free, leaving, self._coming(rooms), self._packed, lost)

    def _packed(self, coming: Sequence[Coming[Comer]]) -> int:
        return self._arriving(self.gpus, {each.comer: each.room for each in coming}, [])

    def _needs(self, shape: int) -> tuple[int, ...]:
        """Return what a replica that comes takes of each dimension of a node, at the least."""
        if shape not in self._needed:
            request, node = self.problem.shapes[shape].request, self.kind.node
            load = self.problem.load(shape, node) if request.share and not request.may_use_mig else 0
            hosts = (requested_of(request, name) for name in names_of(node))
            self._needed[shape] = (*hosts, request.gpus * PARTS, request.gpus * MILLI + load)
        return self._needed[shape]

    def fitting(self, free: Sequence[int], shape: int, room: int) -> int:
        """Return how many replicas of a shape the first dimensions of a node let come, that much being free."""
        told = zip(free, self._needs(shape), strict=False)
        return min([room, *(max(0, left) // amount for left, amount in told if amount)])

    def _beside(self, stays: Sequence[Stay], fitting: Iterable[Comer]) -> int:
        """Return what else a GPU earns beside those on it."""
        parts = self._parts(fitting)
        if not parts or any(stay.cut for stay in stays):
            return self._part(MILLI, parts)
        taken = sum(self.problem.load(stay.shape, self.kind.node) for stay in stays)
        return self._part(max(0, MILLI - taken), parts)

    def _parts(self, comers: Iterable[Comer]) -> frozenset[Comer]:
        return frozenset(comer for comer in comers if self.problem.shapes[comer.shape].request.partial)

    def _dispensable(self, contents: Contents) -> Iterator[Stay]:
        """Yield one of each that it makes no difference which of them goes."""
        seen: set[tuple[int, int]] = set()
        for stay in contents.stays:
            key = self.problem.shapes[stay.shape].request.gpus, self.stays(stay.shape)
            if self.problem.shapes[stay.shape].request.partial or key not in seen:
                seen.add(key)
                yield stay

    def _without(self, contents: Contents, gone: Stay | None, side: frozenset[int], rooms: Rooms) -> int:
        """Return what a node earns without one of those protected on it, the CPU and memory of all set aside.

        Who is not of the side is gone too.
        """
        light, whole = 0, []
        left = [stay for stay in contents.stays if stay.shape in side]
        if gone is not None:
            left.remove(gone)
        shared: dict[int, int] = {}
        for stay in left:
            request, earned = self.problem.shapes[stay.shape].request, max(0, self.stays(stay.shape))
            if request.gpus:
                whole.append((request.gpus, earned))
            elif request.partial:
                shared[stay.gpus[0]] = shared.get(stay.gpus[0], 0) + earned
            else:
                light += earned
        more = self._part(MILLI, self._parts(rooms)) + self.gpu
        items = [*whole, *((1, each + more) for each in shared.values())]
        return light + self._arriving(self.gpus, rooms, items)

    def _arriving(self, gpus: int, rooms: Rooms, items: Sequence[tuple[int, int]]) -> int:
        """Return what GPUs earn with items, each so many GPUs large, and with what comes anew."""
        key = gpus, tuple(rooms.items()), tuple(sorted(items))
        if key not in self._found:
            self._found[key] = self._arrived(gpus, rooms, items)
        return self._found[key]

    def _arrived(self, gpus: int, rooms: Rooms, items: Iterable[tuple[int, int]]) -> int:
        total, sizes = max(0, self.gpu) * gpus, [item for item in items if item[1] > 0]
        for comer, room in rooms.items():
            request = self.problem.shapes[comer.shape].request
            if request.gpus:
                sizes += [(request.gpus, self.worth[comer])] * min(room, gpus // request.gpus)
            elif not request.partial:
                total += self.worth[comer] * room
        shared = self._part(MILLI, self._parts(rooms)) + self.gpu
        sizes += [(1, shared)] * gpus if shared > 0 else []
        return total + packed(_by_size(sizes), gpus)[-1]

    def _part(self, milli: int, comers: frozenset[Comer]) -> int:
        """Return what new shares earn on one GPU with so many thousandths left, or on its instances."""
        key = milli, comers
        if comers and key not in self._found:
            self._found[key] = max(self._fractions(milli, comers), self._instances(comers))
        return self._found[key] if comers else 0

    def _fractions(self, milli: int, comers: frozenset[Comer]) -> int:
        node = self.kind.node
        fractions = (c for c in sorted(comers) if self.problem.shapes[c.shape].request.share)
        loads = {c: self.problem.load(c.shape, node) for c in fractions if "" in self.problem.modes(c.shape, node)}
        step = gcd(MILLI, milli, *loads.values())
        items: list[tuple[int, int]] = []
        for comer, load in loads.items():
            items += [(load // step, self.worth[comer])] * min(self.rooms[comer], milli // load)
        return packed(_by_size(items), milli // step)[-1]

    def _instances(self, comers: frozenset[Comer]) -> int:
        most: dict[int, int] = {}
        for comer in sorted(comers):
            most[comer.shape] = max(self.worth[comer], most.get(comer.shape, 0))
        worth: dict[str, int] = {}
        for s, profiles in profiles_of(self.problem, self.kind.node, most).items():
            for profile in profiles:
                worth[profile] = max(most[s], worth.get(profile, 0))
        return best_layout(self.kind.geometry, worth) if self.kind.geometry is not None and worth else 0


def _by_size(items: Iterable[tuple[int, int]]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = {}
    for size, value in items:
        found.setdefault(size, []).append(value)
    return found
