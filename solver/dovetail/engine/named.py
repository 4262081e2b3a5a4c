"""The exact model of the whole, climbed until names keep what it counts.

Models count replicas, and names come last. Of what rules ask of names, as who restarts where after a failure, models
may know less than there is. Solutions that names break or make worse are refused one by one, to find others;
what is proved is what the model proves with nothing refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.engine.budget import Budget
from dovetail.engine.exact import Climb, climb
from dovetail.engine.solvers.answer import Verdict
from dovetail.model.part import PartModel
from dovetail.model.score import owed, score, sound, view_of
from dovetail.model.state import State
from dovetail.objectives import sign_of
from dovetail.problem import Problem
from dovetail.progress import Stop

_MOST = 30  # solutions that are refused
_FOUND = Verdict.OPTIMAL, Verdict.FEASIBLE

_Score = tuple[int, ...]


def climb_named(
    problem: Problem,
    kept: frozenset[str],
    start: State | None,
    budget: Budget,
    stop: Stop,
    workers: int = 1,
    bounds: Sequence[int | None] = (),
) -> Climb:
    """Climb the tiers on the exact model of the whole, as far as names follow.

    Parameters
    ----------
    kept : hard policies that the model merely counts, and names have to keep.
    start : a plan to start from and to fall back on, None where none is known.
    bounds : what no plan exceeds that is as good as `start`, as far as that is known (`climb`).

    Returns
    -------
    Climb
        Its state is the best whose names keep these policies, `start` included; where there is none, the first
        solution of the model. Its tiers are those of the model.
    """
    best = None if start is None else (score(problem, start)[1:], start)
    reached = None if best is None else best[0]
    first, refused, work = None, list[State](), 0.0
    while first is None or not (len(refused) > _MOST or budget.spent() or stop):
        part = PartModel(problem, range(len(problem.nodes)), State())
        for state in refused:
            part.refuse(state)
        found = climb(part, problem.search_tiers, start, reached, budget, stop, workers, bounds)
        first, work = first or found, work + found.work
        if found.verdict not in _FOUND:
            break
        named = _named(problem, kept, found.state)
        if named is not None and (best is None or named > best[0]):
            best = named, found.state
        if best is not None and best[0] >= _told(found):  # all that is left is counted for no more
            break
        refused.append(found.state)
    if best is None:
        return replace(first, work=work)
    verdict = first.verdict if best[0][: len(first.tiers)] == _told(first) else Verdict.FEASIBLE
    return replace(first, verdict=verdict, state=best[1], work=work)


def _named(problem: Problem, kept: frozenset[str], state: State) -> _Score | None:
    """Return the tiers of a state by its names, None where these break what they have to keep."""
    if not sound(problem, view_of(problem, state)) or owed(problem, state, kept):
        return None
    return score(problem, state)[1:]


def _told(found: Climb) -> _Score:
    """Return the tiers of a solution as the model counts them, as far as it came."""
    return tuple(sign_of(answer.tier.sense) * answer.value for answer in found.tiers)
