"""The fragmentation tier: the engine's optimum is that of brute force, on whole GPUs, shares and MIG instances."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.mig_specs import tiny_mig
from tests.support.specs import make_spec, node, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.spec import EqualParts, Expected, Objective, Request, Share, Spec
from dovetail.spec.objective import OPTIONAL_TIERS
from dovetail.verify import verify

SLICE = 24
CAMPAIGN = 300


def judged(spec: Spec, seed: int) -> Spec:
    """Return a Spec whose plan is also to leave little idle GPU useless; starts that stay are left out."""
    rng = Random(seed)
    mix: tuple[Expected, ...] = ()
    if rng.random() < 0.5:
        mix = (Expected(Request(gpus=1), (), 2), Expected(Request(gpus=2, cpu=rng.choice([0, 1000])), (), 3))
    objective = replace(spec.objective, tiers=(*spec.objective.tiers, *OPTIONAL_TIERS), future_mix=mix)
    unit = None if spec.cluster.reconfiguration == "instance" else spec.cluster.reconfiguration
    return replace(spec, objective=objective, cluster=replace(spec.cluster, reconfiguration=unit))


def wrong(seed: int, found: Counter[str]) -> str | None:
    """Return how the plan of a Spec differs from the best there is, None where it does not."""
    spec = judged(tiny_mig(seed) if seed % 2 else tiny(seed), seed)
    try:
        best = brute(spec, leaves=3_000, evaluations=800)
    except TooLarge:
        return None
    plan = solve(spec)
    found["planned"] += 1
    if not verify(spec, plan).ok:
        return f"seed {seed}: the plan is broken"
    if best is None:
        return None
    told = {tier.name: tier.value for tier in plan.tiers}
    found["fragmented"] += bool(told.get("fragmentation"))
    found["whole"] += "fragmentation" in told and not told["fragmentation"]
    return None if told == best.by_name else f"seed {seed}: engine {told}, brute force {best.by_name}"


def test_engine_and_brute_force_agree() -> None:
    found: Counter[str] = Counter()
    assert [each for seed in range(SLICE) if (each := wrong(seed, found))] == []
    assert min(found["planned"], found["fragmented"]) >= 6, found


def test_gpus_that_are_shared_by_equal_parts_count() -> None:
    mix = (Expected(Request(share=Share(400)), (), 1),)
    objective = Objective(tiers=("admitted", *OPTIONAL_TIERS), future_mix=mix)
    shared = node("a", 3, mechanism="devicePlugin", sharing=EqualParts())
    alone = node("b", 1, mechanism="devicePlugin")
    spec = make_spec([shared, alone], [workload("w", 1)], objective=objective)
    best, plan = brute(spec), solve(spec)
    assert verify(spec, plan).ok
    assert best is not None
    assert {tier.name: tier.value for tier in plan.tiers} == best.by_name


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 50))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found: Counter[str] = Counter()
    assert [each for seed in range(first, first + 50) if (each := wrong(seed, found))] == []
