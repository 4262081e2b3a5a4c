"""New patterns that pay at given prices, kind of node by kind of node (E2, E8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dovetail.engine.budget import Budget
from dovetail.engine.knapsack import Knapsack
from dovetail.engine.patterns import Master, Mixture, counts_of
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.kinds import Kind

_KEEP = (1.0, 0.5, 0.3)  # share of the first prices in those of the first rounds and of all that follow
_SETTLED = 2e-6  # a round that gains less than this ends a run of rounds
_DULL = 1e-6  # a gain over all nodes of a kind below this share of the LP's value
_RESTS = 2
_SOLVE_WORK = 0.015
_FEW = 4  # so many nodes left, and what a node holds is asked for its own worth as well


class Pricing:
    """Adds patterns to a master, with a budget.

    Parameters
    ----------
    kinds : the kinds of nodes; their positions are the master's classes.
    centre : prices that are near those at the end; prices of early LPs swing far around them.
    bound : a value that the master cannot exceed, whatever the patterns.
    """

    def __init__(
        self,
        problem: Problem,
        kinds: Sequence[Kind],
        centre: Mapping[int, float],
        bound: float,
        budget: Budget,
        stop: Stop,
    ) -> None:
        self.centre = centre
        self.bound = bound
        self.budget = budget
        self._stop = stop
        self._rest: Counter[int] = Counter()  # rounds that a kind is left out
        self._nodes = [[Knapsack(problem, kind, side) for side in kind.sides] for kind in kinds]

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

    def grow(self, master: Master, mixture: Mixture, prices: Mapping[int, float]) -> bool:
        """Add the best patterns of every kind that has nodes left and that is not at rest; tell whether any is new.

        A kind of which no pattern would gain anything at the LP's own prices rests for some rounds.
        """
        grown = False
        for position, sides in enumerate(self._nodes):
            if not master.sizes.get(position):
                continue
            if self._rest[position] > 0:
                self._rest[position] -= 1
                continue
            gain = 0.0
            for node in sides:
                if self.over:
                    return grown
                self.budget.work -= node.work
                for _, pattern in node.price(prices, master.demand):
                    grown |= master.add(position, pattern)
                    earned = sum(mixture.prices.get(s, 0.0) * n for s, n in counts_of(pattern).items())
                    gain = max(gain, earned - mixture.nodes[position])
            if gain * master.sizes[position] <= _DULL * abs(mixture.value):
                self._rest[position] = _RESTS
        return grown

    def settle(self, master: Master, mixture: Mixture, rounds: int, aim: float) -> Mixture:
        """Price and solve in turn until the LP reaches `aim`, gains no more, or rounds or budget run out."""
        idle = 0
        self._rest.clear()
        for turn in range(rounds):
            if self.over or mixture.value >= aim or idle > len(_KEEP):
                break
            keep = _KEEP[min(turn, len(_KEEP) - 1)] if idle < len(_KEEP) else 0.0
            prices = {s: keep * self.centre.get(s, 0.0) + (1 - keep) * p for s, p in mixture.prices.items()}
            if idle:
                self._rest.clear()
            grown = self.grow(master, mixture, prices)
            if sum(master.sizes.values()) <= _FEW:
                grown |= self.grow(master, mixture, master.worth)
            better = self.solve(master) if grown else mixture
            idle = 0 if better.value > mixture.value + _SETTLED * abs(mixture.value) else idle + 1
            mixture = better
        return mixture
