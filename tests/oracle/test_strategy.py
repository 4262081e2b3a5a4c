"""Nodes of the MIG strategy `single`: the engine and brute force agree in every tier, and `verify` with both."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.test_mig import difference
from tests.support.mig_specs import tiny_mig

from dovetail.plan import Plan
from dovetail.rules import strategy_of
from dovetail.spec import EqualParts, Spec

SLICE = 24
CAMPAIGN = 600


def single(seed: int) -> Spec:
    """Return a Spec of which some nodes are of the strategy `single`, and some share what is not cut."""
    spec, rng = tiny_mig(seed), Random(f"strategy {seed}")
    shared = rng.random() < 0.2
    nodes = tuple(
        replace(
            node,
            mig_strategy="single" if not index or rng.random() < 0.7 else "mixed",
            mechanism="devicePlugin" if shared else node.mechanism,
            sharing=EqualParts() if shared else node.sharing,
        )
        for index, node in enumerate(spec.cluster.nodes)
    )
    own = strategy_of(nodes)
    assert own is not None
    every = tuple(sorted((*spec.policies, own), key=lambda each: each.name))
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes), policies=every)


@cache
def cases() -> tuple[tuple[Spec, Plan, str | None], ...]:
    return tuple(found for seed in range(SLICE) if (found := difference(seed, single)) is not None)


def test_engine_and_brute_force_agree() -> None:
    assert [wrong for _, _, wrong in cases() if wrong] == []


def test_all_gpus_of_a_node_are_cut_alike_where_nothing_was_before() -> None:
    told = 0
    for spec, plan, _ in cases():
        for node in spec.cluster.nodes:
            layouts = [plan.gpus.get(f"{node.name}/{gpu}") for gpu in node.healthy_gpus()]
            in_use = {p.instance.partition("@")[0] for p in plan.placements.values() if p.node == node.name}
            if node.mig_strategy == "single" and not spec.current.gpus and len(in_use - {""}) == 1:
                told += len(layouts) > 1
                assert {each.profile for layout in layouts for each in layout or ()} == in_use - {""}
                assert not {None, ()} & set(layouts)
    assert told >= 3


def test_the_strategy_binds() -> None:
    found: Counter[str] = Counter()
    for spec, plan, _ in cases():
        kinds: defaultdict[str, set[str]] = defaultdict(set)
        for place in plan.placements.values():
            if place.gpus:
                kinds[place.node].add(place.instance.partition("@")[0])
        found["left out"] += len(plan.placements) < sum(workload.replicas for workload in spec.workloads)
        found["one kind"] += any(len(own) == 1 and own != {""} for own in kinds.values())
    assert min(found.values()) >= 4, found


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 100))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found = [difference(seed, single) for seed in range(first, first + 100)]
    assert [each[2] for each in found if each is not None and each[2]] == []
