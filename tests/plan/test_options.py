"""Limits of the command line become policies, and a plan brings them back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.plans import greedy_plan
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.plan import NameTaken, as_planned, digest, limited
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.spec import Options, Spec
from dovetail.verify import verify

LIMITS = Options(1, ("v",))


def spec() -> Spec:
    return make_spec(
        [node("n", 4)],
        [workload("v", 1, gpus=1), workload("w", 2, gpus=1)],
        [policy("q", Quota((("gpus", 4000),)))],
        running={"v#0": place("n", 3)},
    )


def test_limits_are_hard_policies_beside_those_of_the_documents() -> None:
    found = limited(spec(), LIMITS)
    assert [(p.name, p.enforcement.kind) for p in found.policies] == [
        ("cli-max-moves", "hard"),
        ("cli-pins", "hard"),
        ("q", "hard"),
    ]
    assert limited(spec(), Options()) == spec()
    assert limited(found, LIMITS) == found


def test_a_plan_with_limits_verifies_against_the_documents_alone() -> None:
    plan = greedy_plan(limited(spec(), LIMITS))
    assert plan.options == LIMITS
    assert plan.policies.keys() == {"cli-max-moves", "cli-pins", "q"}
    assert verify(spec(), plan).ok
    assert as_planned(spec(), plan) == limited(spec(), LIMITS)


def test_limits_are_in_the_digest() -> None:
    plan = greedy_plan(limited(spec(), LIMITS))
    assert plan.inputs != digest(spec())
    assert verify(spec(), replace(plan, options=Options(2, ("v",)))).stale
    assert verify(spec(), replace(plan, options=Options())).stale
    assert verify(limited(spec(), Options(2)), plan).stale


def test_a_name_that_the_documents_have_is_refused() -> None:
    taken = replace(spec(), policies=(policy("cli-max-moves", Move(max_moves=5)), *spec().policies))
    with pytest.raises(NameTaken, match="cli-max-moves"):
        limited(taken, LIMITS)
    assert verify(taken, greedy_plan(limited(spec(), LIMITS))).stale


def test_a_spec_gets_limits_once() -> None:
    with pytest.raises(ValueError, match="already"):
        limited(limited(spec(), LIMITS), Options(2))
