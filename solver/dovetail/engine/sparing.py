"""The least cost, where almost all that asks is admitted and what it costs is left to decide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dovetail.engine.bounds import Bounds
from dovetail.engine.budget import Budget
from dovetail.engine.generation.thrift import cheaper, roomy
from dovetail.model.state import State
from dovetail.plan.model import TierResult
from dovetail.progress import Stop

FULL: Final = 0.995
"""The part of what asks that is admitted, before patterns are mixed, where cost comes first."""

ALMOST_FULL: Final = 0.95
"""The same once patterns are mixed."""

_TIME = 0.8  # of what is left


def sparing(
    bounds: Bounds, state: State, now: Sequence[TierResult], budget: Budget, stop: Stop, part: float
) -> Iterator[State]:
    """Yield states after the LP of least cost, which is a bound as well and may take half of the bounds' time.

    Parameters
    ----------
    state, now : the one at hand, and its tiers.
    part : of what asks, that is to be admitted in every tier; else nothing is yielded.
    """
    if budget.spent() or not roomy(bounds.problem, now, part):
        return
    spare = 0.5 * budget.seconds_before(bounds.until)
    budget.hold_back(-min(spare, bounds.prove_cost(now)))
    yield from cheaper(bounds.fleet.priced, state, stop, budget.part(0.0, _TIME).out_of_time)
