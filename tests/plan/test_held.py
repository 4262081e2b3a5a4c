"""What a plan tells of places held free is what counts for a policy, and nothing beside."""

from __future__ import annotations

from tests.support.specs import make_spec, node, place, places, policy, request, workload

from dovetail.engine import solve
from dovetail.plan import Outcome, finish
from dovetail.rules import context_of
from dovetail.rules.reserve import Reserve
from dovetail.spec import NodeSelector
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
