"""How much one node of a kind can earn at given prices: an upper bound in exact integers.

A node lies within one side (see `sides`). Within it CPU, memory, resources and their classes are priced by
multipliers, and what is left is packed exactly: shares into one GPU (a knapsack over its parts), replicas of whole
GPUs and shared GPUs into the node's GPUs (a knapsack over their number), island by island where no replica is across
several. Replicas without GPUs count as often as they have room. What GPUs have left may earn as well (see `idle`).

Where cases of what the node holds are told apart, each has prices of its own (see `node_cases`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from math import gcd
from typing import Final, NamedTuple

from dovetail.mig import Geometry
from dovetail.problem import Problem, Shape
from dovetail.proof.certificate import Forks, Multipliers
from dovetail.proof.cutting import best_layout, layouts_within
from dovetail.proof.hosts import ByMode
from dovetail.proof.idle import Useful
from dovetail.proof.kinds import Kind, blocks_for, capacities, dimensions, least_load, room_for
from dovetail.proof.node_cases import told_apart
from dovetail.proof.packed import packed
from dovetail.proof.sides import Card, Side
from dovetail.proof.tree import Unproved
from dovetail.rules.quota import requested_of

_NOTHING: Final[Mapping[str, int]] = {"": 0}
_NO_EXTRA: Final[ByMode] = {}


class Rest(NamedTuple):
    """The use of what a node's contents leave idle, and what each unit of it earns."""

    useful: Useful
    each: int


class Extra(NamedTuple):
    """The variables of nodes that host anything, of GPUs in use, and of what idle ones are good for, if there are."""

    used: int | None
    gpus_used: int | None
    use: int | None


class NodeLimit:
    """What nodes of one kind can earn in all.

    Parameters
    ----------
    packing : the knapsacks of a node of the kind.
    counts : the variable of each shape's count on the kind's nodes; `modes` are those by mode (see `hosts`).
    prices : per side of the kind, the multipliers of its dimensions; any non-negative ones give a valid bound. Or
        cases of what a node holds, each with its own.
    """

    def __init__(
        self,
        packing: Packing,
        counts: Mapping[int, int],
        modes: ByMode,
        extra: Extra,
        prices: Sequence[Multipliers | Forks] = (),
    ) -> None:
        self._packing = packing
        self._counts, self._modes, self._extra = counts, modes, extra
        self._prices = prices

    @property
    def variables(self) -> list[int]:
        """The counts, and what counts nodes and GPUs in use, and what use is left."""
        extra = [variable for variable in self._extra if variable is not None]
        by_mode = (variable for modes in self._modes.values() for variable in modes.values())
        return [*self._counts.values(), *by_mode, *extra]

    def limit(self, costs: Mapping[int, int]) -> int:
        """Return a value that the costs of what all nodes of the kind hold never exceed."""
        worth = {shape: costs[variable] for shape, variable in self._counts.items()}
        extra = {s: {mode: costs[variable] for mode, variable in modes.items()} for s, modes in self._modes.items()}
        per_node, per_gpu, per_use = (0 if variable is None else costs[variable] for variable in self._extra)
        per_use = max(0, per_use)
        best = self._packing.idle(per_use)
        for position, side in enumerate(self._packing.kind.sides):
            prices = self._prices[position] if position < len(self._prices) else {}
            if isinstance(prices, Mapping):
                earned = self._packing.earnings(side, worth, extra, per_gpu, prices, per_use)
            elif extra or per_use:
                raise Unproved("cases of what a node holds are told apart where it is not known what they are worth")
            else:
                earned = told_apart(self._packing, side, prices, worth, per_gpu)
            best = max(best, earned + per_node)
        return self._packing.kind.size * best


class Packing:
    """Exact knapsacks of one node of a kind, for any prices.

    `dimensions` is what a node's contents must keep to beside its GPUs; `gpus` are those that are healthy, `shapes`
    what it may hold, and `room` how many of each at the most.

    Parameters
    ----------
    useful : what is idle on a node is good for, where that is asked.
    """

    def __init__(self, problem: Problem, kind: Kind, useful: Useful | None = None) -> None:
        self._useful = useful
        self.shapes: dict[int, Shape] = {s: problem.shapes[s] for s in kind.shapes}
        self.kind = kind
        self.gpus = len(kind.node.healthy_gpus())
        self.room = {s: room_for(kind, shape) for s, shape in self.shapes.items()}
        self.dimensions = dimensions(problem, kind)
        self._problem = problem

    @cached_property
    def least_loads(self) -> Mapping[int, int]:
        """The thousandths of a GPU that each shape that is on part of one takes at the least (see `least_load`)."""
        partial = (s for s, shape in self.shapes.items() if shape.request.partial)
        return {s: least_load(self._problem, s, self.kind.node) for s in partial}

    @cached_property
    def asks(self) -> Mapping[int, tuple[int, ...]]:
        """What a replica of each shape takes of the host, in the order of `capacities`."""
        names = tuple(capacities(self.kind))
        return {s: tuple(requested_of(shape.request, name) for name in names) for s, shape in self.shapes.items()}

    def idle(self, per_use: int) -> int:
        """Return what an empty node earns."""
        return 0 if self._useful is None else per_use * self._useful.untouched[-1]

    def earnings(
        self,
        side: Side,
        worth: Mapping[int, int],
        extra: ByMode,
        per_gpu: int,
        prices: Multipliers,
        per_use: int = 0,
    ) -> int:
        """Return a value that no content of one side earns more than, what it pays for resources included.

        Parameters
        ----------
        worth : what a replica of each shape earns; `per_gpu` what each GPU in use earns on top (often negative), and
            `per_use` what each unit of use does that is left, never negative.
        extra : what replicas of some shapes earn on top by how they are on a GPU, which is told of all ways then.
        """
        known = self.known(prices)
        total = self.paid(known)
        if per_gpu > 0:  # whatever a GPU in use earns, all of them might
            total, per_gpu = total + per_gpu * self.gpus, 0
        hosts: dict[int, list[int]] = {}
        shares: dict[int, int] = {}
        for s in side.shapes:
            value = worth[s] - self.price(s, known)
            room, request = self.room[s], self.shapes[s].request
            if request.gpus:
                value += per_gpu * request.gpus
            if value + max(extra.get(s, _NOTHING).values()) <= 0 or room <= 0:
                continue
            if request.partial:
                shares[s] = value
            elif request.gpus:
                hosts.setdefault(request.gpus, []).extend([value] * room)
            else:
                total += value * room
        rest = None if self._useful is None or not per_use else Rest(self._useful, per_use)
        shared = self._best_shared(side, shares, extra, rest) + per_gpu
        if shared > 0 and shares:
            hosts.setdefault(1, []).extend([shared] * self.gpus)
        earned = [packed(hosts, gpus) for gpus in self._blocks(side)]
        if rest is None:
            return total + sum(taken[-1] for taken in earned)
        left = reversed(rest.useful.untouched)
        return total + max(taken + rest.each * use for taken, use in zip(reduce(_joined, earned), left, strict=True))

    def known(self, prices: Multipliers) -> Multipliers:
        """Return the prices of dimensions that there are."""
        return {d: price for d, price in prices.items() if price > 0 and d < len(self.dimensions)}

    def paid(self, known: Multipliers) -> int:
        """Return what all that a node has costs."""
        return sum(price * self.dimensions[d].capacity for d, price in known.items())

    def price(self, shape: int, known: Multipliers) -> int:
        """Return what a replica of a shape pays for its part of it."""
        return sum(price * self.dimensions[d].amounts.get(shape, 0) for d, price in known.items())

    def _blocks(self, side: Side) -> tuple[int, ...]:
        """Return the GPUs of each part of a node that what a side holds is packed into by itself."""
        if not (self.kind.node.islands or self.kind.node.sockets):
            return (self.gpus,)
        return blocks_for(self.kind, [self.shapes[s] for s in side.shapes])

    def _best_shared(self, side: Side, values: Mapping[int, int], extra: ByMode, rest: Rest | None) -> int:
        """Return what shares or instances on one GPU earn at the most, with what it has left."""
        if not values:
            return 0
        return max((self.best_card(side, card, values, extra, rest) for card in side.cards), default=0)

    def best_card(
        self, side: Side, card: Card, values: Mapping[int, int], extra: ByMode = _NO_EXTRA, rest: Rest | None = None
    ) -> int:
        """Return what one GPU earns at the most, shared or cut, whichever is better."""
        uncut = {s: value + extra.get(s, _NOTHING).get("", 0) for s, value in values.items() if s in card.loads}
        best = self._knapsack(card, {s: value for s, value in uncut.items() if value > 0}, rest)
        if self.kind.geometry is None:
            return best
        worth: dict[str, int] = {}
        for s, profiles in side.profiles.items():
            if s in values and s in card.shapes:
                more = extra.get(s, _NOTHING)
                for profile in profiles:
                    worth[profile] = max(values[s] + more.get(profile, 0), worth.get(profile, 0))
        return max(best, self._best_layout(self.kind.geometry, worth, rest)) if worth else best

    def _best_layout(self, geometry: Geometry, worth: Mapping[str, int], rest: Rest | None) -> int:
        """Return what one GPU earns at the most that is cut, with what it has left."""
        if rest is None:
            return best_layout(geometry, worth)
        return max(
            sum(worth[name] * count for name, count in held) + rest.each * rest.useful.cut(geometry, held)
            for held in layouts_within(geometry, frozenset(worth))
        )

    def _knapsack(self, card: Card, values: Mapping[int, int], rest: Rest | None) -> int:
        step = gcd(card.parts, *(card.loads[s] for s in values))
        items: dict[int, list[int]] = {}
        for s, value in values.items():
            load = card.loads[s]
            items.setdefault(load // step, []).extend([value] * min(self.room[s], card.parts // load))
        if not items:
            return 0
        earned = packed(items, card.parts // step)
        if rest is None:
            return earned[-1]
        left = rest.useful.rests(card.parts)[card.parts - step :: -step]
        return max(value + rest.each * use for value, use in zip(earned[1:], left, strict=True))


def _joined(first: Iterable[int], second: Iterable[int]) -> list[int]:
    """Return what two blocks of GPUs earn in all, by how many GPUs are taken."""
    one, other = list(first), list(second)
    most = len(one) + len(other) - 2
    return [
        max(one[i] + other[n - i] for i in range(max(0, n - len(other) + 1), min(n, len(one) - 1) + 1))
        for n in range(most + 1)
    ]
