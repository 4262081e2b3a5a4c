"""Rounds of parts planned anew, side by side, from the best state on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from math import exp
from random import Random

from dovetail.engine.budget import Budget
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.parts.lns import Neighbourhoods
from dovetail.engine.parts.rounds import Round, Task, improve
from dovetail.engine.record import Record, Undecided
from dovetail.engine.solvers.answer import Effort
from dovetail.model.score import owed
from dovetail.model.state import State
from dovetail.objectives import Tier
from dovetail.problem import Problem
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Stop

_PART_WORK = 0.2, 0.05  # of each part, and of one of a large model: what does not close in that holds up a round
_ROUND = 4  # parts planned side by side; fixed, so that plans do not depend on the number of processes
_AROUND_WORK = 0.25  # of each part that is looked around in
_AROUND = 2  # of these side by side: what waits is divided among them
_WIDE = 8  # nodes of one
_FEW_NODES = 32  # on so many, one is much of the whole
_NEXT_TIER = 0.25  # of the chance of a tier to lead, that of the next one with the same gap
_MUCH = 0.1  # a gap, relative, above which a tier is not more urgent: of few domains, one is half of all
_FADES = 0.35  # exponent of what is left of a chance after each round in vain
_LEAST_CHANCE = 0.1  # that is left of it
_NODES_PER_ROUND = 1000  # a measure of the whole takes as long as a round of parts on so many nodes, or longer


@dataclass(slots=True)
class Improving:
    """Rounds of parts for one search: where its best state is taken up, and what it takes.

    Where proofs tell of tiers that are left to decide, each round has one of them that leads: what there is of those
    before is kept, not sought, and nodes are drawn by what they lose of it.
    """

    problem: Problem
    jobs: Jobs
    stop: Stop
    best: Record
    _small: Neighbourhoods = field(init=False)
    _losing: Neighbourhoods = field(init=False)
    _random: Random = field(default_factory=lambda: Random(1))
    _vain: Counter[str] = field(default_factory=Counter)  # rounds in a row, by the tier that led
    _lost: bool = False  # whether a part had no solution at all: nothing is held in the round after
    _whole: bool = False  # whether a part of all nodes was solved to proof
    _turn: int = 0

    def __post_init__(self) -> None:
        self._small = Neighbourhoods(self.problem)
        self._losing = Neighbourhoods(self.problem, _WIDE)

    def exactly(self, budget: Budget) -> Iterator[bool]:
        """Re-plan small parts, most of them to proof, until work or time runs out or the gap asked for is reached.

        Yields whether a round led further.
        """
        while not self._over(budget):
            lead = self._lead()
            parts = self._small.draw(self.best.state, _ROUND, lead.losses if lead else None)
            whole = len(parts[0]) == len(self.problem.nodes)
            lead = None if whole else lead  # a proof is one of all tiers
            most = _PART_WORK[self.problem.counts > EXACT_VARIABLES]
            done = self._round(parts, lead, Effort(min(most, budget.work / _ROUND)), budget)
            for closed in done.closed:
                self._small.learn(closed)
            self._whole = whole and done.closed == (True,)
            yield self._taken(done, lead)

    def around(self, budget: Budget) -> Iterator[bool]:
        """Look around the best state in larger parts, half of nodes that lose by a proof, likewise.

        Yields whether a round led further; none on few nodes, nor where something runs or did: no proof leads there.
        """
        if not self.problem.fresh or len(self.problem.nodes) <= _FEW_NODES:
            return
        while not self._over(budget):
            lead = self._lead()
            parts = self._losing.draw_losing(self.best.state, _AROUND, lead.losses if lead else None)
            effort = Effort(min(_AROUND_WORK, budget.work / _AROUND), around=True)
            yield self._taken(self._round(parts, lead, effort, budget), lead)

    def _over(self, budget: Budget) -> bool:
        return self._whole or bool(self.stop) or budget.spent() or self.best.close_enough()

    def _lead(self) -> Undecided | None:
        """Draw a tier that is left to decide: an earlier one more often, or one with a larger gap, unless in vain."""
        undecided = self.best.undecided
        chances = [
            min(each.gap, _MUCH) * _NEXT_TIER**rank * max(_LEAST_CHANCE, exp(-_FADES * self._vain[each.tier.name]))
            for rank, each in enumerate(undecided)
        ]
        return self._random.choices(undecided, chances)[0] if any(chances) else None

    def _held(self, lead: Undecided | None) -> tuple[Tier, ...]:
        """Return the tiers to keep as they are: what is proved, and those before one that leads.

        Without one that leads, what is proved after a tier that is not is sought: it may be there because nobody
        moves, or as less is admitted of an earlier tier.
        """
        if self._lost:
            return ()
        tiers, closed = self.problem.tiers, self.best.closed
        if lead is None:
            return tuple(takewhile(lambda tier: tier in closed, tiers))
        before = tiers[: tiers.index(lead.tier)]
        return (*before, *(tier for tier in closed if tier not in before))

    def _round(self, parts: list[list[int]], lead: Undecided | None, effort: Effort, budget: Budget) -> Round:
        task = Task(self.problem, self.problem.search_tiers, self.best.unpaid, self._held(lead))
        done = improve(task, self.best.state, parts, effort, self.jobs, self.stop, budget.deadline, self._turn)
        self._turn += 1
        self._lost = done.lost
        budget.work -= max(done.work, 0.01)
        return done

    def _taken(self, done: Round, lead: Undecided | None) -> bool:
        """Take what a round came to, if it may be; tell whether it led further."""
        if lead is not None:
            self._vain[lead.tier.name] = 0 if done.better else self._vain[lead.tier.name] + 1
        if done.state is self.best.state:
            return False
        if not self.best.holds(done.state):
            return self.best.offer(done.state)  # without what is too many, if that is better
        self._take(done.state)
        return done.better

    def _take(self, state: State) -> None:
        """Take a state as the best one, and tell of it now and then."""
        self.best.state = state
        if self.best.unpaid:
            self.best.unpaid = owed(self.problem, state, self.best.unpaid)
        self.best.hand_out()
        if self._turn % (1 + len(self.problem.nodes) // _NODES_PER_ROUND) == 0:
            self.best.report()
