"""The best that one empty node of a side may hold at some prices, with a proof: branch and bound over its contents.

A case holds some replicas at the least and no more of some shapes than so many (`proof.node_cases`). It is bounded by
prices of CPU and memory that make its Lagrangian bound least, and split by the shape that is worth most beside them:
one more of it first, which leads to good contents early. What is pruned are the cases whose leaves prove enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from dovetail.engine.contents.gpu_contents import Floats, Ints, Shares
from dovetail.engine.contents.instance_contents import Instances
from dovetail.engine.contents.multipliers import PRICED, descend, with_whole
from dovetail.proof.certificate import Fork
from dovetail.proof.kinds import CLASSES, Kind, capacities, class_of
from dovetail.proof.node import Packing
from dovetail.proof.sides import Card, Side
from dovetail.spec.workload import MILLI


class Content(NamedTuple):
    """What a node may hold: shapes, each with how many of it, and the GPUs that these are on at the least."""

    counts: tuple[tuple[int, int], ...]
    gpus: int


_NEVER = -1e300
_LOOK = 16  # cases, to see whether it is late


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search came to.

    Parameters
    ----------
    forks : cases that leave nothing out, each with prices in units of what replicas are worth.
    most : what none of them exceeds.
    contents : what a node may hold, as far as these cases tell, that earns more than was aimed at, best last.
    cases : how many were looked at.
    """

    forks: Sequence[Fork | Mapping[int, float]]
    most: float
    contents: Sequence[tuple[float, Content]]
    cases: int


class NodeSide:
    """What the nodes of a kind may hold of one side, as arrays."""

    def __init__(self, packing: Packing, side: Side) -> None:
        kind = packing.kind
        self.kind, self.side, self.gpus = kind, side, packing.gpus
        self.shapes = np.array([s for s in side.shapes if packing.room[s] > 0], dtype=np.int64)
        own = self.shapes.tolist()
        requests = [packing.shapes[s].request for s in own]
        names = list(capacities(kind))
        self.capacity = np.array(list(capacities(kind).values()), dtype=np.int64)
        self.host = np.array([packing.asks[s] for s in own], dtype=np.int64).reshape(len(own), len(names))
        self.whole = np.array([0 if r.partial else r.gpus for r in requests], dtype=np.int64)
        self.whole_of = dict(zip(own, self.whole.tolist(), strict=True))
        self.sizes = sorted({int(k) for k in self.whole if k})
        self.partial = np.array([r.partial for r in requests], dtype=bool)
        self.room = np.array([packing.room[s] for s in own], dtype=np.int64)
        self.cards = [_Shared(kind, side, card, packing, own) for card in side.cards]
        totals = {dimension.total: position for position, dimension in enumerate(packing.dimensions)}
        self.positions = [totals.get(name) for name in names[:PRICED]]

    def search(
        self, worth: Floats, per_gpu: float, aim: float, most: int, late: Callable[[], bool] = lambda: False
    ) -> Outcome:
        """Look for contents that earn more than `aim`, and for cases that show that there are none, or no better.

        Parameters
        ----------
        worth : of a replica of each shape, in the order of `shapes`.
        per_gpu : what each GPU in use earns on top, not above 0.
        most : how many cases to look at; none are split any more once it is `late`.
        """
        return _Search(self, worth + per_gpu * self.whole, per_gpu, aim, most, late).run()


class _Shared:
    """A card that GPUs of a side may be: who may be on it, and what each takes at the least (`node_cases`)."""

    def __init__(self, kind: Kind, side: Side, card: Card, packing: Packing, shapes: Sequence[int]) -> None:
        least = packing.least_loads
        self.parts = card.parts
        self.there = np.array([s in card.shapes for s in shapes], dtype=bool)
        loads = [least[s] if card.parts == MILLI else card.loads.get(s, 0) for s in shapes if s in card.shapes]
        cut = [s in side.profiles and card.parts != MILLI for s in shapes if s in card.shapes]
        self.load = np.zeros(len(shapes), dtype=np.int64)
        self.load[self.there] = np.where(cut, 0, loads) if loads else 0
        others = [[c is not card and s in c.shapes for c in side.cards] for s in shapes]
        alone = self.there & ~np.array([any(each) for each in others], dtype=bool)
        step = int(np.gcd.reduce([card.parts, *card.loads.values()])) if card.loads else card.parts
        uncut = [(row, card.loads[s] // step) for row, s in enumerate(shapes) if s in card.loads]
        self._rows = np.array([row for row, _ in uncut], dtype=np.int64)
        self._weights, self._size = np.array([weight for _, weight in uncut], dtype=np.int64), card.parts // step
        modes = [tuple(side.profiles.get(s, ())) if s in card.shapes else () for s in shapes]
        self._cut = Instances(kind.geometry, modes)
        classes = [[class_of(k, int(load), card.parts) for load in self.load] for k in range(1, CLASSES + 1)]
        self.classes = np.array(classes, dtype=np.int64).reshape(CLASSES, len(shapes)).T * alone[:, None]
        self.own = self.load * alone  # of those that can be on no other card
        self.steps = np.array([k * (k + 1) for k in range(1, CLASSES + 1)], dtype=np.int64)

    def one(self, reduced: Floats, room: Ints) -> Floats:
        """Return the most that one such GPU earns, shared or cut, per row of what replicas earn."""
        found = self._cut.most(reduced)
        if len(self._rows):
            shares = Shares(self._rows, self._weights, room[self._rows], self._size)
            found = np.maximum(found, shares.table(np.maximum(reduced, 0.0))[-1])
        return found

    def needed(self, held: Ints) -> int:
        """Return how many of them what is held needs at the least."""
        total = int(held @ self.own)
        return max(-(-total // self.parts), int((-(-(held @ self.classes) // self.steps)).max(initial=0)))

    def earned(self, reduced: Floats, room: Ints, held: Ints, gpus: int) -> Floats:
        """Return what up to so many of them earn beside what is held, a column for each number of them."""
        rows = np.flatnonzero(self.there & (room > 0))
        counts = np.arange(gpus + 1)
        if not len(rows) or not (reduced[:, rows] > 0).any():
            return np.zeros((len(reduced), gpus + 1))
        gain, load, most = np.maximum(reduced[:, rows], 0.0), self.load[rows], room[rows]
        order = np.argsort(-gain / np.maximum(load, 1e-9), axis=1, kind="stable")
        value = np.cumsum(np.take_along_axis(gain * most, order, axis=1), axis=1)
        space = np.cumsum((load * most)[order], axis=1)
        free = np.maximum(0, counts * self.parts - int(held @ self.own))
        zero = np.zeros(1)
        filled = [
            np.interp(free, np.concatenate([zero, taken]), np.concatenate([zero, earned]))
            for taken, earned in zip(space, value, strict=True)
        ]
        return np.asarray(np.minimum(np.array(filled), self.one(reduced, room)[:, None] * counts))


@dataclass(slots=True)
class _Search:
    node: NodeSide
    worth: Floats
    per_gpu: float
    aim: float
    most: int
    late: Callable[[], bool]
    forks: list[Fork | Mapping[int, float]] = field(default_factory=list)
    contents: list[tuple[float, Content]] = field(default_factory=list)

    def run(self) -> Outcome:
        """Split cases until none may earn more than the best content, or than was aimed at, or too many were seen."""
        node, worst, cases = self.node, 0.0, 0
        due: list[tuple[Ints, Ints, Floats | None]] = [(np.zeros_like(node.room), node.room.copy(), None)]
        while due:
            held, most, prices = due.pop()
            cases += 1
            least, prices, room, reduced = self._bounded(held, most, prices)
            row = self._split(room, reduced) if least > self._enough and not self._over(cases) else None
            if row is None:
                if self._enough < least and not (room > 0).any():
                    self._tell(least, held)
                worst = max(worst, least)
                self.forks.append(self._told(prices))
                continue
            self.forks.append(Fork(int(node.shapes[row]), int(held[row])))
            one_more, none_more = held.copy(), most.copy()
            one_more[row] += 1
            none_more[row] = held[row]
            due += [(one_more, most, prices), (held, none_more, prices)]
        return Outcome(self.forks, worst, self.contents, cases)

    def _over(self, cases: int) -> bool:
        if cases % _LOOK == 0 and self.late():
            self.most = 0
        return cases >= self.most

    @property
    def _enough(self) -> float:
        return max(self.aim, self.contents[-1][0]) if self.contents else self.aim

    def _tell(self, earns: float, held: Ints) -> None:
        node = self.node
        counts = tuple((int(node.shapes[row]), int(held[row])) for row in np.flatnonzero(held))
        gpus = int(held @ node.whole) + sum(card.needed(held) for card in node.cards)
        self.contents.append((earns, Content(counts, gpus)))

    def _told(self, prices: Floats) -> Mapping[int, float]:
        known = zip(self.node.positions, prices.tolist(), strict=True)
        return {position: price for position, price in known if position is not None and price > 0}

    def _split(self, room: Ints, reduced: Floats) -> int | None:
        """Return the shape that is worth most, of those that there may be more of."""
        rows = np.flatnonzero(room > 0)
        return int(rows[np.argmax(reduced[rows])]) if len(rows) else None

    def _bounded(self, held: Ints, most: Ints, prices: Floats | None) -> tuple[float, Floats, Ints, Floats]:
        """Return about the least bound of a case, its prices, and what more there may be, with what that gains."""
        node = self.node
        left = node.capacity - held @ node.host
        gpus = node.gpus - int(held @ node.whole)
        needed = [card.needed(held) for card in node.cards]
        if gpus < 0 or (left < 0).any() or max(needed, default=0) > gpus:
            return _NEVER, np.zeros(PRICED) if prices is None else prices, np.zeros_like(node.room), self.worth
        fits = np.where(node.host > 0, left // np.maximum(1, node.host), np.iinfo(np.int64).max).min(axis=1)
        room = np.minimum(most - held, fits)
        room = np.where(node.whole > 0, np.minimum(room, gpus // np.maximum(1, node.whole)), room)
        bounds = partial(self._bounds, held, room, gpus, needed)
        here, least = descend(bounds, self.worth, node.gpus, node.capacity, prices, self._enough)
        return least, here, room, self.worth - node.host[:, :PRICED] @ here

    def _bounds(self, held: Ints, room: Ints, gpus: int, needed: Sequence[int], prices: Floats) -> Floats:
        """Return the bound of a case at each of some prices; see `node_cases`.

        Parameters
        ----------
        needed : how many GPUs of each card what is held needs.
        """
        node = self.node
        reduced = self.worth - prices @ node.host[:, :PRICED].T
        total = reduced @ held + prices @ node.capacity[:PRICED]
        loose = ~node.partial & (node.whole == 0)
        total = total + np.maximum(reduced[:, loose], 0.0) @ room[loose]
        found = np.zeros((len(prices), gpus + 1))
        if node.cards:
            found[:, 1:] = _NEVER
        for card, least in zip(node.cards, needed, strict=True):
            earned = card.earned(reduced, room, held, gpus) + self.per_gpu * np.arange(gpus + 1)
            earned[:, :least] = _NEVER
            found = _joined(found, earned)
        found = with_whole(found, reduced, node.sizes, node.whole, room)
        return np.asarray(total + found.max(axis=1))


def _joined(one: Floats, other: Floats) -> Floats:
    """Return the most of two together by how many GPUs both take, column by column."""
    found = np.full_like(one, _NEVER)
    last = one.shape[1] - 1
    for taken in range(last + 1):
        if (other[:, taken] > _NEVER).any():
            np.maximum(found[:, taken:], one[:, : last + 1 - taken] + other[:, taken, None], out=found[:, taken:])
    return found
