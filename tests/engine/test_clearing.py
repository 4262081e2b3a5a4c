"""What waits is let in where others can make way, with the fewest moves; bounds on moves are told and checked."""

from __future__ import annotations

import pytest
from tests.support.mixed_specs import mixed
from tests.support.specs import make_spec, node, place, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.construction.clearing import cleared
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import State, newcomers, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Spec


def values(problem: Problem, state: State) -> dict[str, int]:
    view = view_of(problem, state)
    return {tier.name: tier.measure(view, problem.context) for tier in problem.tiers}


def started(spec: Spec) -> tuple[Problem, State]:
    problem = compile_problem(context_of(spec))
    return problem, legalise(problem, construct(problem, today_state(problem), Stop()))


def fragmented() -> Spec:
    """Return four nodes of 4 GPUs, each half taken by one replica, and work for a node as a whole."""
    nodes = [node(name, 4) for name in "abcd"]
    work = [workload("small", 4, gpus=2), workload("wide", 1, gpus=4)]
    return make_spec(nodes, work, running={f"small#{i}": place(name, 0, 1) for i, name in enumerate("abcd")})


def test_one_replica_leaves_for_what_needs_a_whole_node() -> None:
    problem, before = started(fragmented())
    after = cleared(problem, before, Stop(), lambda: False)
    told = values(problem, after)
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 1)
    assert sum(after.admitted().values()) == 5


def test_that_one_must_leave_is_proved() -> None:
    problem, before = started(fragmented())
    after = cleared(problem, before, Stop(), lambda: False)
    bounds, given = FleetBounds(problem, Stop()), dict[str, int]()
    for tier in problem.tiers:
        value = values(problem, after)[tier.name]
        if tier.name == "disruption.moves":
            bounds.stand(tier, given, value, newcomers(problem, after))
            found = bounds.best(tier, given)
            assert found is not None
            assert found[0] == 1
        given[tier.name] = value


def test_nothing_leaves_where_nothing_waits() -> None:
    nodes = [node("a", 4), node("b", 4)]
    problem, before = started(make_spec(nodes, [workload("small", 2, gpus=2)], running={"small#0": place("a", 0, 1)}))
    assert cleared(problem, before, Stop(), lambda: False) == before


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("draw", [tiny, mixed])
def test_whoever_leaves_breaks_no_rule_and_nobody_goes(draw: object, seed: int) -> None:
    problem, before = started(draw(seed))  # type: ignore[operator]
    after = legalise(problem, cleared(problem, before, Stop(), lambda: False))
    kept = hard_policies(problem)
    assert sound(problem, view_of(problem, after)) == sound(problem, view_of(problem, before))
    assert debt(problem, view_of(problem, after), kept) <= debt(problem, view_of(problem, before), kept)
    admitted = [name for name in values(problem, before) if name.startswith("admitted")]
    assert [values(problem, after)[n] for n in admitted] >= [values(problem, before)[n] for n in admitted]
