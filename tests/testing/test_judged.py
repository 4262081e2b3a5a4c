"""Places of a plan, given to a test, are judged as the plan was; what could not be is found impossible."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.mig_specs import card, mig_request
from tests.support.specs import make_spec, node, replica, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.ladder import solve
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.spec import Spec
from dovetail.testing import judged
from dovetail.verify import impossible

SEEDS = range(40)


def planned() -> list[tuple[Spec, Plan]]:
    both = [(spec, solve(spec)) for spec in map(tiny, SEEDS)]
    return [(spec, plan) for spec, plan in both if plan.outcome.status in ("optimal", "feasible") and plan.placements]


def test_a_judged_plan_says_what_the_plan_said() -> None:
    found = planned()
    assert len(found) >= 20
    for spec, plan in found:
        again = judged(spec, plan.placements)
        assert again.policies == plan.policies
        assert again.summary == plan.summary
        assert {name: row.state for name, row in again.admitted.items()} == {
            name: row.state for name, row in plan.admitted.items()
        }
        assert [(tier.name, tier.value) for tier in again.tiers] == [(tier.name, tier.value) for tier in plan.tiers]
        assert {tier.bound for tier in again.tiers} <= {None}


def test_places_of_a_plan_are_possible_and_others_are_not() -> None:
    for spec, plan in planned():
        assert list(impossible(spec, plan.placements)) == []
        replica, place = min(plan.placements.items())
        elsewhere = {**plan.placements, replica: place._replace(node="nowhere")}
        assert [check.name for check, _ in impossible(spec, elsewhere)] == ["nodes-exist"]
        more = {**plan.placements, replica._replace(ordinal=10_000): place}
        assert "replicas-exist" in {check.name for check, _ in impossible(spec, more)}
        if place.gpus:
            outside = {**plan.placements, replica: Place(place.node, (10_000,))}
            assert "gpu-indices" in {check.name for check, _ in impossible(spec, outside)}


@pytest.mark.parametrize("instance", ["9g.99gb@0", "1g.10gb@9"])
def test_instances_that_a_node_of_one_profile_cannot_have_are_impossible(instance: str) -> None:
    product = "A100-80GB"
    one = workload("w", roles=[role("", 1, mig_request(product, "1g.10gb"))])
    spec = make_spec([node("n", 1, accelerator=product, mig_strategy="single")], [one])
    spec = replace(spec, accelerators={product: card(product)})
    found = [check.name for check, _ in impossible(spec, {replica("w#0"): Place("n", (0,), instance)})]
    assert "layouts" in found
