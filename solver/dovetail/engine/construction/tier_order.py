"""What the order of the tiers, which is the user's (S5.1), makes of a search: what is decided before what."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from dovetail.objectives.slo import Shortfall
from dovetail.problem import Problem


def left_to_decide(problem: Problem) -> int | None:
    """Return the place of the tier that is left to decide once all is admitted, None where there is none.

    It is that of the cost, else that of what idle GPU is good for.
    """
    places = range(len(problem.tiers))
    idle = (place for place in places if problem.tiers[place].asks_idle)
    return next(chain(_costs(problem), idle), None)


def leaves_idle(problem: Problem) -> bool:
    """Tell whether what is left to decide once all is admitted is what idle GPU is good for."""
    place = left_to_decide(problem)
    return place is not None and problem.tiers[place].asks_idle


def costs_before_idle(problem: Problem) -> bool:
    """Tell whether what nodes cost comes before what idle GPU is good for, where a tier asks for each."""
    idle = next((place for place, tier in enumerate(problem.tiers) if tier.asks_idle), 0)
    return any(place < idle for place in _costs(problem))


def costs_before_moves(problem: Problem) -> bool:
    """Tell whether what nodes cost comes before who moves of what runs today."""
    first = next(_costs(problem), None)
    kinds = [tier.kind for tier in problem.tiers[:first]]
    return bool(problem.present) and first is not None and "disruption" not in kinds


def promises_first(problem: Problem) -> bool:
    """Tell whether what is missing of promises comes before what is left to decide once all is admitted."""
    return any(isinstance(tier, Shortfall) for tier in problem.tiers[: left_to_decide(problem)])


def _costs(problem: Problem) -> Iterator[int]:
    """Yield the places of the tiers of what nodes cost."""
    return (place for place, tier in enumerate(problem.tiers) if tier.counts_nodes)
