"""New patterns that pay at given prices, lot by lot (E2, E8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

from dovetail.engine.budget import Budget
from dovetail.engine.fleet_rows import Lot
from dovetail.engine.knapsack import Knapsack
from dovetail.engine.patterns import Master, Mixture
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.kinds import Kind

_PATIENCE = 3  # rounds that gain nothing to speak of
_RESTS = 2
_SOLVE_WORK = 0.015
_FEW = 4  # so many nodes left, and what a node holds is asked for its own worth as well


class Pricing:
    """Adds patterns to a master, with a budget.

    Lots of equal nodes share what is found for any of them, and take turns at being asked.

    Parameters
    ----------
    lots : the master's.
    """

    def __init__(self, problem: Problem, lots: Sequence[Lot], budget: Budget, stop: Stop) -> None:
        self.budget = budget
        self._stop = stop
        self._rest: Counter[int] = Counter()  # rounds that a lot is left out
        self._turn = 0
        groups: dict[Hashable, list[int]] = {}
        for position, lot in enumerate(lots):
            groups.setdefault(_alike(problem, lot.kind), []).append(position)
        self._groups = [
            (members, [Knapsack(problem, lots[members[0]].kind, side) for side in lots[members[0]].kind.sides])
            for members in groups.values()
        ]

    @property
    def over(self) -> bool:
        """Whether there is nothing left to search with."""
        return bool(self._stop) or self.budget.spent()

    @property
    def hurried(self) -> bool:
        """Whether the search must end at once."""
        return bool(self._stop) or self.budget.out_of_time()

    def solve(self, master: Master) -> Mixture:
        """Solve the LP, at its cost."""
        self.budget.work -= _SOLVE_WORK + 1e-5 * len(master.columns)
        return master.solve()

    def grow(self, master: Master, mixture: Mixture, worth: Mapping[int, float] | None = None) -> bool:
        """Add the best patterns of every kind of lot that has nodes left; tell whether any is new.

        A lot of which no pattern would gain anything rests for some rounds.

        Parameters
        ----------
        worth : of shapes, wherever they are, instead of the LP's prices.
        """
        grown = False
        self._turn += 1
        for lots, sides in self._groups:
            left = [lot for lot in lots if master.sizes[lot]]
            for lot in left[self._turn % len(left) :] + left[: self._turn % len(left)] if left else ():
                if self._rest[lot] > 0:
                    self._rest[lot] -= 1
                elif self._ask(master, mixture, lot, left, sides, worth or mixture.prices[lot]):
                    grown = True
                    break
                if self.over:
                    return grown
        return grown

    def _ask(
        self,
        master: Master,
        mixture: Mixture,
        asked: int,
        lots: Sequence[int],
        sides: Sequence[Knapsack],
        prices: Mapping[int, float],
    ) -> bool:
        """Add the best patterns of a lot, to those too of the alike that gain by them; tell whether any is new."""
        grown, most = False, 0.0
        for node in sides:
            self.budget.work -= node.work
            for _, pattern in node.price(prices, master.demand):
                gains = {lot: mixture.gain(lot, pattern) * master.sizes[lot] for lot in lots}
                most = max(most, gains[asked])
                for lot, gain in gains.items():
                    if gain > (0.0 if lot == asked else master.wish.grain):
                        grown |= master.add(lot, pattern)
        if most <= master.wish.grain:
            self._rest[asked] = _RESTS
        return grown

    def settle(self, master: Master, mixture: Mixture, rounds: int, aim: float) -> Mixture:
        """Price and solve in turn until the LP reaches `aim`, gains no more, or rounds or budget run out."""
        idle = 0
        self._rest.clear()
        for _ in range(rounds):
            if self.over or mixture.value >= aim or idle > _PATIENCE:
                break
            grown = self.grow(master, mixture)
            if not grown and +self._rest:
                self._rest.clear()
                grown = self.grow(master, mixture)
            if sum(master.sizes) <= _FEW:
                grown |= self.grow(master, mixture, master.wish.worth)
            if not grown:
                break
            better = self.solve(master)
            idle = 0 if better.value > mixture.value + master.wish.grain else idle + 1
            mixture = better
        return mixture


def _alike(problem: Problem, kind: Kind) -> Hashable:
    """Return what decides the patterns of a kind."""
    node = kind.node
    modes = tuple(problem.modes(s, node) for s in kind.shapes if problem.shapes[s].request.partial)
    held = (node.accelerator, len(node.healthy_gpus()), node.cpu, node.memory, tuple(sorted(node.resources.items())))
    return held, modes, kind.shapes, kind.sides, kind.gpu_sides, tuple(sorted(kind.most.items()))
