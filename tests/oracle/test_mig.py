"""Parts of GPUs: the engine and brute force agree in every tier, and `verify` agrees with both."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.mig_specs import tiny_mig

from dovetail.engine import solve
from dovetail.plan import Plan
from dovetail.spec import Spec
from dovetail.verify import verify

SLICE = 30
CAMPAIGN = 400


def difference(seed: int) -> tuple[Spec, Plan, str | None] | None:
    """Return a Spec, its plan and how that differs from the best there is; None where brute force gives up."""
    spec = tiny_mig(seed)
    try:
        best = brute(spec, leaves=3_000, evaluations=800)
    except TooLarge:
        return None
    plan = solve(spec)
    if not verify(spec, plan).ok:
        return spec, plan, f"seed {seed}: the plan is broken"
    if best is None:
        return spec, plan, None if plan.outcome.status == "infeasible" else f"seed {seed}: there is no plan"
    told = {tier.name: tier.value for tier in plan.tiers}
    if plan.outcome.status != "optimal" or told != best.by_name:
        return spec, plan, f"seed {seed}: engine {told}, brute force {best.by_name}"
    return spec, plan, None


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    return tuple(found for seed in range(SLICE) if (found := difference(seed)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_the_specs_ask_for_something() -> None:
    found: Counter[str] = Counter()
    for spec, plan, _ in cases():
        found["cut"] += bool(plan.gpus)
        found["cut today"] += bool(spec.current.gpus)
        found["left out"] += len(plan.placements) < sum(workload.replicas for workload in spec.workloads)
        found["cut anew"] += bool(plan.summary.get("gpusRepartitioned"))
    assert min(found[name] for name in ("cut", "cut today", "left out", "cut anew")) >= 4, found


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 50))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found = [difference(seed) for seed in range(first, first + 50)]
    assert [each[2] for each in found if each is not None and each[2]] == []
