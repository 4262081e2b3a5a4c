"""New patterns that pay at given prices, lot by lot."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from dovetail.engine.budget import Budget
from dovetail.engine.contents.gpu_contents import Floats
from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.patterns import Column, Mixture, Pattern, Whole
from dovetail.engine.contents.width import NARROW, WIDE, Width
from dovetail.engine.generation.fleet_rows import Lot
from dovetail.engine.generation.master import Master
from dovetail.engine.parts.jobs import Jobs
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.kinds import Kind

Prices = Sequence[Mapping[int, float]]

_PATIENCE = 3  # rounds of a stage that gain nothing to speak of
_PROMISE = 50.0  # times what is no matter, that patterns promise where an LP without gain is stuck for now
_RESTS = 2
_SOLVE_WORK = 1e-3, 1e-6, 4e-5  # of an LP, of each of its patterns, and of a step of the simplex algorithm
_HASTE = 3.0  # seconds that an LP may take when time has run out
_WHOLE_SHARE = 0.3  # of the time that is left, for whole numbers
_STEP_WORK = 1.6e-4  # of a step there
_FEW = 4  # so many nodes left, and what a node holds is asked for its own worth as well
_FEW_NODES = 1000  # where the LP takes longer than pricing, and patterns are dropped after every round (measured)
_INERTIA = 0.6


@dataclass(frozen=True, slots=True)
class _Stage:
    """How patterns are asked for: how hard, and at prices that keep which share of those of the round before.

    Prices of an LP over few patterns swing from round to round; prices between them find in fewer rounds what stays.
    """

    width: Width
    inertia: float


_STAGES: Final = (_Stage(NARROW, _INERTIA), _Stage(NARROW, 0.0), _Stage(WIDE, 0.0))
# Where rules keep sides of nodes apart, a round asks for many times as many nodes. There only the narrow way pays:
# 10,000 GPUs are mixed in a third of the time, to a value that differs by less than a millionth.
_SIDED: Final = (_Stage(NARROW, 0.0),)


@dataclass(frozen=True, slots=True)
class Priced:
    """What one side of a node may best hold, and its multipliers, from where its next pricing goes on."""

    patterns: tuple[Pattern, ...]
    multipliers: Floats


@dataclass(frozen=True, slots=True)
class PriceJob:
    """A node by the sides that it may take, to be priced.

    Parameters
    ----------
    prices : of replicas, by key.
    left : the most replicas per shape that a node may hold.
    per_use : what each unit of use costs that is lost (`Wish`).
    """

    nodes: Sequence[Knapsack]
    prices: Mapping[int, float]
    left: Mapping[int, int]
    width: Width
    per_use: float = 0.0

    def run(self, stop: Stop) -> list[Priced]:
        """Return what each side may best hold."""
        found = []
        for node in self.nodes:
            patterns = tuple(pattern for _, pattern in node.price(self.prices, self.left, self.width, self.per_use))
            found.append(Priced(patterns, node.multipliers))
        return found


@dataclass(frozen=True, slots=True)
class _Group:
    """Lots of equal nodes, and such a node by the sides that it may take."""

    lots: Sequence[int]
    nodes: Sequence[Knapsack]


def _sides(problem: Problem, lot: Lot) -> list[Knapsack]:
    return [Knapsack(problem, lot.kind, side, lot.keys, lot.units) for side in lot.kind.sides]


class Pricing:
    """Adds patterns to a master, with a budget.

    Lots of equal nodes share what is found for any of them, and take turns at being asked.

    Parameters
    ----------
    lots : the master's.
    jobs : where nodes are priced, by default in this process.
    """

    def __init__(
        self, problem: Problem, lots: Sequence[Lot], budget: Budget, stop: Stop, jobs: Jobs | None = None
    ) -> None:
        self.budget = budget
        self._jobs = jobs or Jobs()
        self._stop = stop
        self._until: float | None = None
        self._least = 0.0  # work that is left for later
        self._rest: Counter[int] = Counter()  # rounds that a lot is left out
        self._turn = 0
        self._promise = 0.0  # what the patterns of the last round would gain if prices stayed as they are
        groups: dict[Hashable, list[int]] = {}
        for position, lot in enumerate(lots):
            groups.setdefault(_alike(lot.kind), []).append(position)
        self._few_nodes = sum(len(lot.nodes) for lot in lots) <= _FEW_NODES
        self._groups = [_Group(members, _sides(problem, lots[members[0]])) for members in groups.values()]
        self._stages = _STAGES if all(len(group.nodes) == 1 for group in self._groups) else _SIDED

    @property
    def over(self) -> bool:
        """Whether there is nothing left to search with, for the time being or at all."""
        return self.budget.work <= self._least or self.budget.late(self._until) or self.spent

    @property
    def spent(self) -> bool:
        """Whether there is nothing left to search with at all."""
        return bool(self._stop) or self.budget.spent()

    @property
    def hurried(self) -> bool:
        """Whether the search must end at once."""
        return bool(self._stop) or self.budget.out_of_time()

    @property
    def left(self) -> tuple[float, float]:
        """The work and the seconds that are left, as many as there may ever be where none are limited."""
        seconds = self.budget.seconds()
        return self.budget.work, sys.float_info.max if seconds is None else seconds

    def pause_after(self, time_share: float, work_share: float) -> None:
        """Ask for no patterns once a share of the time or work that is left now is gone; 1: until the end."""
        self._least = max(0.0, self.budget.work * (1 - work_share))
        self._until = self.budget.moment(time_share)

    def solve(self, master: Master) -> Mixture:
        """Solve the LP, at its cost; where time runs out, it has a moment to end in haste."""
        left = self.budget.seconds()
        found = master.solve(None if left is None else max(left, _HASTE))
        each, column, step = _SOLVE_WORK
        self.budget.work -= each + column * len(master.columns) + step * found.steps
        self.budget.clock.cut |= found.value == -inf and left is not None
        return found

    def whole(
        self,
        master: Master,
        mixture: Mixture,
        most: float = inf,
        known: Sequence[tuple[Column, int]] = (),
        least: float = -inf,
    ) -> Whole:
        """Return whole numbers of known patterns for what is left, about as good as there are, at their cost.

        Parameters
        ----------
        most : seconds that it may take where any are limited.
        known : a solution to begin with, of patterns in the LP; `least` is what a solution is to be worth.
        """
        left = self.budget.seconds()
        found = master.whole(mixture, None if left is None else min(most, _WHOLE_SHARE * left), known, least)
        self.budget.work -= _STEP_WORK * found.steps
        self.budget.clock.cut |= found.cut
        return found

    def grow(self, master: Master, mixture: Mixture, prices: Prices, width: Width) -> bool:
        """Add the best patterns of every kind of lot that has nodes left; tell whether any is new.

        A lot of which no pattern would gain anything rests for some rounds.

        Parameters
        ----------
        prices : of replicas, lot by lot, at which patterns are asked for; what they gain is told by the mixture's.
        """
        grown = False
        self._turn += 1
        self._promise = 0.0
        turns = [(group, self._in_turn(master, group)) for group in self._groups]
        while turns and not self.over:
            asked = [(group, lot, turn) for group, turn in turns if (lot := next(turn, None)) is not None]
            jobs = [
                PriceJob(group.nodes, prices[lot], master.demand, width, master.wish.per_use)
                for group, lot, _ in asked
            ]
            turns = []
            for (group, lot, turn), found in zip(asked, self._jobs.solve(jobs, self._stop), strict=False):
                self.budget.work -= sum(node.work for node in group.nodes) * width.work
                if found is not None and self._add(master, mixture, lot, group, found):
                    grown = True
                else:
                    turns.append((group, turn))
        return grown

    def _in_turn(self, master: Master, group: _Group) -> Iterator[int]:
        """Yield the lots of a group that have nodes left, each turn from another one on, but for those at rest."""
        left = [lot for lot in group.lots if master.sizes[lot]]
        first = self._turn % len(left) if left else 0
        for lot in left[first:] + left[:first]:
            if self._rest[lot] > 0:
                self._rest[lot] -= 1
            else:
                yield lot

    def _add(self, master: Master, mixture: Mixture, asked: int, group: _Group, found: Sequence[Priced]) -> bool:
        """Add the best patterns of a lot, to those too of the alike that gain by them; tell whether any is new.

        On few nodes, where patterns are chosen in whole numbers again and again, also those that would gain if nodes
        cost nothing.
        """
        grown, most = False, 0.0
        lots = [lot for lot in group.lots if master.sizes[lot]]
        for node, priced in zip(group.nodes, found, strict=True):
            node.multipliers = priced.multipliers
            for pattern in priced.patterns:
                gains = {lot: mixture.gain(lot, pattern) * master.sizes[lot] for lot in lots}
                most = max(most, gains[asked])
                for lot, gain in gains.items():
                    spared = mixture.wish.cost[lot] * master.sizes[lot] if self._few_nodes else 0.0
                    if gain + spared > (0.0 if lot == asked else master.wish.grain):
                        grown |= master.add(lot, pattern)
        self._promise += most
        if most <= master.wish.grain:
            self._rest[asked] = _RESTS
        return grown

    def settle(self, master: Master, mixture: Mixture, rounds: int, aim: float) -> Mixture:
        """Price and solve in turn until the LP reaches `aim`, gains no more, or rounds or budget run out.

        Cheap pricing comes first; a stage that finds something to speak of begins again with the first.
        """
        stage = idle = 0
        prices = mixture.prices
        self._rest.clear()
        for _ in range(rounds):
            if self.over or mixture.value >= aim:
                break
            prices = _between(prices, mixture.prices, self._stages[stage].inertia)
            grown = self.grow(master, mixture, prices, self._stages[stage].width)
            if sum(master.sizes) <= _FEW:
                grown |= self.grow(master, mixture, master.own_worth(), self._stages[stage].width)
            if grown and self._few_nodes:
                master.forget(mixture)
            better = self.solve(master) if grown else mixture
            if better.value == -inf:
                break
            gained = better.value > mixture.value + master.wish.grain
            mixture = better
            idle = 0 if gained else idle + 1
            if gained:
                stage = 0
            elif not grown or (idle > _PATIENCE and self._promise <= _PROMISE * master.wish.grain):
                stage, idle = stage + 1, 0
                self._rest.clear()
                if stage == len(self._stages):
                    break
        return mixture


def _between(before: Prices, now: Prices, inertia: float) -> Prices:
    """Return prices between those before and now, lot by lot."""
    if not inertia:
        return now
    return [
        {s: inertia * old.get(s, 0.0) + (1 - inertia) * price for s, price in new.items()}
        for old, new in zip(before, now, strict=True)
    ]


def _alike(kind: Kind) -> Hashable:
    """Return what decides the patterns of a kind."""
    node = kind.node
    held = (node.accelerator, len(node.healthy_gpus()), node.cpu, node.memory, tuple(sorted(node.resources.items())))
    return held, kind.shapes, tuple(side.key for side in kind.sides), tuple(sorted(kind.most.items()))
