"""Room is made for a higher band before a lower one takes it."""

from __future__ import annotations

import pytest
from tests.support.specs import make_spec, node, place, workload

from dovetail.engine.construction.clearing import with_room
from dovetail.engine.start import roomy_first, start
from dovetail.model.score import view_of
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of


def problem(low: int, *, movable: bool = True) -> Problem:
    """Return one of two half-used nodes, and of work of two bands that has room there, but not the higher one's."""
    work = [
        workload("run", 2, gpus=1, movable=movable),
        workload("wide", 1, gpus=2, priority=900),
        workload("low", low, gpus=1, priority=-1),
    ]
    running = {"run#0": place("a", 0), "run#1": place("b", 0)}
    return compile_problem(context_of(make_spec([node("a", 2), node("b", 2)], work, running=running)))


def admitted(given: Problem, *, first: bool) -> dict[str, int]:
    """Return how many replicas of each workload there are, with room made for bands as they come, or afterwards."""
    begun, unpaid = start(given, None, Stop())
    assert not unpaid
    found = (roomy_first if first else with_room)(given, begun, Stop(), lambda: False)
    view = view_of(given, found)
    return {w.id: len(view.admitted(w)) for w in given.spec.workloads}


def test_room_is_made_before_lower_bands_come() -> None:
    assert admitted(problem(2), first=False) == {"run": 2, "wide": 0, "low": 2}
    assert admitted(problem(2), first=True) == {"run": 2, "wide": 1, "low": 0}


@pytest.mark.parametrize("low", [0, 2])
def test_who_may_not_move_makes_no_room(low: int) -> None:
    assert admitted(problem(low, movable=False), first=True) == {"run": 2, "wide": 0, "low": low}


def test_without_lower_bands_room_is_made_as_ever() -> None:
    assert admitted(problem(0), first=True) == admitted(problem(0), first=False) == {"run": 2, "wide": 1, "low": 0}
