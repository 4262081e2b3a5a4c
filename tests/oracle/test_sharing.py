"""GPUs shared by equal parts: the engine and brute force agree in every tier, and `verify` agrees with both."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from tests.oracle.test_mig import difference
from tests.oracle.test_new_rules import cases as ruled
from tests.support.mig_specs import tiny_mig
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import make_spec, node, policy, request, role, workload

from dovetail.engine import solve
from dovetail.plan import Plan
from dovetail.rules import Rule
from dovetail.rules.promises import Promises
from dovetail.rules.sharing import Sharing
from dovetail.spec import EqualParts, Expected, Node, Request, Share, Spec
from dovetail.spec.objective import OPTIONAL_TIERS
from dovetail.spec.permits import Ratios
from dovetail.verify import verify

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


def cut_and_shared(seed: int) -> Spec:
    """Return a Spec whose GPUs may be cut, or shared by equal parts, or both on one node."""
    spec = tiny_mig(seed)
    nodes = tuple(_parted(node, seed + index) for index, node in enumerate(spec.cluster.nodes))
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes))


def _parted(node: Node, draw: int) -> Node:
    return replace(node, mechanism=("devicePlugin", "dra", "devicePlugin")[draw % 3], sharing=EqualParts())


def test_they_agree_where_gpus_may_be_cut_too() -> None:
    found = [difference(seed, cut_and_shared) for seed in range(SLICE // 3)]
    assert [each[2] for each in found if each is not None and each[2]] == []


def judged(seed: int) -> Spec:
    """Return a Spec whose plan is also to leave little idle GPU useless."""
    spec = tiny_sharing(seed)
    mix = (Expected(Request(gpus=1), (), 2), Expected(Request(gpus=2), (), 1))
    shares = tuple(Expected(Request(share=Share(milli)), (), 1 + seed % 3) for milli in (200, 450))
    objective = replace(spec.objective, tiers=(*spec.objective.tiers, *OPTIONAL_TIERS))
    return replace(spec, objective=replace(objective, future_mix=((*mix, *shares), mix, ())[seed % 3]))


def test_they_agree_on_fragmentation() -> None:
    found = [difference(seed, judged) for seed in range(SLICE // 2)]
    assert [each[2] for each in found if each is not None and each[2]] == []


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 100))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found = [difference(seed, tiny_sharing) for seed in range(first, first + 100)]
    assert [each[2] for each in found if each is not None and each[2]] == []


@pytest.mark.campaign
@pytest.mark.parametrize("kind", ["survive", "reserve", "sharing", "colocate"])
def test_they_agree_under_rules(kind: str) -> None:
    specs = {seed: shared_by(spec) for seed, spec in ruled(kind)}
    found = [difference(seed, specs.__getitem__) for seed in specs]
    assert [each[2] for each in found if each is not None and each[2]] == []


def shared_by(spec: Spec) -> Spec:
    """Return a Spec whose GPUs are shared by equal parts, those of every fourth node aside."""
    nodes = tuple(_parted(n, i) if n.gpus and i % 4 != 3 else n for i, n in enumerate(spec.cluster.nodes))
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes))


@pytest.mark.parametrize("rule", [Sharing(1), Promises(Ratios(compute=2000))])
def test_whole_gpus_beside_shares_are_counted_by_no_rule_on_sharing(rule: Rule) -> None:
    """One workload has both, another whole GPUs alone: to such rules these are alike."""
    both = workload("both", roles=[role("part", 2, request(share=400)), role("full", 1, request(1))])
    spec = make_spec(
        [node("n", 4, mechanism="devicePlugin", sharing=EqualParts(time_slicing=4))],
        [both, workload("whole", gpus=1)],
        [policy("few", rule)],
    )
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert len(plan.placements) == 4
    assert verify(spec, plan).ok
