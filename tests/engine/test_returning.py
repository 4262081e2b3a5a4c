"""What runs goes back to its place where that is free, once a search is over; plans of parts alone verify."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.support.mig_specs import tiny_mig
from tests.support.specs import make_spec, node, place, workload
from tests.support.tiny_squads import tiny_squads

from dovetail.engine import ladder, solve
from dovetail.engine.construction.returning import free_spots, returned
from dovetail.model.score import view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.placement import Place
from dovetail.problem import Present, Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of
from dovetail.spec import Spec, Workload
from dovetail.verify import lines, verify


def problem_of(work: list[Workload], running: dict[str, Place], nodes: int = 2) -> Problem:
    return compile_problem(context_of(make_spec([node(f"n{i}", 2) for i in range(nodes)], work, running=running)))


def back(problem: Problem, state: State) -> State:
    found = returned(problem, state, free_spots(problem, state), Stop())
    assert found is not None
    return found


def moves(problem: Problem, state: State) -> int:
    view = view_of(problem, state)
    return sum(len(view.moved(workload)) for workload in problem.spec.workloads)


def without(state: State, index: int, where: Present) -> State:
    """Return a state without one replica that stays on its place."""
    fill = state.fill(index).copy()
    fill.kept[where] -= 1
    fill.slots[Slot(where.shape)] -= 1
    return state.with_fills({index: Fill(+fill.slots, +fill.kept)})


def test_who_was_evicted_though_there_is_room_goes_back() -> None:
    running = {f"w#{i}": place(f"n{i}", 0, 1) for i in (0, 1)}
    problem = problem_of([workload("w", 2, gpus=2, preemptible=True)], running)
    today = today_state(problem)
    (where,) = problem.present[0]
    evicted = without(today, 0, where)
    assert sum(evicted.admitted().values()) == 1
    after = back(problem, evicted)
    assert sum(after.admitted().values()) == 2
    assert moves(problem, after) == 0


def test_who_was_to_move_stays_where_it_runs() -> None:
    problem = problem_of([workload("w", 1, gpus=2)], {"w#0": place("n0", 0, 1)})
    (where,) = problem.present[0]
    moved = without(today_state(problem), 0, where)
    elsewhere = Fill()
    elsewhere.slots[Slot(where.shape)] = 1
    moved = moved.with_fills({1: elsewhere})
    assert moves(problem, moved) == 1
    assert moves(problem, back(problem, moved)) == 0


def test_gangs_go_back_as_a_whole_or_not_at_all() -> None:
    gang = workload("g", 2, gpus=2, type="gang", preemptible=True)
    running: dict[str, Place] = {f"g#{i}": place(f"n{i}", 0, 1) for i in (0, 1)}
    problem = problem_of([gang, workload("v", 1, gpus=1, priority=9)], running)
    shape = problem.shapes_of_role["v", ""]
    away = State()
    assert sum(back(problem, away).admitted().values()) == 2
    other = Fill()
    other.slots[Slot(shape)] = 1
    taken = away.with_fills({1: other})
    assert returned(problem, taken, free_spots(problem, taken), Stop()) is None


def test_nothing_goes_back_where_others_are() -> None:
    work = [workload("w", 1, gpus=2, preemptible=True), workload("v", 1, gpus=1, priority=9)]
    problem = problem_of(work, {"w#0": place("n0", 0, 1)}, 1)
    other = Fill()
    other.slots[Slot(problem.shapes_of_role["v", ""])] = 1
    taken = State().with_fills({0: other})
    assert returned(problem, taken, free_spots(problem, taken), Stop()) is None


@pytest.mark.parametrize(("made", "seed", "work"), [(tiny_mig, 339, 0.01), (tiny_squads, 69, 0.05)])
def test_plans_of_parts_alone_verify(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[int], Spec], seed: int, work: float
) -> None:
    """A share came back to a GPU as an instance that it had tried; names moved who may not be moved."""
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    spec = made(seed)
    found = verify(spec, solve(spec, Limits(work=work)))
    assert found.ok, list(lines(found))
