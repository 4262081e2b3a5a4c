"""Ruin and recreate for one search: what came anew placed anew, so that less of the idle GPU is useless."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from dovetail.engine.budget import Budget
from dovetail.engine.generation.ruins import Ruins
from dovetail.engine.record import Record
from dovetail.progress import Stop

_LEAST, _MOST = 50, 1000  # attempts to a step; where a better state was refused, half as many from the best one on
_WORK = 0.0005  # units, for one
_LATE = 0.15  # of work and time
_SHAKEN = 3  # attempts taken though they make more useless, where nothing is found any more
_VAIN = 20  # steps in a row in which nothing better was found


@dataclass(frozen=True, slots=True)
class Recreating:
    """The ruins of one search: where its best state is taken up, and what it takes.

    A state with less useless GPU is refused where it has less of an earlier tier: rules that are weighed, and levels
    that are preferred, are not looked at where replicas are placed. Nodes that cost are not taken into use.
    """

    best: Record
    stop: Stop

    @property
    def late(self) -> float:
        """The share of work and time that it is to have after all else, where that is still about cost."""
        return _LATE if self._in_use else 0.0

    @property
    def _place(self) -> int | None:
        """The place of the tier that asks for what is idle, None where none does."""
        tiers = enumerate(self.best.problem.tiers)
        return next((place for place, tier in tiers if tier.asks_idle), None)

    @property
    def _in_use(self) -> bool:
        """Whether nodes cost, and that comes first."""
        return any(tier.counts_nodes for tier in self.best.problem.tiers[: self._place or 0])

    def run(self, budget: Budget) -> Iterator[bool]:
        """Place what came anew elsewhere, as long as a tier asks for what is idle; yield whether that is better."""
        problem, source, place = self.best.problem, Random(1), self._place
        if place is None or self.best.unpaid:
            return
        number = most = max(_MOST, len(problem.nodes))
        at, vain, shaken = None, 0, False  # the state that the ruins are of
        while vain < _VAIN and not (budget.spent() or self.stop or problem.tiers[place] in self.best.closed):
            if at is not self.best.state:
                at, ruins = self.best.state, Ruins(problem, self.best.state, source, in_use=self._in_use)
                ruins.shake(_SHAKEN if shaken else 0)
            if not ruins.hosts:
                return
            found = ruins.attempts(number, lambda: bool(self.stop) or budget.out_of_time())
            budget.work -= _WORK * number
            taken = False
            if found:
                at = ruins.state()
                taken = self.best.offer(at)
            refused = found and not (taken or shaken)
            number = max(_LEAST, number // 2) if refused else min(most, 2 * number)
            shaken = not (taken or refused)
            at = None if shaken else at
            vain = 0 if taken else vain + 1
            yield taken
