"""Nodes in use are whole: bounds on what they cost count them so, and plans are made onto nodes chosen beforehand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.engine.test_gatherings import problem_of
from tests.support.mixed_further import further
from tests.support.specs import make_spec, node, workload

from dovetail.engine import ladder, solve
from dovetail.engine.budget import Budget
from dovetail.engine.choosing import Choice, only_on
from dovetail.engine.exact import TierAnswer, climb
from dovetail.engine.fleet.cases import COUNTS
from dovetail.engine.fleet.fleet_bounds import FleetBounds, proof_of
from dovetail.model.part import PartModel
from dovetail.model.score import score
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem
from dovetail.progress import Limits, Stop
from dovetail.proof import fleet
from dovetail.proof.certificate import Branch
from dovetail.proof.fleet_models import FleetModels
from dovetail.proof.models import Earlier
from dovetail.proof.tree import Question, Unproved, check_tree, next_value
from dovetail.spec import Objective, Spec

DEAR, CHEAP = 13, 10


def priced(gpu_price: int = 0) -> Spec:
    """Return work for 14 GPUs, and three nodes of 8 for each of two prices: the LP uses 1.75 of the cheap ones."""
    nodes = [
        node(f"{name}{i}", 8, price=price, gpu_price=gpu_price)
        for name, price in (("dear", DEAR), ("cheap", CHEAP))
        for i in range(3)
    ]
    return make_spec(nodes, [workload("w", 14, gpus=1)], objective=Objective(tiers=("admitted", "cost")))


def cost_of(problem: Problem) -> tuple[int, dict[str, int]]:
    """Return the place of the cost, and what a plan has of the tiers before it that admits everything."""
    place = next(i for i, tier in enumerate(problem.tiers) if tier.counts_nodes)
    return place, {tier.name: tier.limit(problem.context) for tier in problem.tiers[:place]}


@pytest.mark.parametrize(("whole", "least"), [(False, 18), (True, 2 * CHEAP)])
def test_nodes_in_use_are_counted_in_whole_numbers_where_that_is_asked_for(whole: bool, least: int) -> None:
    problem = problem_of(priced())
    place, given = cost_of(problem)
    tier, bounds = problem.tiers[place], FleetBounds(problem, Stop())
    cases = bounds.cases(tier, given, reached=3 * CHEAP, priced=True, seconds=None, counts=whole * COUNTS)
    bounds.learn(tier, cases, priced=True)
    best = bounds.best(tier, given)
    assert best is not None
    assert best[0] == least
    tree = proof_of(tier.name, least, given, best[1]).tree
    assert any(isinstance(each, Branch) for each in tree) is whole
    models = FleetModels(fleet.FleetModel(problem, priced=True))
    earlier = {t.name: Earlier(given[t.name], None) for t in problem.tiers[:place]}
    told = models.of_tier(place, earlier)
    question = Question(
        told.objective, next_value(told.objective, -least), told.lower, told.upper, told.rows, told.blocks
    )
    check_tree(question, tree)
    with pytest.raises(Unproved):
        check_tree(replace(question, target=-least), tree)


@pytest.mark.parametrize("gpu_price", [0, 50])
def test_numbers_of_nodes_are_whole_and_cost_the_least(gpu_price: int) -> None:
    problem = problem_of(priced(gpu_price))
    place, given = cost_of(problem)
    bounds = FleetBounds(problem, Stop())
    numbers = bounds.nodes_in_use(problem.tiers[place], given, None)
    assert numbers is not None
    kinds = bounds.priced_model.kinds
    assert {kinds[kind].node.price: number for kind, number in numbers.items()} == {DEAR: 0, CHEAP: 2}


def test_a_fleet_is_planned_onto_chosen_nodes_and_proved_to_cost_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    plan = solve(priced(), Limits(work=5.0))
    assert plan.outcome.status == "optimal"
    assert plan.tiers[-1].value == plan.tiers[-1].bound == 2 * CHEAP
    assert plan.tiers[-1].proof == "certificate"


def test_other_nodes_are_closed_and_numbers_stay() -> None:
    problem = problem_of(priced())
    some = only_on(problem, {1, 4})
    assert [shape.demand for shape in some.shapes] == [shape.demand for shape in problem.shapes]
    assert [n.name for n in some.nodes] == [n.name for n in problem.nodes]
    found = PartModel(some, range(len(some.nodes)), State()).variables
    assert {some.nodes[n].name for n in found.slots if found.slots[n]} == {problem.nodes[n].name for n in (1, 4)}
    assert not any(n.price for n in some.nodes)


def test_nodes_in_use_are_chosen_first_and_then_the_cheapest_that_helps() -> None:
    problem = problem_of(priced())
    bounds = FleetBounds(problem, Stop())
    by_price = {kind.node.price: position for position, kind in enumerate(bounds.priced_model.kinds)}
    cheap = [n for n, made in enumerate(problem.nodes) if made.price == CHEAP]
    dear = [n for n, made in enumerate(problem.nodes) if made.price == DEAR]
    held = State({n: _fill(count) for n, count in ((cheap[2], 8), (dear[1], 6))})
    choice = Choice.of(bounds, held, {by_price[CHEAP]: 1, by_price[DEAR]: 0})
    assert choice.nodes == {cheap[2]}
    assert choice.cheaper
    assert choice.add(State({cheap[2]: held.fills[cheap[2]]}))
    assert choice.nodes == {cheap[0], cheap[2]}
    assert choice.cheaper
    assert choice.add(State())
    assert not choice.cheaper


def _fill(count: int) -> Fill:
    fill = Fill()
    fill.slots[Slot(0)] = count
    return fill


def test_what_is_proved_elsewhere_is_not_searched_for_again() -> None:
    problem = problem_of(priced())
    cheap = [n for n, made in enumerate(problem.nodes) if made.price == CHEAP]
    start = State({cheap[0]: _fill(8), cheap[1]: _fill(6)})
    reached = score(problem, start)[1:]
    bounds = [abs(value) for value in reached]
    part = PartModel(problem, range(len(problem.nodes)), State())
    found = climb(part, problem.search_tiers, start, reached, Budget(0.0), Stop(), bounds=bounds)
    assert found.work == 0
    assert found.tiers[-1] == TierAnswer(problem.search_tiers[-1], 2 * CHEAP, None, True)


def test_what_is_proved_beside_a_start_says_nothing_of_what_has_more_than_that() -> None:
    """The exact model finds more than it starts from, at the very cost that is proved of the start."""
    spec = further(20438)
    assert spec is not None
    assert solve(spec).outcome.status == "optimal"
