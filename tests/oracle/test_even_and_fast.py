"""The tiers `balance` and `slowest`: the engine's optimum is brute force's, tier by tier, and its plans verify."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.sample import cases, problems
from tests.support.specs import CARDS
from tests.support.tiny_gangs import tiny_gangs

from dovetail.spec import Spec
from dovetail.spec.objective import DEFAULT_TIERS

SLICE = 20
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))
ORDERS = (
    (*DEFAULT_TIERS, "balance", "slowest"),
    (*DEFAULT_TIERS[:-1], "slowest", "topology", "balance"),
    ("mend", "admitted", "balance", "slowest"),
)


def even_and_fast(seed: int) -> Spec:
    """Return gangs on a ragged tree whose nodes differ in speed and accelerator."""
    rng = Random(f"even {seed}")
    spec = tiny_gangs(seed)
    cards = {**CARDS, "L4": replace(CARDS["L4"], throughput=500)}
    nodes = tuple(
        replace(n, speed=rng.choice((1000, 1000, 940, 800)), accelerator=rng.choice((n.accelerator, "L4")))
        for n in spec.cluster.nodes
    )
    return replace(
        spec,
        cluster=replace(spec.cluster, nodes=nodes),
        accelerators=cards,
        objective=replace(spec.objective, tiers=rng.choice(ORDERS)),
    )


def test_engine_and_brute_force_agree_on_balance_and_slowest_members() -> None:
    found = list(cases(0, SLICE, even_and_fast))
    named = {tier.name.partition("[")[0] for case in found for tier in case.plan.tiers}
    assert {"balance", "slowest"} <= named
    assert problems(found) == []


def test_a_group_of_which_others_stay_elsewhere_is_whole_nowhere() -> None:
    assert problems(cases(10657, 1, even_and_fast)) == []


@pytest.mark.campaign
def test_engine_and_brute_force_agree_on_many_more() -> None:
    assert problems(cases(CAMPAIGN_FIRST, 1500, even_and_fast)) == []
