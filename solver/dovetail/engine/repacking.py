"""Shares of the nodes planned anew with all that runs on them, for one search.

Where much waits beside what runs, as after the loss of a zone, no chain of a few moves makes room for it. A share of
the alike nodes after the other is mixed anew (`Released`), those first on which most is idle: so many as are needed
move, and the patterns of few nodes are mixed in a part of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.engine.bounds import MUCH
from dovetail.engine.budget import Budget
from dovetail.engine.generation.patterns import MANY_NODES
from dovetail.engine.generation.released import Released, movable_of
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.record import Record
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Stop

_SHARE = 0.8  # of the work and the time
_OF_NODES = 0.3, 0.8  # that are mixed anew at a time, also of many: few times are left where filling them takes long
_TURN = 0.5  # of what is left of both, for each time
_VAIN = 2  # times in a row that nothing better was found
_MOST = 12  # times in all: filling nodes is no work that counts


@dataclass(frozen=True, slots=True)
class Repacking:
    """Nodes planned anew with all that runs on them, from the best state of a search on."""

    best: Record
    jobs: Jobs
    stop: Stop

    @property
    def due(self) -> bool:
        """Whether much waits beside what runs, as far as bounds tell, in a fleet too large for the exact model."""
        problem = self.best.problem
        large = bool(problem.present) and problem.counts > EXACT_VARIABLES and not self.best.unpaid
        return large and bool(self.best.admitted) and not self.best.full_but_for(MUCH)

    def run(self, budget: Budget, construction: float) -> None:
        """Plan shares of the nodes anew until hardly anything waits, or several led no further.

        Nothing is done where a hard policy limits how many may move in all.

        Parameters
        ----------
        construction : seconds that it takes.
        """
        given = budget.part(_SHARE * budget.work, _SHARE)
        before, turn, vain = given.work, 0, 0
        while self.due and vain < _VAIN and turn < _MOST and not (given.spent() or self.stop):
            better = self._turn(given, construction, turn)
            if better is None:
                break
            turn, vain = turn + 1, 0 if better else vain + 1
        budget.work -= before - given.work

    def _turn(self, budget: Budget, construction: float, number: int) -> bool | None:
        """Plan one share of the nodes anew; tell whether that is better, None where it may not be done."""
        problem, state = self.best.problem, self.best.state
        movable = movable_of(problem, state)
        if movable is None:
            return None
        given = budget.part(_TURN * budget.work, _TURN)
        before, rows = given.work, self.best.bounds.fleet.rows
        share = _OF_NODES[len(problem.nodes) > MANY_NODES]
        released = Released(
            problem, state, rows, self.stop, state, self.jobs, movable=movable, share=share, turn=number
        )
        better = [self.best.offer(candidate) for candidate in released.run(given, (), construction)]
        budget.work -= before - given.work
        return any(better)
