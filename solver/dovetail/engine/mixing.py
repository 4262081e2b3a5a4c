"""Patterns mixed anew on sets of nodes for one search: from which states on, and what is looked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from dovetail.engine.budget import Budget
from dovetail.engine.construction.tier_order import leaves_idle
from dovetail.engine.fleet.pursuit import WIDE
from dovetail.engine.generation.generate import Generation, Mixed
from dovetail.engine.generation.remixing import Reached, remixed
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.record import Record
from dovetail.engine.sparing import ALMOST_FULL, FULL, Sparing
from dovetail.engine.turns import longer, several
from dovetail.model.score import hard_policies, owed
from dovetail.model.state import State
from dovetail.progress import Stop

_SHARE = 0.7  # of the work
_THRIFTY_STEP = 4  # sets in vain to a step, where cost is what is looked for: they lead furthest there (measured)
_IDLE_STEP = 12  # sets to a step, where it is what idle GPU is good for: parts lead hardly anywhere there (measured)
_AMPLE = 5.0  # times what construction takes: each better state is filled up as a whole


@dataclass(slots=True)
class Mixing:
    """Sets of nodes for one search: where its best state is taken up, and what it takes.

    Where hardly more can be admitted, the least cost is looked for, once for all that is admitted by then, and sets
    go on from the cheapest state that this comes to.
    """

    best: Record
    jobs: Jobs
    stop: Stop
    sparing: Sparing
    _begin: list[State] = field(default_factory=list)  # states that keep hard rules, to begin with
    _spared: tuple[int, ...] = ()  # what was admitted when the least cost was last looked for
    _thrifty: bool = False  # whether cost is what is looked for
    _settled: bool = False  # whether it was looked for with what little is admitted late

    def run(self, budget: Budget, mixed: Mixed, construction: float) -> Iterator[bool]:
        """Mix patterns anew on a few nodes at a time, with a part of the work; yield whether a set led further.

        Parameters
        ----------
        mixed : what mixing those of all nodes came to; some of its states may be worth more in all than the best one,
            which an earlier tier decides.
        construction : seconds that it takes.
        """
        short = (left := budget.seconds()) is not None and left < _AMPLE * construction
        if short or self.best.close_enough() or budget.spent():
            self.sparing.run(budget, ALMOST_FULL)
            return
        given = budget.part(budget.work * _SHARE)
        budget.work -= given.work
        sets = self._mixed(given, mixed)
        yield from several(sets, _IDLE_STEP) if self._idle else longer(sets, self._step)
        budget.work += given.work
        self.sparing.run(budget, ALMOST_FULL)

    @property
    def _idle(self) -> bool:
        return leaves_idle(self.best.problem)

    def _step(self) -> int:
        return _THRIFTY_STEP if self._thrifty else 1

    def _mixed(self, budget: Budget, mixed: Mixed) -> Iterator[bool]:
        best = self.best
        self._keep(mixed.states)
        self._settled = mixed.settled
        self._spared = best.admitted if best.full_but_for(WIDE) and mixed.settled else ()
        begin = Generation(best.problem, best.state, best.bounds.fleet.rows, self.stop, None, self.jobs, best.full)
        for candidate in remixed(begin, self._begin, mixed.planned, lambda late: self._reached(budget, late), budget):
            if candidate is not None:
                best.offer(candidate)
            yield candidate is not None  # on its way from another state it may not be the best one yet
            if best.close_enough():
                break
            if not self._settled and best.admitted != self._spared and best.full_but_for(WIDE):
                self._spared = best.admitted
                self._keep(self.sparing.run(budget, FULL))

    def _reached(self, budget: Budget, late: bool) -> Reached:
        """Return what the search has come to; late, cost is looked for where hardly more can be admitted."""
        if late and not self._settled:
            self._settled = True
            self._keep(self.sparing.run(budget, ALMOST_FULL))
        best = self.best
        done = self._thrifty = best.full_but_for(WIDE if late or self._idle else 0.0)
        leads = best.leads_of_spared if done else [led.losses for led in best.undecided]
        return Reached(best.state, done, best.bounds_of_bands, leads)

    def _keep(self, states: Iterable[State]) -> None:
        """Keep states to begin with that keep all hard rules."""
        problem = self.best.problem
        hard = hard_policies(problem)
        self._begin += [state for state in states if not owed(problem, state, hard)]
