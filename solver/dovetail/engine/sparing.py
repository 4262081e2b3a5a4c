"""The least cost, where almost all that asks is admitted and what it costs is left to decide."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from dovetail.engine.budget import Budget
from dovetail.engine.construction.tier_order import left_to_decide
from dovetail.engine.generation.thrift import admitting, cheaper, roomy
from dovetail.engine.record import Record
from dovetail.model.state import State
from dovetail.progress import Stop

FULL: Final = 0.995
"""The part of what asks that is admitted, before patterns are mixed, where cost comes first."""

ALMOST_FULL: Final = 0.95
"""The same once patterns are mixed."""

_TIME = 0.8  # of what is left


@dataclass(slots=True)
class Sparing:
    """The times in a search that the least cost is looked for, one for all that may be admitted in the end.

    Who finds room for one more replica elsewhere than in the cheapest state has a dear one again.
    """

    best: Record
    stop: Stop
    _done: tuple[int, ...] | None = None  # what was admitted when anything cheaper was found
    _took: float = 0.0  # seconds, the last time

    def run(self, budget: Budget, part: float) -> list[State]:
        """Follow the LP of least cost, which is a bound as well and may take half of the bounds' time.

        Parameters
        ----------
        part : of what asks, that is to be admitted in every tier; else nothing is looked for.

        Returns
        -------
        list
            The states that this came to, the last of which may be the best one by now. None where anything cheaper
            was found before for what is admitted, or where there is less time than it took before.
        """
        best, found = self.best, list[State]()
        place, left = left_to_decide(best.problem), budget.seconds()
        done = self._done == best.admitted or budget.spent() or (left is not None and left < self._took)
        if place is None or done or not roomy(best.problem, best.now, part):
            return found
        began, tier = time.monotonic(), best.problem.tiers[place]
        if not best.bounds.fleet.knows(tier):
            return found
        lp = best.bounds.fleet.asked_of(tier, priced=tier.counts_nodes)
        if tier.counts_nodes:
            spare = 0.5 * budget.seconds_before(best.bounds.until)
            budget.hold_back(-min(spare, best.bounds.prove_at(place, best.now)))
        else:
            admitting(lp, tier, {t.name: t.value for t in best.now[:place]}, best.state, budget.seconds())
        over = budget.part(0.0, _TIME).out_of_time
        for state in cheaper(lp, best.state, self.stop, over):
            found.append(state)
            if best.offer(state):
                self._done = best.admitted
                break
        self._took = time.monotonic() - began
        return found
