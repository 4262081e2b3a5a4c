"""Jobs give the same plans on every executor, and a round whose parts compete breaks no rule."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from tests.scenarios.shipped import spec_of
from tests.support.specs import make_spec, node, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.construction.construct import construct
from dovetail.engine.parts.jobs import JobAnswer, Jobs, SolveJob, process_pool
from dovetail.engine.parts.rounds import Task, divided, improve, windows
from dovetail.engine.solvers.answer import Effort
from dovetail.linear import Linear, Model
from dovetail.model.part import PartModel
from dovetail.model.score import debt, score, view_of
from dovetail.model.state import State, today_state
from dovetail.plan import write
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.rules.quota import Quota
from dovetail.spec import Spec

WORK = 0.3  # enough for several rounds of parts


def problem_of(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def knapsack(weights: list[int], limit: int) -> SolveJob:
    """Return a job that packs as much as fits, and then as few pieces as possible."""
    model = Model()
    pieces = [model.boolean(f"piece{index}") for index in range(len(weights))]
    load = Linear(dict(zip(pieces, weights, strict=True)))
    model.require(load, upper=limit)
    return SolveJob(model, (load, Linear(dict.fromkeys(pieces, -1))), {}, Effort(1.0))


JOBS = [knapsack([7, 9, 11, 13, 20], limit) for limit in (16, 20, 27, 33)]


def packed(answers: list[JobAnswer | None]) -> list[int]:
    return [JOBS[i].objectives[0].value(answer.values or []) for i, answer in enumerate(answers) if answer]


def test_a_job_improves_one_objective_after_the_other_and_stays_as_it_is() -> None:
    job = JOBS[1]
    rows = list(job.model.rows)
    answer = job.run(Stop())
    assert answer.closed
    assert answer.values == [0, 0, 0, 0, 1]
    assert job.model.rows == rows
    assert job.run(Stop()) == answer


def test_a_look_around_is_better_than_its_start_and_always_the_same() -> None:
    weights, limit, bins = [11 + 7 * number % 23 for number in range(30)], 60, range(5)
    model = Model()
    placed = {(piece, b): model.boolean(f"p{piece}-{b}") for piece in range(len(weights)) for b in bins}
    for piece in range(len(weights)):
        model.require(Linear({placed[piece, b]: 1 for b in bins}), upper=1)
    for b in bins:
        model.require(Linear({placed[piece, b]: weight for piece, weight in enumerate(weights)}), upper=limit)
    packed = Linear({variable: weights[piece] for (piece, _), variable in placed.items()})
    start = {variable: int(piece == b) for (piece, b), variable in placed.items()}
    job = SolveJob(model, (packed,), start, Effort(0.3, around=True))
    answer = job.run(Stop())
    assert answer.values is not None
    assert packed.value(answer.values) > packed.value(start)
    assert job.run(Stop()) == answer


def pools() -> list[Callable[[], Jobs]]:
    return [
        lambda: Jobs(),
        lambda: Jobs(lambda: process_pool(2), 2),
        lambda: Jobs(lambda: ThreadPoolExecutor(2), 2),
    ]


@pytest.mark.parametrize("make", pools(), ids=["here", "processes", "threads"])
def test_answers_come_in_order_wherever_jobs_are_solved(make: Callable[[], Jobs]) -> None:
    jobs = make()
    try:
        answers = jobs.solve(iter(JOBS), Stop())
    finally:
        jobs.close()
    assert packed(answers) == [16, 20, 27, 33]


@pytest.fixture(scope="module")
def in_one_process() -> str:
    return write(solve(spec_of("mixed-fleet"), Limits(work=WORK, jobs=1)))


def test_plans_do_not_depend_on_the_number_of_processes(in_one_process: str) -> None:
    told = _Phases()
    assert write(solve(spec_of("mixed-fleet"), Limits(work=WORK, jobs=2), reporter=told)) == in_one_process
    assert "improve" in told.phases


def test_plans_do_not_depend_on_the_executor(in_one_process: str) -> None:
    with ThreadPoolExecutor(3) as executor:
        plan = solve(spec_of("mixed-fleet"), Limits(work=WORK), jobs=Jobs.on(executor, 3))
        assert executor.submit(int).result() == 0  # it stays the caller's
    assert write(plan) == in_one_process


class _Phases(Reporter):
    def __init__(self) -> None:
        self.phases: list[str] = []

    def phase(self, name: str, detail: str = "") -> None:
        self.phases.append(name)


def test_a_killed_process_costs_its_round_and_no_more() -> None:
    pools: list[ProcessPoolExecutor] = []
    warnings: list[str] = []

    def make() -> Executor:
        pool = process_pool(1)
        assert isinstance(pool, ProcessPoolExecutor)
        pools.append(pool)
        return pool

    jobs = Jobs(make, 1, warn=warnings.append)
    try:
        assert packed(jobs.solve(JOBS, Stop())) == [16, 20, 27, 33]
        process = pools[0].submit(os.getpid).result()
        os.kill(process, signal.SIGKILL)
        assert pools[0].submit(os.getpid).exception() is not None
        assert not packed(jobs.solve(JOBS, Stop()))
        assert packed(jobs.solve(JOBS, Stop())) == [16, 20, 27, 33]
    finally:
        jobs.close()
    assert len(pools) == 2
    assert len(warnings) == 1
    assert "is started anew" in warnings[0]


class _Broken(Executor):
    def submit(self, *given: Any, **named: Any) -> Future[Any]:
        raise BrokenExecutor("gone")


def test_what_breaks_again_and_again_is_done_without() -> None:
    warnings: list[str] = []
    jobs = Jobs(_Broken, 2, warn=warnings.append)
    rounds = [packed(jobs.solve(JOBS, Stop())) for _ in range(3)]
    assert rounds[-1] == [16, 20, 27, 33]
    assert "in one process" in warnings[-1]


def test_a_stopped_search_waits_for_nobody() -> None:
    stop = Stop()
    stop.set()
    assert Jobs().solve(JOBS, stop) == [None] * len(JOBS)
    with ThreadPoolExecutor(1) as executor:
        blocked = Future[None]()
        executor.submit(blocked.result)
        answers = Jobs.on(executor, 1).solve(JOBS, stop)
        blocked.set_result(None)
    assert answers == [None] * len(JOBS)


def test_what_waits_is_divided_without_rest_and_gangs_stay_whole() -> None:
    spec = make_spec(
        [node("a", 8), node("b", 8)],
        [workload("x", 7, gpus=4), workload("gang", 3, type="gang", gpus=8), workload("y", 1, gpus=2)],
    )
    problem = problem_of(spec)
    for turn in range(4):
        shares = divided(problem, State(), 2, turn)
        for shape in problem.shapes:
            parts = [share.get(shape.index, 0) for share in shares]
            assert sum(parts) == shape.demand
            assert not shape.workload.atomic or 0 in parts
            assert shape.workload.atomic or max(parts) - min(parts) <= 1


def rounds_of(problem: Problem, parts: list[list[int]]) -> State:
    """Return what some rounds make of an empty cluster."""
    state = today_state(problem)
    task = Task(problem, problem.search_tiers)
    for turn in range(4):
        done = improve(task, state, parts, Effort(1.0), Jobs(), Stop(), turn=turn)
        assert score(problem, done.state) >= score(problem, state)
        state = done.state
    return state


def test_parts_that_compete_for_a_quota_keep_it() -> None:
    spec = make_spec(
        [node("a", 4), node("b", 4)],
        [workload("t/x", 8, gpus=1)],
        [policy("five", Quota((("gpus", 5000),)))],
    )
    problem = problem_of(spec)
    state = rounds_of(problem, [[0], [1]])
    assert sum(state.admitted().values()) == 5
    assert debt(problem, view_of(problem, state), frozenset(["five"])) == 0


@pytest.mark.parametrize("seed", range(0, 240, 4))
def test_rounds_never_break_a_rule_or_make_a_plan_worse(seed: int) -> None:
    problem = problem_of(tiny(seed))
    state = construct(problem, today_state(problem), Stop())
    hard = frozenset(policy.name for policy in problem.spec.policies if policy.enforcement.kind == "hard")
    if debt(problem, view_of(problem, state), hard) or len(problem.nodes) < 2:
        return
    if not _is_solution(problem, state):
        return
    half = len(problem.nodes) // 2
    parts = [list(range(half)), list(range(half, len(problem.nodes)))]
    done = improve(Task(problem, problem.search_tiers), state, parts, Effort(1.0), Jobs(), Stop(), turn=seed)
    assert score(problem, done.state) >= score(problem, state)
    assert debt(problem, view_of(problem, done.state), hard) == 0
    assert _is_solution(problem, done.state)


@pytest.mark.parametrize("seed", range(1, 120, 4))
def test_what_is_held_is_kept_and_a_round_tells_whether_it_is_better(seed: int) -> None:
    problem = problem_of(tiny(seed))
    state = construct(problem, today_state(problem), Stop())
    hard = frozenset(policy.name for policy in problem.spec.policies if policy.enforcement.kind == "hard")
    if len(problem.nodes) < 2 or debt(problem, view_of(problem, state), hard) or not _is_solution(problem, state):
        return
    parts = [[node] for node in range(len(problem.nodes))]
    held = tuple(tier for tier in problem.search_tiers if tier.kind == "admitted")[:1]
    task = Task(problem, problem.search_tiers, held=held)
    done = improve(task, state, parts, Effort(1.0), Jobs(), Stop(), turn=seed)
    before, after = (view_of(problem, one) for one in (state, done.state))
    for tier in held:
        assert tier.measure(after, problem.context) >= tier.measure(before, problem.context)
    assert done.better == (score(problem, done.state) > score(problem, state))


def _is_solution(problem: Problem, state: State) -> bool:
    """Tell whether the exact model of the whole has a state among its solutions."""
    part = PartModel(problem, range(len(problem.nodes)), State())
    for variable, count in part.variables.hint(state).items():
        part.model.lower[variable] = max(part.model.lower[variable], count)
        part.model.upper[variable] = min(part.model.upper[variable], count)
        if part.model.lower[variable] > part.model.upper[variable]:
            return False
    return (
        SolveJob(part.model, tuple(windows(part, problem.search_tiers)), {}, Effort(5.0)).run(Stop()).values
        is not None
    )
