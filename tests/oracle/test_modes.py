"""Modes of GPUs by policy: the engine and brute force agree in every tier, hard and soft, and `verify` with both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.test_mig import difference
from tests.oracle.test_sharing import cut_and_shared
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import policy

from dovetail.plan import Plan
from dovetail.rules.modes import MODES, Modes
from dovetail.spec import NodeSelector, Spec, WorkloadSelector

SLICE = 16
CAMPAIGN = 600


def moded(seed: int, drawn: Callable[[int], Spec] = tiny_sharing) -> Spec:
    """Return a Spec with one or two policies on modes."""
    spec, rng = drawn(seed), Random(f"modes {seed}")
    policies = []
    for index in range(rng.choice((1, 1, 2))):
        allowed = rng.sample(MODES, rng.choice((1, 2, 2, 3)))
        policies.append(
            policy(
                f"p{index}",
                Modes(tuple(mode for mode in MODES if mode in allowed)),
                enforcement=rng.choice(("hard", "hard", 1, 3, "audit")),
                workloads=WorkloadSelector(tenants=rng.choice(((), ("red",), ("blue",)))),
                nodes=rng.choice((None, None, NodeSelector(names=(spec.cluster.nodes[0].name,)))),
            )
        )
    return replace(spec, policies=tuple(sorted((*spec.policies, *policies), key=lambda each: each.name)))


def weighed_anywhere(seed: int) -> Spec:
    """Return a Spec whose soft policies on modes are weighed after one tier or another."""
    spec, rng = moded(seed), Random(f"tiers {seed}")
    tiers = [name for name in spec.objective.tiers if name not in ("mend", "admitted")]
    return replace(
        spec,
        policies=tuple(
            replace(p, enforcement=replace(p.enforcement, tier=rng.choice(tiers)))
            if p.enforcement.kind == "soft"
            else p
            for p in spec.policies
        ),
    )


def cut_and_moded(seed: int) -> Spec:
    return moded(seed, cut_and_shared)


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    drawn = ((seed, moded) for seed in range(SLICE))
    cut = ((seed, cut_and_moded) for seed in range(SLICE // 4))
    weighed = ((seed, weighed_anywhere) for seed in range(200, 200 + SLICE // 2))
    return tuple(found for seed, draw in (*drawn, *cut, *weighed) if (found := difference(seed, draw)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_the_policies_bind() -> None:
    found: Counter[str] = Counter()
    for _, plan, _ in cases():
        for result in plan.policies.values():
            found[f"{result.enforcement} {result.result}"] += 1
        found["shared"] += bool(plan.shared)
    assert min(found[name] for name in ("hard pass", "soft fail", "soft pass", "shared")) >= 4, found


@pytest.mark.campaign
@pytest.mark.parametrize("draw", [moded, cut_and_moded, weighed_anywhere])
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 100))
def test_engine_and_brute_force_agree_on_many(first: int, draw: Callable[[int], Spec]) -> None:
    found = [difference(seed, draw) for seed in range(first, first + 100)]
    assert [each[2] for each in found if each is not None and each[2]] == []
