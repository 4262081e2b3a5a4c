"""Solvers in a process of their own: the same plans, and the best so far however the process ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.scenarios.shipped import spec_of
from tests.support.specs import make_spec, node, workload

from dovetail.engine import processes, solve, solve_guarded
from dovetail.engine.guarded.guard import Grace, SolverProcess, last_of
from dovetail.engine.processes import dumps, loads
from dovetail.engine.solvers.answer import BackendTooLarge
from dovetail.plan import Plan, write
from dovetail.progress import Limits, Reporter, Stop
from dovetail.spec import Spec
from dovetail.verify import verify

WORK = Limits(work=0.05)


@pytest.fixture(scope="module")
def spec() -> Spec:
    return spec_of("seventy-b-endpoint")


@pytest.fixture(scope="module")
def expected(spec: Spec) -> Plan:
    return solve(spec, WORK)


class Heard(Reporter):
    """Keeps what it hears, and does something when a phase begins or at the n-th word on a tier."""

    def __init__(self, moment: str | int = "", do: Callable[[], object] = lambda: None) -> None:
        self.phases: list[str] = []
        self.warnings: list[str] = []
        self.words = 0
        self._moment, self._do = moment, do

    def phase(self, name: str, detail: str = "") -> None:
        self.phases.append(name)
        if name == self._moment:
            self._do()

    def tier(self, name: str, unit: str, value: int | None, bound: int | None) -> None:
        self.words += 1
        if self.words == self._moment:
            self._do()

    def warning(self, message: str) -> None:
        self.warnings.append(message)


def end(number: int) -> Callable[[], None]:
    def do() -> None:
        (child,) = multiprocessing.active_children()
        assert child.pid is not None
        os.kill(child.pid, number)

    return do


def test_plans_are_those_of_this_process(spec: Spec, expected: Plan) -> None:
    heard = Heard()
    assert write(solve_guarded(spec, WORK, reporter=heard)) == write(expected)
    assert heard.phases[:2] == ["compile", "construct"]
    assert not heard.warnings
    assert not multiprocessing.active_children()


def test_a_process_with_threads_is_never_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, native, method in ((1, "none", "fork"), (2, "none", "spawn"), (1, "ortools", "spawn")):
        monkeypatch.setattr(processes, "_threads", lambda found=threads: found)
        monkeypatch.setattr(processes, "_NATIVE", frozenset({native}))
        assert processes.context_to_start().get_start_method() == method


def test_one_process_takes_one_call_after_the_other(spec: Spec, expected: Plan) -> None:
    other = make_spec([node("a", 4)], [workload("x", 3, gpus=2)])
    ticks: list[int] = []
    with SolverProcess(tick=lambda: ticks.append(1)) as solver:
        assert write(solver.solve(spec, WORK)) == write(expected)
        (first,) = multiprocessing.active_children()
        plan = solver.solve(other, WORK)
        assert write(plan) == write(solve(other, WORK))
        assert solver.second_opinion(other, plan, None, Reporter(), Stop()).second_opinion is not None
        assert solver.certified(other, plan, None, Reporter(), Stop()).placements == plan.placements
        (last,) = multiprocessing.active_children()
        assert first.pid == last.pid
    assert ticks
    assert not multiprocessing.active_children()


@pytest.mark.parametrize(
    ("moment", "number"),
    [("exact", signal.SIGKILL), ("improve", signal.SIGSEGV), (1, signal.SIGKILL)],
)
def test_a_killed_search_leaves_a_plan(spec: Spec, moment: str | int, number: int) -> None:
    heard = Heard(moment, end(number))
    plan = solve_guarded(spec, WORK, reporter=heard)
    assert (plan.outcome.status, plan.outcome.stopped_by) == ("feasible", "crash")
    assert verify(spec, plan).ok
    assert plan.placements
    assert "the plan is the best so far" in heard.warnings[-1]


def test_what_was_proved_before_the_end_still_counts(spec: Spec) -> None:
    heard = Heard("bound", end(signal.SIGKILL))
    plan = solve_guarded(spec, WORK, reporter=heard)
    whole = solve(spec, WORK)
    assert plan.placements == whole.placements
    assert [tier.value for tier in plan.tiers] == [tier.value for tier in whole.tiers]
    assert {tier.name for tier in plan.tiers if tier.proved} <= {tier.name for tier in whole.tiers if tier.proved}


@pytest.mark.parametrize("moment", ["compile", "construct"])
def test_without_any_plan_yet_nothing_is_known(spec: Spec, moment: str) -> None:
    heard = Heard(moment, end(signal.SIGSTOP))  # it gets no further, and is then ended

    def then() -> None:
        if moment in heard.phases:
            end(signal.SIGKILL)()

    with SolverProcess(tick=then) as solver:
        plan = solver.solve(spec, WORK, reporter=heard)
    assert (plan.outcome.status, plan.outcome.stopped_by) == ("unknown", "crash")
    assert "there is no plan yet" in heard.warnings[-1]


def test_a_process_is_started_anew_after_its_end(spec: Spec, expected: Plan) -> None:
    with SolverProcess() as solver:
        assert solver.solve(spec, WORK, reporter=Heard("exact", end(signal.SIGKILL))).outcome.stopped_by == "crash"
        assert write(solver.solve(spec, WORK)) == write(expected)


def test_an_overrun_is_ended(spec: Spec) -> None:
    heard = Heard("exact", end(signal.SIGSTOP))
    limits = Limits(time=60.0, work=0.5)
    with SolverProcess(grace=Grace(time=-55.0)) as solver:
        plan = solver.solve(spec, limits, reporter=heard)
    assert plan.outcome.stopped_by == "time"
    assert verify(spec, plan).ok
    assert "did not end at its time limit" in heard.warnings[-1]


def test_a_search_that_does_not_stop_is_ended(spec: Spec) -> None:
    stop = Stop()

    def deaf() -> None:
        end(signal.SIGSTOP)()
        stop.set()

    with SolverProcess(grace=Grace(stop=0.0)) as solver:
        plan = solver.solve(spec, WORK, reporter=Heard("improve", deaf), stop=stop)
    assert plan.outcome.stopped_by == "interrupt"
    assert verify(spec, plan).ok


def test_a_search_that_is_stopped_before_a_first_plan_has_none(spec: Spec) -> None:
    """What is filled up in part until then must not replace a plan that was there before."""
    stop = Stop()
    plan = solve(spec, WORK, reporter=Heard("construct", stop.set), stop=stop)
    assert (plan.outcome.status, plan.outcome.stopped_by) == ("unknown", "interrupt")


def test_a_search_hears_that_it_is_to_stop(spec: Spec) -> None:
    stop = Stop()
    heard = Heard("exact", stop.set)
    plan = solve_guarded(spec, Limits(work=1000.0), reporter=heard, stop=stop)
    assert plan.outcome.stopped_by == "interrupt"
    assert not heard.warnings
    assert verify(spec, plan).ok


def test_too_little_memory_is_no_plan_or_the_best_so_far(spec: Spec) -> None:
    heard = Heard()
    plan = solve_guarded(spec, replace(WORK, memory=2**24), reporter=heard)
    assert plan.outcome.stopped_by == "crash"
    assert "memory" in heard.warnings[-1]


def test_what_a_search_raises_is_raised_here() -> None:
    with pytest.raises(AttributeError) as caught:
        solve_guarded(make_spec([node("a", 4)], [workload("x", gpus=1)]), hint=5)  # type: ignore[arg-type]
    assert "ladder.py" in "".join(caught.value.__notes__)


def test_a_second_opinion_too_large_to_ask_for_is_told(spec: Spec) -> None:
    error = loads(dumps(BackendTooLarge(3, 2)))
    assert isinstance(error, BackendTooLarge)
    assert (error.variables, error.largest, str(error)) == (3, 2, str(BackendTooLarge(3, 2)))


def test_a_certificate_is_no_reason_to_lose_a_plan(expected: Plan, spec: Spec) -> None:
    heard, ticks = Heard(), iter(range(100))

    def tick() -> None:
        if next(ticks) == 2:
            end(signal.SIGKILL)()

    with SolverProcess(tick=tick) as solver:
        assert solver.certified(spec, expected, None, heard, Stop()) == expected
    assert "the plan goes without" in heard.warnings[0]


def test_without_any_process_the_search_runs_here(
    spec: Spec, expected: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(solver: object, call: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(SolverProcess, "_started", refuse)
    heard = Heard()
    assert write(solve_guarded(spec, WORK, reporter=heard)) == write(expected)
    assert "no process of its own" in heard.warnings[0]


def test_the_last_words_of_a_process_that_native_code_ended_say_where_it_was() -> None:
    """As `faulthandler` prints them, after what the library said itself."""
    stack = ['  File "highs.py", line 9 in run', '  File "ladder.py", line 3 in solve']
    printed = ["a warning", "double free", "", "Fatal Python error: Aborted", "", "Current thread 0x1:", *stack]
    assert last_of(printed) == 'double free Fatal Python error: Aborted File "highs.py", line 9 in run'
    assert last_of(["first", "  last  one ", ""]) == "last one"
    assert last_of([]) == ""
