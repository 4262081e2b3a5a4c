"""How many counts the exact model of the whole has."""

from __future__ import annotations

from tests.support.specs import make_spec, node, place, workload

from dovetail.model.part import PartModel
from dovetail.model.state import today_state
from dovetail.problem import Problem, compile_problem
from dovetail.rules import context_of


def problem_of(*, replicas: int = 1, movable: bool = False) -> Problem:
    """Return one of eight nodes, each with one that runs and is told of as so many."""
    spec = make_spec(
        [node(f"n{i}", 2) for i in range(8)],
        [workload("new", 2, gpus=1), *(workload(f"w{i}", replicas, gpus=1, movable=movable) for i in range(8))],
        running={f"w{i}#0": place(f"n{i}", 0) for i in range(8)},
    )
    return compile_problem(context_of(spec))


def places_of(problem: Problem) -> int:
    part = PartModel(problem, range(len(problem.nodes)), today_state(problem))
    return sum(map(len, part.variables.slots.values()))


def test_what_may_not_move_is_counted_where_it_runs() -> None:
    problem = problem_of()
    assert problem.counts == places_of(problem) == 8 + 8
    part = PartModel(problem, range(len(problem.nodes)), today_state(problem))
    assert all(len(part.variables.of_shape[shape]) == 1 for shape in problem.bound)


def test_what_may_move_or_wants_more_is_counted_everywhere() -> None:
    for problem in (problem_of(movable=True), problem_of(replicas=2)):
        assert not problem.bound
        assert problem.counts == places_of(problem) == 8 + 8 * 8
