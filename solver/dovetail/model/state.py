"""A working solution: how many replicas of each shape are on each node, and which of today's stay in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dovetail.problem import Present, Problem
from dovetail.spec.inside import Mask

NO_GPU = -1


class Slot(NamedTuple):
    """A shape on a node: what takes part of a GPU on the one with this index; else `gpu` is `NO_GPU`.

    `profile` is that of the MIG instances that hold it, empty for a share of a GPU that is not cut. `block` is the
    set of GPUs of which a replica of whole ones has some, 0 for all of the node's.
    """

    shape: int
    gpu: int = NO_GPU
    profile: str = ""
    block: Mask = 0


@dataclass(slots=True)
class Fill:
    """What a node holds: `slots` counts every replica, `kept` those among them that stay on today's place."""

    slots: Counter[Slot] = field(default_factory=Counter)
    kept: Counter[Present] = field(default_factory=Counter)

    def copy(self) -> Fill:
        """Return an independent copy."""
        return Fill(Counter(self.slots), Counter(self.kept))

    def counts(self) -> Counter[int]:
        """Return the replicas per shape."""
        total: Counter[int] = Counter()
        for slot, count in self.slots.items():
            total[slot.shape] += count
        return total

    def staying(self) -> Counter[int]:
        """Return the replicas per shape that stay on today's places."""
        total: Counter[int] = Counter()
        for place, count in self.kept.items():
            total[place.shape] += count
        return total


@dataclass(frozen=True, slots=True)
class Totals:
    """What a state holds in all: replicas per shape, those that stay in place, and where each shape is."""

    admitted: Counter[int] = field(default_factory=Counter)
    kept: Counter[int] = field(default_factory=Counter)
    where: dict[int, dict[int, int]] = field(default_factory=dict)

    def replaced(self, before: Mapping[int, Fill], after: Mapping[int, Fill]) -> Totals:
        """Return the totals once some nodes hold something else, at the cost of what these nodes hold."""
        found = Totals(Counter(self.admitted), Counter(self.kept), dict(self.where))
        own: set[int] = set()
        for node, fill in after.items():
            found._put(node, before.get(node, _NOTHING), fill, own)
        return found

    def _put(self, node: int, old: Fill, new: Fill, own: set[int]) -> None:
        """Replace what a node holds; `own` are the shapes whose nodes are no longer shared with other totals."""
        counts = new.counts()
        change = Counter(counts)
        change.subtract(old.counts())
        for shape, difference in change.items():
            if difference:
                self.admitted[shape] += difference
                if shape not in own:
                    own.add(shape)
                    self.where[shape] = dict(self.where.get(shape, {}))
                self.where[shape][node] = counts[shape]
                if not counts[shape]:
                    del self.where[shape][node]
        for place, count in new.kept.items():
            self.kept[place.shape] += count
        for place, count in old.kept.items():
            self.kept[place.shape] -= count


_NOTHING = Fill()


@dataclass(slots=True)
class State:
    """What every node holds, by node index; never changed once made, so `known` may keep what follows from it."""

    fills: dict[int, Fill] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict, compare=False, repr=False)

    def fill(self, node: int) -> Fill:
        """Return what a node holds."""
        return self.fills.get(node) or Fill()

    def totals(self) -> Totals:
        """Return what the state holds in all, not to be changed."""
        found = self.known.get("totals")
        if not isinstance(found, Totals):
            found = self.known["totals"] = Totals().replaced({}, self.fills)
        return found

    def admitted(self) -> Counter[int]:
        """Return the admitted replicas per shape."""
        return +self.totals().admitted

    def kept(self) -> Counter[int]:
        """Return the replicas per shape that stay on today's place."""
        return +self.totals().kept

    def with_fills(self, fills: dict[int, Fill]) -> State:
        """Return a state with some nodes' contents replaced."""
        return State({**self.fills, **fills}, {"totals": self.totals().replaced(self.fills, fills)})


def slot_of(problem: Problem, index: int, place: Present) -> Slot:
    """Return the slot that a running replica on a node is counted in."""
    if problem.shapes[place.shape].request.partial:
        return Slot(place.shape, place.gpus[0], place.instance.partition("@")[0])
    return Slot(place.shape, NO_GPU, "", problem.set_of(index, place.shape, place.gpus))


def today_state(problem: Problem) -> State:
    """Return the state in which everything whose place stands stays there, and nothing else is admitted."""
    return staying(problem, problem.present)


def staying(problem: Problem, present: Mapping[int, Mapping[Present, int]]) -> State:
    """Return the state in which so many stay on places of today, node by node, and nothing else is admitted."""
    fills = {}
    for node, places in present.items():
        fill = Fill(kept=Counter(places))
        for place, count in places.items():
            fill.slots[slot_of(problem, node, place)] += count
        fills[node] = fill
    return State(fills)


def newcomers(problem: Problem, state: State) -> list[int]:
    """Return the shapes of which some have no place, or another one than today's: those without a place first."""
    admitted, kept = state.totals().admitted, state.totals().kept
    waiting = dict.fromkeys(s.index for s in problem.shapes if admitted[s.index] < s.demand)
    return [*waiting, *(s for s in sorted(admitted) if admitted[s] > kept[s] and s not in waiting)]


def away(problem: Problem, state: State) -> Iterator[tuple[int, Present, int]]:
    """Yield the nodes and places of today from which replicas are away, with how many are."""
    for node, places in problem.present.items():
        kept = state.fill(node).kept
        for place, count in places.items():
            if kept[place] < count:
                yield node, place, count - kept[place]


def settled(problem: Problem, state: State) -> frozenset[int]:
    """Return the shapes that may not move and of which some running replicas do not stay."""
    kept = state.kept()
    return frozenset(
        shape.index
        for shape in problem.shapes
        if not shape.workload.movable and kept[shape.index] < problem.running[shape.index]
    )
