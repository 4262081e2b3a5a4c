"""How much one node of a kind can earn at given prices: an upper bound in exact integers.

A node lies within one side (see `sides`). Within it CPU, memory, resources and their classes are priced by
multipliers, and what is left is packed exactly: shares into one GPU (a knapsack over its parts), replicas of whole
GPUs and shared GPUs into the node's GPUs (a knapsack over their number), island by island where no replica is across
several. Replicas without GPUs count as often as they have room. What GPUs have left may earn as well (see `idle`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, reduce
from itertools import accumulate
from math import gcd
from typing import Final, NamedTuple

from dovetail.mig import Geometry
from dovetail.problem import Problem, Shape
from dovetail.proof.cutting import best_layout, layouts_within
from dovetail.proof.hosts import ByMode
from dovetail.proof.idle import Useful
from dovetail.proof.kinds import Kind, blocks_for, dimensions, room_for
from dovetail.proof.sides import Card, Side

_NOTHING: Final[Mapping[str, int]] = {"": 0}
Prices = Mapping[int, int]  # per dimension of the node (see `dimensions`), over the certificate's denominator


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
    prices : per side of the kind, the multipliers of its dimensions; any non-negative ones give a valid bound.
    """

    def __init__(
        self,
        packing: Packing,
        counts: Mapping[int, int],
        modes: ByMode,
        extra: Extra,
        prices: Sequence[Prices] = (),
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
            best = max(best, self._packing.earnings(side, worth, extra, per_gpu, prices, per_use) + per_node)
        return self._packing.kind.size * best


class Packing:
    """Exact knapsacks of one node of a kind, for any prices.

    `dimensions` is what a node's contents must keep to beside its GPUs.

    Parameters
    ----------
    useful : what is idle on a node is good for, where that is asked.
    """

    def __init__(self, problem: Problem, kind: Kind, useful: Useful | None = None) -> None:
        self._useful = useful
        self._shapes: dict[int, Shape] = {s: problem.shapes[s] for s in kind.shapes}
        self.kind = kind
        self._gpus = len(kind.node.healthy_gpus())
        self._room = {s: room_for(kind, shape) for s, shape in self._shapes.items()}
        self.dimensions = dimensions(problem, kind)

    @cached_property
    def _asks(self) -> Mapping[int, list[tuple[int, int]]]:
        found: dict[int, list[tuple[int, int]]] = {s: [] for s in self._shapes}
        for position, dimension in enumerate(self.dimensions):
            for s, amount in dimension.amounts.items():
                found[s].append((position, amount))
        return found

    def idle(self, per_use: int) -> int:
        """Return what an empty node earns."""
        return 0 if self._useful is None else per_use * self._useful.untouched[-1]

    def earnings(
        self,
        side: Side,
        worth: Mapping[int, int],
        extra: ByMode,
        per_gpu: int,
        prices: Prices,
        per_use: int = 0,
    ) -> int:
        """Return a value that no content of one side earns more than, what it pays for resources included.

        Parameters
        ----------
        worth : what a replica of each shape earns; `per_gpu` what each GPU in use earns on top (often negative), and
            `per_use` what each unit of use does that is left, never negative.
        extra : what replicas of some shapes earn on top by how they are on a GPU, which is told of all ways then.
        """
        known = {d: price for d, price in prices.items() if price > 0 and d < len(self.dimensions)}
        total = sum(price * self.dimensions[d].capacity for d, price in known.items())
        if per_gpu > 0:  # whatever a GPU in use earns, all of them might
            total, per_gpu = total + per_gpu * self._gpus, 0
        hosts: dict[int, list[int]] = {}
        shares: dict[int, int] = {}
        for s in side.shapes:
            value = worth[s] - sum(known.get(d, 0) * amount for d, amount in self._asks[s])
            room, request = self._room[s], self._shapes[s].request
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
            hosts.setdefault(1, []).extend([shared] * self._gpus)
        earned = [packed(hosts, gpus) for gpus in self._blocks(side)]
        if rest is None:
            return total + sum(taken[-1] for taken in earned)
        left = reversed(rest.useful.untouched)
        return total + max(taken + rest.each * use for taken, use in zip(reduce(_joined, earned), left, strict=True))

    def _blocks(self, side: Side) -> tuple[int, ...]:
        """Return the GPUs of each part of a node that what a side holds is packed into by itself."""
        if not (self.kind.node.islands or self.kind.node.sockets):
            return (self._gpus,)
        return blocks_for(self.kind, [self._shapes[s] for s in side.shapes])

    def _best_shared(self, side: Side, values: Mapping[int, int], extra: ByMode, rest: Rest | None) -> int:
        """Return what shares or instances on one GPU earn at the most, with what it has left."""
        if not values:
            return 0
        return max((self._best_card(side, card, values, extra, rest) for card in side.cards), default=0)

    def _best_card(self, side: Side, card: Card, values: Mapping[int, int], extra: ByMode, rest: Rest | None) -> int:
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
            items.setdefault(load // step, []).extend([value] * min(self._room[s], card.parts // load))
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


def packed(items: Mapping[int, list[int]], room: int) -> list[int]:
    """Return the greatest sum of values of items, by size, that fit up to so much room; all values are positive."""
    best = [0] * (room + 1)
    for size, values in items.items():
        sums = list(accumulate(sorted(values, reverse=True)[: room // size]))
        before = best
        best = list(before)
        for count, value in enumerate(sums, start=1):
            offset = count * size
            for have in range(offset, room + 1):
                if (earned := before[have - offset] + value) > best[have]:
                    best[have] = earned
    return best
