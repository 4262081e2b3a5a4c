"""When patterns of all nodes are mixed, and for what."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.support.specs import make_spec, node, place, workload

from dovetail.engine import solve
from dovetail.engine.at_once import AtOnce
from dovetail.engine.bounds import Bounds
from dovetail.engine.budget import Budget
from dovetail.engine.choosing import Choosing
from dovetail.engine.fleet import fleet_bounds
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.guided import Lead
from dovetail.engine.incumbent import forget
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.record import Record
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem, compile_problem
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.verify import verify

AMPLE, SHORT = 100.0, 50.0  # units of work


def dear_and_cheap(replicas: int) -> Problem:
    """Three nodes that cost 90 and three that cost 10, each of which has room for one replica."""
    nodes = [replace(node(f"dear{i}", 2), price=90) for i in range(3)]
    nodes += [replace(node(f"low{i}", 2), price=10) for i in range(3)]
    return compile_problem(context_of(make_spec(nodes, [workload("w", replicas, gpus=2)])))


def on(*nodes: int) -> State:
    return State({index: Fill(Counter({Slot(0): 1})) for index in nodes})


def begun(state: State, replicas: int = 3) -> AtOnce:
    problem, stop = dear_and_cheap(replicas), Stop()
    best = Record(problem, Bounds(problem, stop), Reporter(), forget, 0.0)
    best.offer(state)
    choosing = Choosing(best, stop, lambda *_: best, done=True)
    return AtOnce(best, Jobs(), stop, choosing)


def test_the_least_cost_waits_until_all_is_admitted() -> None:
    at_once = begun(on(0, 1))
    late = at_once.late(Budget(AMPLE), 0.0)
    assert not next(late)
    assert at_once.best.now[-1].value == 180
    at_once.best.offer(on(0, 1, 2))
    assert next(late)
    assert at_once.best.now[-1].value == 30
    assert next(late, None) is None


def test_without_time_for_a_dive_nothing_is_waited_for() -> None:
    at_once = begun(on(0, 1, 2))
    assert next(at_once.late(Budget(SHORT), 0.0), None) is None
    assert at_once.best.now[-1].value == 270


@pytest.mark.parametrize(
    ("state", "work", "cost"),
    [
        (on(0, 1), SHORT, 180),  # the mixture has all that asks: nothing but cost is left to wish for
        (on(0, 1, 2), SHORT, 270),
        (on(0, 1, 2), AMPLE, 30),
    ],
)
def test_few_nodes_of_many_sides_are_mixed_for_the_least_cost_with_ample_time_alone(
    state: State, work: float, cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_bounds, "_LARGE", 0)
    at_once = begun(state)
    assert at_once.crowded
    mixed = at_once.mix(Budget(work), Lead((), state), 0.0)
    assert bool(mixed.states) == (work == AMPLE)
    assert at_once.best.now[-1].value == cost


@pytest.mark.parametrize("work", [SHORT, AMPLE])
def test_few_nodes_of_many_sides_are_mixed_for_what_is_lacking(work: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_bounds, "_LARGE", 0)
    at_once = begun(on(0, 1), replicas=9)
    mixed = at_once.mix(Budget(work), Lead((), at_once.best.state), 0.0)
    assert mixed.states
    assert at_once.best.now[0].value == 12_000  # six nodes of two GPUs


@pytest.mark.parametrize(("astray", "states"), [(False, 1), (True, 3)])
def test_mixing_ends_with_a_first_state_where_gangs_are_to_be_placed_once_more(
    astray: bool, states: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = begun(on(0))
    monkeypatch.setattr(Generation, "run", lambda *_: iter([on(0), on(0, 1), on(0, 1, 2)]))
    monkeypatch.setattr(AtOnce, "astray", lambda *_: True)
    mixed = at_once.mix(Budget(AMPLE), Lead((), on(0)), 0.0, astray=astray)
    assert len(mixed.states) == states


def test_a_fleet_whose_nodes_were_all_replaced_is_planned() -> None:
    """Who ran on nodes that are gone is told apart from who did not, but has no place to mind."""
    nodes = [replace(node(f"new{i:02}", 8), price=1000) for i in range(40)]
    work = [workload(f"{half}{i:02}", 4, share=(i % 7 + 2) * 100 + i) for half in ("ran", "new") for i in range(33)]
    ran = {f"ran{i:02}#{k}": place(f"old{i:02}", k) for i in range(33) for k in range(4)}
    spec = make_spec(nodes, work, running=ran)
    problem = compile_problem(context_of(spec))
    assert problem.counts > EXACT_VARIABLES
    assert not problem.present
    assert not problem.fresh
    plan = solve(spec, Limits(work=4.0))
    assert verify(spec, plan).ok
    assert plan.tiers[0].value == plan.tiers[0].bound
