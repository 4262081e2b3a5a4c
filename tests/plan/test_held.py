"""What a plan tells of places held free is what counts for a policy, and nothing beside."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.specs import make_spec, node, place, places, policy, request, workload

from dovetail.engine import solve
from dovetail.plan import Outcome, finish
from dovetail.rules import Rule, Told, context_of
from dovetail.rules.reserve import Reserve
from dovetail.rules.survive import Survive
from dovetail.spec import NodeSelector, Request
from dovetail.verify import lines, verify


def test_a_place_held_where_it_counts_for_nothing_is_not_told() -> None:
    only = NodeSelector(names=("full",))
    room = policy("room", Reserve(replicas=1, request=request(1)), enforcement=5, nodes=only)
    spec = make_spec([node("full", 1), node("free", 1)], [workload("w", 1, gpus=1)], [room])
    context = context_of(spec)
    view = context.view_of_all(places({"w#0": place("full", 0), "hold:room#0": place("free", 0)}))
    plan = finish(context, view.places, (), Outcome("feasible", "work"), held=view.held)
    assert plan.held == {}
    assert plan.summary["gpusHeld"] == 0
    wrong = [line for line in lines(verify(spec, plan)) if "summary" in line or "held" in line]
    assert wrong == []


def test_places_are_held_where_nothing_is_to_run() -> None:
    spec = make_spec([node("n", 2)], [], [policy("room", Reserve(replicas=1, request=request(1)))])
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert plan.summary["gpusHeld"] == 1
    assert verify(spec, plan).ok


def test_what_is_held_free_is_told_in_any_order() -> None:
    rules = [policy("spare", Reserve(replicas=2, request=request(1))), policy("free", Reserve(domains=2, of="node"))]
    spec = make_spec([node(name, 1) for name in "abcde"], [workload("w", gpus=1)], rules)
    plan = solve(spec)
    turned = {name: Told(told.held[::-1], told.untouched[::-1]) for name, told in plan.held.items()}
    assert [turned[name] == plan.held[name] for name in ("spare", "free")] == [False, False]
    assert verify(spec, replace(plan, held=turned)).ok
    twice = {**turned, "spare": Told(turned["spare"].held[:1] * 2)}
    assert not verify(spec, replace(plan, held=twice)).ok


@pytest.mark.parametrize("rule", [Reserve(replicas=1, request=request(1)), Survive(of="node")])
def test_what_places_of_one_policy_take_another_is_excused_for_where_something_runs(rule: Rule) -> None:
    """There is room for one place beside what runs: each policy alone could have it, and plans go on."""
    spec = make_spec(
        [node("a", 1), node("b", 1)],
        [workload("w", gpus=1, type="service")],
        [policy("spare-a", Reserve(replicas=1, request=request(1))), policy("spare-b", rule)],
        running={"w#0": place("a", 0)},
    )
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert sorted(result.violation for result in plan.policies.values()) == [0, 1]
    assert verify(spec, plan).ok


@pytest.mark.parametrize(
    ("asked", "within", "there"),
    [
        (request(1), "island", 2),
        (request(2), "island", 1),
        (request(2), None, 2),
        (request(share=400), "island", 4),
        (request(share=400), None, 8),
        (request(), None, 9),
    ],
)
def test_places_that_could_be_held_are_as_many_as_there_is_room_for(
    asked: Request, within: str | None, there: int
) -> None:
    rule = Reserve(replicas=9, request=asked, within=within)
    spec = make_spec([node("n", 4, islands=((0, 1), (2, 3)))], [], [policy("room", rule)])
    context = context_of(spec)
    view = context.view({})
    places = rule.could_hold(view, context.scopes["room"])
    assert len(places) == there
    assert rule.check(view, context.scopes["room"]) == ({"room": 9 - there} if there < 9 else {})
