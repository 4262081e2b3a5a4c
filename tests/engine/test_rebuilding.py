"""Gangs of the best state are placed anew beside all who stand alone, who stay, and before those who wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.engine.bounds import Bounds
from dovetail.engine.budget import DEFAULT_WORK, Budget
from dovetail.engine.incumbent import forget
from dovetail.engine.rebuilding import Rebuilding
from dovetail.engine.record import Record
from dovetail.engine.start import start
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Reporter, Stop
from dovetail.rules import context_of
from dovetail.rules.require import Require
from dovetail.spec import NodeSelector, WorkloadSelector

GANG, LARGE, SMALL = "gang", "large", "small"


def certified(**more: Any) -> Problem:
    """Return a certified node, a smaller one, a gang for either, and work for all of the first or for any."""
    nodes = [replace(node("c", 12), labels={"certified": "yes"}), node("plain", 8)]
    work = [
        workload(GANG, 2, type="gang", gpus=4, priority=900),
        workload(LARGE, gpus=12, priority=500),
        workload(SMALL, 3, gpus=1, priority=100),
    ]
    only = policy(
        "certified",
        Require(),
        workloads=WorkloadSelector(names=(LARGE,)),
        nodes=NodeSelector(match_labels={"certified": "yes"}),
    )
    return compile_problem(context_of(make_spec(nodes, work, [only], **more)))


def state_of(problem: Problem, *on: tuple[str, str, int]) -> State:
    """Return so many replicas of workloads on nodes."""
    fills: dict[int, Fill] = {}
    for name, where, count in on:
        index = problem.node_index[where]
        slots = fills.setdefault(index, Fill(Counter())).slots
        slots[Slot(problem.shapes_of_workload[name][0])] += count
    return State(fills)


def rebuilt(problem: Problem, state: State) -> Record:
    """Return the record of a search whose best state is built anew as long as that is better."""
    best = Record(problem, Bounds(problem, Stop()), Reporter(), forget, 0.0)
    assert best.offer(state)
    for _ in Rebuilding(best, Stop()).steps(Budget(DEFAULT_WORK)):
        pass
    return best


def test_a_gang_leaves_a_node_that_others_need() -> None:
    problem = certified()
    best = rebuilt(problem, state_of(problem, (GANG, "c", 2), (SMALL, "c", 1)))
    assert best.state.admitted()[problem.shapes_of_workload[LARGE][0]] == 0  # who stands alone stays
    best = rebuilt(problem, state_of(problem, (GANG, "c", 2)))
    assert best.state.fill(problem.node_index["c"]).counts() == {problem.shapes_of_workload[LARGE][0]: 1}
    assert best.state.fill(problem.node_index["plain"]).counts() == {problem.shapes_of_workload[GANG][0]: 2}


def test_a_state_that_nothing_betters_is_left_as_it_is() -> None:
    problem = certified()
    state = state_of(problem, (GANG, "plain", 2), (LARGE, "c", 1))
    assert rebuilt(problem, state).state is state


def test_nobody_who_runs_is_placed_anew() -> None:
    problem = certified(running={"gang#0": place("c", 0, 1, 2, 3), "gang#1": place("c", 4, 5, 6, 7)})
    state, unpaid = start(problem, None, Stop())
    assert not unpaid
    assert rebuilt(problem, state).state is state
