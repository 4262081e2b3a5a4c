"""Oversubscription by policy: the engine and brute force agree in every tier, hard and soft; `verify` with both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.test_mig import difference
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import policy
from tests.support.tiny_specs import tiny

from dovetail.placement.clients import equal_parts
from dovetail.plan import Plan
from dovetail.rules.promises import Promises
from dovetail.spec import Node, NodeSelector, Spec
from dovetail.spec.permits import Ratios

SLICE = 16
CAMPAIGN = 600


def promising(seed: int, drawn: Callable[[int], Spec] = tiny_sharing) -> Spec:
    """Return a Spec of which some policies let more be promised than there is, or would rather not have it."""
    spec, rng = drawn(seed), Random(f"promises {seed}")
    scarce = tuple(replace(n, cpu=rng.choice((n.cpu, 700, 1100))) for n in spec.cluster.nodes)
    policies = [
        policy(
            f"o{index}",
            Promises(_ratios(rng, scarce)),
            enforcement="hard" if not index else rng.choice(("hard", 1, 2, "audit")),
            nodes=rng.choice((None, None, NodeSelector(names=(spec.cluster.nodes[0].name,)))),
        )
        for index in range(rng.choice((1, 2)))
    ]
    every = tuple(sorted((*spec.policies, *policies), key=lambda each: each.name))
    return replace(spec, cluster=replace(spec.cluster, nodes=scarce), policies=every)


def _ratios(rng: Random, nodes: tuple[Node, ...]) -> Ratios:
    shared = any(node.gpus and equal_parts(node) for node in nodes)
    compute = rng.choice((None, 1000, 1500, 2000)) if shared else None
    return Ratios(rng.choice((None, 1000, 1300, 1500, 2000)), rng.choice((None, 1250)), compute)


def hosts_promising(seed: int) -> Spec:
    return promising(seed, tiny)


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    draws = ((seed, draw) for seed in range(SLICE) for draw in (promising, hosts_promising))
    return tuple(found for seed, draw in draws if (found := difference(seed, draw)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_the_policies_bind() -> None:
    found: Counter[str] = Counter()
    for spec, plan, _ in cases():
        used: Counter[str] = Counter()
        for replica, place in plan.placements.items():
            used[place.node] += spec.by_id[replica.workload].by_role[replica.role].request.cpu
        found["promised"] += any(used[node.name] > node.owned.cpu for node in spec.cluster.nodes)
        found["soft fail"] += any((r.enforcement, r.result) == ("soft", "fail") for r in plan.policies.values())
    assert min(found["promised"], 2 * found["soft fail"]) >= 4, found


@pytest.mark.campaign
@pytest.mark.parametrize("draw", [promising, hosts_promising])
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 100))
def test_engine_and_brute_force_agree_on_many(first: int, draw: Callable[[int], Spec]) -> None:
    found = [difference(seed, draw) for seed in range(first, first + 100)]
    assert [each[2] for each in found if each is not None and each[2]] == []
