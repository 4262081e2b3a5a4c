"""Where a search starts: with today's state, filled up, or with what a hint tells if that is better."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.construction.bandwise import filled_by_bands, outrun
from dovetail.engine.construction.clearing import with_room
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.forgoing import without_too_many
from dovetail.engine.construction.mending import mended
from dovetail.engine.construction.served import without_surplus
from dovetail.engine.hinted import hinted
from dovetail.model.legal import legalise
from dovetail.model.score import better, hard_policies, owed, sound, view_of
from dovetail.model.state import State, today_state
from dovetail.objectives.violations import Mend
from dovetail.placement import Places
from dovetail.problem import Problem
from dovetail.progress import Stop


def start(
    problem: Problem, hint: Places | None, stop: Stop, begun: State | None = None
) -> tuple[State, frozenset[str]]:
    """Return a state to search from, and the hard policies that it breaks: those remain unpaid.

    Parameters
    ----------
    begun : what is filled up, by default today's state, which is also begun with where hard policies are broken.
    """
    state = without_too_many(problem, _filled(problem, today_state(problem) if begun is None else begun, hint, stop))
    unpaid = owed(problem, state, hard_policies(problem))
    if unpaid and begun is not None:
        return start(problem, hint, stop)
    if hint and not stop and (told := hinted(problem, hint)) is not None:
        other = _filled(problem, told, None, stop)
        if better(problem, other, state, unpaid):
            state, unpaid = other, owed(problem, other, unpaid)
    spared = without_surplus(problem, state)
    return (spared if spared is not state and better(problem, spared, state, unpaid) else state), unpaid


def untouched(problem: Problem) -> State | None:
    """Return today's state with nothing added, None where that is no plan."""
    state = legalise(problem, today_state(problem))
    if not sound(problem, view_of(problem, state)) or owed(problem, state, hard_policies(problem)):
        return None
    return state


def mended_first(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return today's state mended before it is filled up, where another one leaves something to mend.

    What is added where something is missing keeps others from evening out, who would have to leave for it.

    Parameters
    ----------
    state : the other one, returned where this is no better plan.
    over : tells when time has run out.
    """
    mend = next((tier for tier in problem.tiers if isinstance(tier, Mend)), None)
    if mend is None or stop or over() or not mend.measure(view_of(problem, state), problem.context):
        return state
    bare = untouched(problem)
    early = None if bare is None else mended(problem, bare, stop, over)
    if early is None or early is bare:
        return state
    found = _filled(problem, early, None, stop)
    return found if better(problem, found, state, frozenset()) else state


def roomy_first(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with room made for what waits: of today's state before lower bands come, or of that one.

    Parameters
    ----------
    over : tells when time has run out.
    """
    if outrun(problem, state) and (bare := untouched(problem)) is not None:
        found = filled_by_bands(problem, bare, stop, over)
        if better(problem, found, state, frozenset()):
            return found
    return with_room(problem, state, stop, over)


def _filled(problem: Problem, begun: State, hint: Places | None, stop: Stop) -> State:
    first = construct(problem, begun, stop, hint)
    state = legalise(problem, first)
    if state is first:
        return state
    # What cannot stand alone has gone and left room.
    again = legalise(problem, construct(problem, state, stop, hint))
    return again if sound(problem, view_of(problem, again)) else state
