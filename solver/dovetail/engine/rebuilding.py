"""The best state of few nodes built anew: whoever stands alone where it is, then gangs, then who waits.

Steps that make a state better look at few nodes or at one replica, and a gang that is on the nodes that somebody else
needs stays there. Here all gangs are lifted and placed jointly where the others leave room, as in any construction
(decision 0111); in fleets of a few dozen nodes one gang, or one replica of a whole node, is a large part of a band.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.engine.budget import Budget
from dovetail.engine.record import Record
from dovetail.engine.start import start
from dovetail.model.score import view_of
from dovetail.progress import Stop

_MOST_PAIRS = 100_000  # of a shape and a node: a construction takes moments up to there
_WORK = 2e-6  # units, for one such pair
_VISITS = 200  # in a search


@dataclass(slots=True)
class Rebuilding:
    """The times in a search that its best state is built anew: where others led further, and some still wait."""

    best: Record
    stop: Stop
    _done: tuple[int, ...] | None = None  # what was admitted the last time

    def steps(self, budget: Budget) -> Iterator[bool]:
        """Do so in turns with others; yield whether the best state is better."""
        for _ in range(_VISITS):
            if self._over(budget):
                return
            yield self.run(budget)

    def run(self, budget: Budget) -> bool:
        """Build the best state anew if it admits something else than the last time; tell whether that is better."""
        best = self.best
        if self._over(budget) or best.admitted == self._done:
            return False
        self._done = best.admitted
        budget.work -= _WORK * self._pairs
        found, unpaid = start(best.problem, view_of(best.problem, best.state).places, self.stop)
        return not unpaid and best.offer(found)

    def _over(self, budget: Budget) -> bool:
        """Tell whether nothing can come of it: who runs would move, it would take long, or nobody waits."""
        unfit = bool(self.best.problem.present) or self._pairs > _MOST_PAIRS or bool(self.best.unpaid)
        return unfit or self.best.full or budget.spent() or bool(self.stop)

    @property
    def _pairs(self) -> int:
        return len(self.best.problem.nodes) * len(self.best.problem.shapes)
