"""Places held free lie where they cost least: in domains with room for all, and where the LP has no other use."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.engine.test_gatherings import gangs, problem_of, ragged
from tests.support.specs import make_spec, node, policy, request, workload

from dovetail.engine import ladder, solve
from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.generation.crews import crews
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.thrift import roomy
from dovetail.model.score import view_of
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Limits, Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules.reserve import Reserve
from dovetail.spec import Policy
from dovetail.verify import verify

ALL = 10.0  # units of work, more than any of these needs


def held_nodes(problem: Problem, state: State) -> list[str]:
    """Return the nodes of the places that a state holds and that count, one per place."""
    told = view_of(problem, state).held or {}
    return sorted(place.node for places in told.values() for place in places)


def reserve(replicas: int, *, enforcement: str | int = "hard", within: str | None = None) -> Policy:
    """Return a policy that holds places of eight GPUs."""
    return policy("room", Reserve(replicas, request(8), within=within), enforcement=enforcement)


def followed(problem: Problem, *, exact: bool = False) -> State:
    """Return the gangs and held places of the LP over kinds, with what nodes it has them on."""
    lp = FleetBounds(problem, Stop()).target(dict.fromkeys((tier.name for tier in problem.tiers), -1))
    return crews(lp, Stop(), exact=exact)


@pytest.mark.parametrize(("wanted", "rack"), [(2, 2), (3, 3), (4, 5), (5, 5)])
def test_places_of_one_domain_are_held_where_there_is_room_for_all_and_little_more(wanted: int, rack: int) -> None:
    problem = problem_of(make_spec(ragged([2, 5, 3]), [workload("x", 1, gpus=8)], [reserve(wanted, within="rack")]))
    found = held_nodes(problem, construct(problem, State(), Stop()))
    racks = {problem.nodes[problem.node_index[name]].domain("rack") for name in found}
    sizes = Counter(each.domain("rack") for each in problem.nodes)
    assert len(found) == wanted
    assert [sizes[path] for path in racks] == [rack]


def test_gangs_that_the_lp_has_leave_room_for_held_places() -> None:
    low = [replace(each, priority=100) for each in gangs(2)]
    single = [workload(f"s{i}", 1, gpus=3, type="job", priority=500) for i in range(2)]
    problem = problem_of(make_spec(ragged([4]), [*low, *single], [reserve(1)]))
    state = followed(problem)
    assert len(held_nodes(problem, state)) == 1
    assert [state.admitted()[s] for w in low for s in problem.shapes_of_workload[w.id]] == [2]
    assert len(state.fills) == 3


def test_held_places_go_where_the_lp_needs_nodes_least() -> None:
    """Only one make has the memory that others ask for; any would do for places."""
    nodes = [node(f"big{i}", 8, memory=2_000_000) for i in range(2)] + [node(f"n{i}", 8) for i in range(2)]
    large = workload("large", 2, gpus=8, memory=1_500_000)
    problem = problem_of(make_spec(nodes, [large], [reserve(2)]))
    assert held_nodes(problem, followed(problem)) == ["n0", "n1"]


def test_gangs_may_be_on_as_many_nodes_of_a_kind_as_the_lp_has_them_on() -> None:
    """Four nodes of one rack would do, but the others have not the memory that is asked for."""
    big = [node(f"big{i}", 8, memory=2_000_000, domains={"rack": "a"}) for i in range(4)]
    small = [node(f"n{i}", 8, domains={"rack": rack}) for i, rack in enumerate("bc")]
    large = workload("large", 2, gpus=8, memory=1_500_000, priority=900)
    problem = problem_of(make_spec([*big, *small], [*gangs(4), large]))
    state = followed(problem, exact=True)
    assert sorted(problem.nodes[n].name for n in state.fills if problem.nodes[n].name.startswith("n")) == ["n0", "n1"]


def test_what_is_worth_nothing_leaves_nodes_their_price() -> None:
    nodes = [node(f"n{i}", 4, price=price) for i, price in enumerate((9, 9, 5, 5))]
    work = [workload("x", 8, gpus=1), workload("idle", 1, gpus=1, value=0), workload("more", 20, gpus=4)]
    for policies in ([], [policy("room", Reserve(1, request(1)))]):
        problem = problem_of(make_spec(nodes, work, policies))
        model = FleetModel(problem, priced=True)
        assert all(Generation(problem, State(), model, Stop()).wish.cost)


def test_places_that_need_not_be_held_are_held_once_all_else_is_placed() -> None:
    nodes = [node(f"n{i}", 8) for i in range(4)]
    problem = problem_of(make_spec(nodes, [workload("x", 20, gpus=1)], [reserve(2, enforcement=5)]))
    begin = construct(problem, State(), Stop())
    assert len(held_nodes(problem, begin)) < 2  # the mixture of single GPUs is on too many nodes
    found = list(Generation(problem, begin, FleetModel(problem, priced=True), Stop()).run(Budget(ALL)))
    assert found
    assert {sum(state.admitted().values()) - len(held_nodes(problem, state)) for state in found} == {20}


def test_cost_is_looked_for_beside_held_places() -> None:
    nodes = [node(f"n{i}", 8, price=price) for i, price in enumerate((9, 9, 5, 5))]
    problem = problem_of(make_spec(nodes, [workload("x", 8, gpus=1)], [reserve(1)]))
    assert roomy(problem, (), 0.0)


@pytest.mark.parametrize("within", [None, "rack"])
@pytest.mark.parametrize("enforcement", ["hard", 7])
def test_plans_hold_what_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, within: str | None, enforcement: str | int
) -> None:
    """Where the whole is too large to be solved at once: all gangs and single GPUs beside four places of a rack."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    work = [*gangs(3, 2), workload("x", 12, gpus=1), workload("y", 6, gpus=2)]
    spec = make_spec(ragged([3, 4, 3, 2]), work, [reserve(4, within=within, enforcement=enforcement)])
    plan = solve(spec, Limits(work=3.0))
    assert plan.outcome.status in ("optimal", "feasible")
    assert verify(spec, plan).ok
    assert len(plan.held["room"].held) == 4
    assert {tier.name: tier.gap for tier in plan.tiers if tier.name.startswith("admitted")} == {"admitted[0]": 0.0}
