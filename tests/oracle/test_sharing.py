"""GPUs shared by equal parts: the engine and brute force agree in every tier, and `verify` agrees with both."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from tests.oracle.test_mig import difference
from tests.support.sharing_specs import tiny_sharing

from dovetail.plan import Plan
from dovetail.spec import Spec

SLICE = 60
CAMPAIGN = 600


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    return tuple(found for seed in range(SLICE) if (found := difference(seed, tiny_sharing)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_the_specs_ask_for_something() -> None:
    found: Counter[str] = Counter()
    for spec, plan, _ in cases():
        modes = {setting.mode for setting in plan.shared.values()}
        found.update(modes)
        found["left out"] += len(plan.placements) < sum(workload.replicas for workload in spec.workloads)
        found["moved"] += bool(plan.summary.get("moves"))
    assert min(found[name] for name in ("mps", "time-slice", "left out", "moved")) >= 4, found


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 100))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found = [difference(seed, tiny_sharing) for seed in range(first, first + 100)]
    assert [each[2] for each in found if each is not None and each[2]] == []
