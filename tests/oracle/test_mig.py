"""Parts of GPUs: the engine and brute force agree in every tier, and `verify` agrees with both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.mig_specs import tiny_mig
from tests.support.specs import policy

from dovetail.engine import solve
from dovetail.plan import Plan
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.spec import Enforcement, Request, Role, Share, Spec, Workload
from dovetail.spec.workload import ShareMode
from dovetail.verify import verify

SLICE = 30
CAMPAIGN = 400


def difference(seed: int, drawn: Callable[[int], Spec] = tiny_mig) -> tuple[Spec, Plan, str | None] | None:
    """Return a Spec, its plan and how that differs from the best there is; None where brute force gives up."""
    spec = drawn(seed)
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


def _ruled(seed: int) -> Spec:
    """Return a Spec of small shares, cut GPUs or not, with a rule of what may be together on one GPU."""
    draw = Random(f"ruled {seed}")
    spec = tiny_mig(seed)
    nodes = tuple(replace(node, mechanism="fraction") for node in spec.cluster.nodes)
    cluster = replace(spec.cluster, nodes=nodes, reconfiguration=spec.cluster.reconfiguration or "gpu")
    work = tuple(_sharing(draw, w) if w.id.startswith("new") else w for w in spec.workloads)
    rule = draw.choice((Sharing(1), Sharing(2), *(Separate("workload", "gpu", unless="mig"),) * 2))
    own = policy("p", rule, enforcement=draw.choice(("hard", "hard", 2, 3000)))
    return replace(spec, cluster=cluster, workloads=work, policies=(own,))


def _sharing(draw: Random, work: Workload) -> Workload:
    modes: tuple[ShareMode, ...] = draw.choice((("mig",), ("fraction",), *(("fraction", "mig"),) * 2))
    asked = Request(cpu=work.roles[0].request.cpu, share=Share(draw.choice((100, 250, 400)), modes=modes))
    return replace(work, roles=(Role("", draw.choice((1, 2)), asked, asked.gpu_milli),))


def _breaks(spec: Spec) -> bool:
    """Tell whether the best plan would break the rule if it were only reported."""
    told = replace(spec, policies=tuple(replace(p, enforcement=Enforcement("audit")) for p in spec.policies))
    return any(row.violation for row in solve(told).policies.values())


def test_they_agree_under_rules_at_gpus() -> None:
    found = [each for seed in range(SLICE) if (each := difference(seed, _ruled)) is not None]
    assert [wrong for _, _, wrong in found if wrong] == []
    assert sum(_breaks(spec) for spec, _, _ in found) >= SLICE // 5


@pytest.mark.campaign
@pytest.mark.parametrize("first", range(1_000, 1_000 + CAMPAIGN, 50))
def test_engine_and_brute_force_agree_on_many(first: int) -> None:
    found = [difference(seed) for seed in range(first, first + 50)]
    assert [each[2] for each in found if each is not None and each[2]] == []
