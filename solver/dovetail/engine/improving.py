"""Rounds of parts planned anew, side by side, from the best state on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dovetail.engine.budget import Budget
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.parts.lns import Neighbourhoods
from dovetail.engine.parts.rounds import Round, Task, improve
from dovetail.engine.record import Record
from dovetail.engine.solvers.answer import Effort
from dovetail.model.score import owed
from dovetail.model.state import State
from dovetail.objectives import Tier
from dovetail.problem import Problem
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Stop

_PART_WORK = 0.2, 0.05  # of each part, and of one of a large model: what does not close in that holds up a round
_ROUND = 4  # parts planned side by side; fixed, so that plans do not depend on the number of processes
_NODES_PER_ROUND = 1000  # a measure of the whole takes as long as a round of parts on so many nodes, or longer


@dataclass(slots=True)
class Improving:
    """Rounds of parts for one search: where its best state is taken up, and what it takes."""

    problem: Problem
    jobs: Jobs
    stop: Stop
    best: Record
    _neighbourhoods: Neighbourhoods = field(init=False)
    _turn: int = 0

    def __post_init__(self) -> None:
        self._neighbourhoods = Neighbourhoods(self.problem)

    def rounds(self, budget: Budget) -> Iterator[bool]:
        """Re-plan parts, round after round, until work or time runs out, or the gap asked for is reached.

        Yields whether a round led further. After one in which a part had no solution at all, nothing is held.
        """
        whole = lost = False
        while not (whole or self.stop or budget.spent() or self.best.close_enough()):
            parts = self._drawn()
            done = self._round(parts, () if lost else self.best.closed, budget)
            lost = done.lost
            taken = done.state is not self.best.state and self.best.holds(done.state)
            if taken:
                self._take(done.state)
            yield taken and done.better
            whole = done.closed == (True,) and len(parts[0]) == len(self.problem.nodes)

    def _drawn(self) -> list[list[int]]:
        """Return the parts of a round; tiers that are left to decide lead in turn."""
        leads = self.best.leads
        lead = leads[self._turn % len(leads)] if leads else None
        return self._neighbourhoods.draw(self.best.state, _ROUND, lead)

    def _round(self, parts: list[list[int]], held: tuple[Tier, ...], budget: Budget) -> Round:
        most = _PART_WORK[self.problem.counts > EXACT_VARIABLES]
        effort = Effort(min(most, budget.work / _ROUND))
        task = Task(self.problem, self.problem.search_tiers, self.best.unpaid, held)
        done = improve(task, self.best.state, parts, effort, self.jobs, self.stop, budget.deadline, self._turn)
        self._turn += 1
        for closed in done.closed:
            self._neighbourhoods.learn(closed)
        budget.work -= max(done.work, 0.01)
        return done

    def _take(self, state: State) -> None:
        """Take a state as the best one, and tell of it now and then."""
        self.best.state = state
        if self.best.unpaid:
            self.best.unpaid = owed(self.problem, state, self.best.unpaid)
        self.best.hand_out()
        if self._turn % (1 + len(self.problem.nodes) // _NODES_PER_ROUND) == 0:
            self.best.report()
