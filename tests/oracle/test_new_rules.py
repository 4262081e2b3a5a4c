"""Rules with a search of their own agree with brute force, tier by tier, hard and soft, on tiny random Specs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.oracle.sample import SLICE
from tests.support.fleet_cuts import cuts
from tests.support.specs import policy, request
from tests.support.tiny_specs import TENANTS, tiny

from dovetail.engine import solve
from dovetail.rules import TABLE, context_of
from dovetail.rules.cohorts import Lends
from dovetail.rules.colocate import Colocate
from dovetail.rules.move import Move, Window
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.rules.sharing import Sharing
from dovetail.rules.survive import Survive
from dovetail.spec import Enforcement, NodeSelector, Policy, Slo, Spec, WorkloadSelector
from dovetail.verify import lines, verify

SEEDS = 21
THURSDAY = dt.date(2026, 6, 4)
MOVING = (
    3018,
    3030,
    3054,
    3066,
    3090,
    3102,
    3126,
    3135,
    3138,
    3150,
    3156,
    3162,
    3169,
    3174,
    3181,
    3186,
    3198,
    3210,
    3222,
    3234,
    3244,
    3246,
    3258,
    3270,
    3282,
    3294,
    3306,
    3318,
    3330,
    3354,
    3402,
    3426,
    3438,
    3450,
    3462,
    3473,
    3474,
    3480,
    3486,
    3498,
)
"""Tiny Specs whose best plan without policies moves something."""


def _cohort(rng: Random) -> list[Policy]:
    """Return a quota for each tenant, in one cohort or in one that the groups of a policy make up."""
    lends: Lends = rng.choice(("idle", "unused"))
    enforcement = rng.choice(("hard", "hard", 1, 3))
    if rng.random() < 0.3:
        rule = Quota(
            per="tenant", guaranteed=_amounts(rng), borrowing=_limits(rng), lending=_limits(rng), lends=lends
        )
        return [policy("q", rule, enforcement=enforcement)]
    return [
        policy(
            f"q-{tenant}",
            Quota(
                limits=rng.choice(((), (), (("gpus", 2000),))),
                guaranteed=_amounts(rng),
                borrowing=_limits(rng),
                lending=_limits(rng),
                lends=lends,
                cohort="c",
            ),
            enforcement=enforcement,
            workloads=WorkloadSelector(tenants=(tenant,)),
        )
        for tenant in TENANTS
    ]


def _tree(rng: Random) -> list[Policy]:
    """Return a quota for each tenant, each in a cohort of its own, which lie in one."""
    enforcement = rng.choice(("hard", "hard", 1, 3))
    lends: Lends = rng.choice(("idle", "unused"))
    found = [
        policy(
            f"q-{tenant}",
            Quota(guaranteed=_amounts(rng), borrowing=_limits(rng), lending=_limits(rng), lends=lends, cohort=tenant),
            enforcement=enforcement,
            workloads=WorkloadSelector(tenants=(tenant,)),
        )
        for tenant in TENANTS
    ]
    for tenant in TENANTS:
        rule = Quota(
            guaranteed=rng.choice(((), (("gpus", 1000),))),
            borrowing=rng.choice((None, (), (("gpus", 600),))),
            lending=_limits(rng),
            lends=rng.choice(("idle", "unused")),
            cohort="c",
            for_cohort=tenant,
        )
        found.append(policy(f"q-of-{tenant}", rule, enforcement=enforcement))
    if rng.random() < 0.5:
        rule = Quota(guaranteed=(("gpus", rng.choice((400, 1000))),), for_cohort="c")
        found.append(policy("q-of-all", rule, enforcement=enforcement))
    return found


def _amounts(rng: Random) -> tuple[tuple[str, int], ...]:
    return rng.choice(
        (
            (("gpus", 1000),),
            (("gpus", 700),),
            (("cpu", 2000), ("gpus", 1000)),
            (("gpus", 0),),
            (("dominantShare", 300),),
        )
    )


def _limits(rng: Random) -> tuple[tuple[str, int], ...] | None:
    return rng.choice((None, None, (("gpus", 0),), (("gpus", 600),)))


def _reserve(rng: Random) -> list[Policy]:
    """Return a policy that holds places of some request, or a domain, and now and then another one."""
    level = rng.choice(("node", "node", "rack"))
    places = Reserve(
        replicas=rng.choice((1, 1, 2)),
        request=rng.choice((request(1), request(2), request(share=400), request(cpu=1500), request(1, cpu=2000))),
        within=rng.choice((None, level)),
    )
    rule = rng.choice((places, places, Reserve(domains=1, of=level)))
    nodes = NodeSelector(names=("n0",)) if rng.random() < 0.15 else None
    enforcement = rng.choice(("hard", "hard", 1, 3000))
    more = [policy("r2", Reserve(replicas=1, request=request(1)), enforcement=rng.choice(("hard", 2)))]
    return [policy("q", rule, enforcement=enforcement, nodes=nodes), *(more if rng.random() < 0.2 else [])]


def _survive(rng: Random) -> list[Policy]:
    """Return a policy that some workloads survive the loss of a domain, others being evicted for that or not."""
    may_evict = rng.choice((None, WorkloadSelector(), WorkloadSelector(tenants=("red",))))
    matched = rng.choice(
        (WorkloadSelector(), WorkloadSelector(tenants=("blue",)), WorkloadSelector(priority_min=100))
    )
    rule = Survive(of=rng.choice(("node", "node", "rack")), may_evict=may_evict)
    return [policy("q", rule, enforcement=rng.choice(("hard", "hard", 1, 3000)), workloads=matched)]


def _promising(spec: Spec, rng: Random) -> Spec:
    """Return a Spec of which services of one role promise a rate."""
    found = []
    for w in spec.workloads:
        if len(w.roles) == 1 and w.roles[0].request.gpu_count and not w.atomic:
            rates = {card: rng.choice((0, 70_000, 130_000, 200_000)) for card in spec.accelerators}
            w = replace(w, slo=Slo(rng.choice((150_000, 300_000, 777_000)), rates))
        found.append(w)
    return replace(spec, workloads=tuple(found))


def test_the_tier_slo_has_the_optimum_of_brute_force(tell: Callable[[str], None]) -> None:
    faults, short = [], 0
    for seed in range(SEEDS):
        spec = _promising(tiny(seed * 7 + 2000), Random(seed))
        try:
            optimum = brute(spec)
        except TooLarge:
            continue
        plan = solve(spec)
        told = {tier.name: tier.value for tier in plan.tiers}
        short += told.get("slo", 0) > 0
        if optimum is not None and (plan.outcome.status != "optimal" or told != optimum.by_name):
            faults.append(f"seed {seed}: {plan.outcome.status} {told}, brute force has {optimum.by_name}")
        if not verify(spec, plan).ok:
            faults.append(f"seed {seed}: " + "; ".join(lines(verify(spec, plan))))
    tell(f"tier slo: {short} tiny Specs serve less than promised")
    assert faults == []
    assert short >= 10


def _colocate(rng: Random) -> list[Policy]:
    """Return a policy that some workloads are together, alike ones or each by itself."""
    by = rng.choice(("tenant", "namespace", "workload", "workload", "label"))
    rule = Colocate(by=by, at=rng.choice(("node", "node", "rack")), label="team" if by == "label" else None)
    matched = rng.choice((WorkloadSelector(), WorkloadSelector(), WorkloadSelector(tenants=("red",))))
    return [policy("q", rule, enforcement=rng.choice(("hard", "hard", "hard", 1, 3000)), workloads=matched)]


def _sharing(rng: Random) -> list[Policy]:
    """Return a policy that few replicas share a GPU, on all nodes or on some."""
    matched = rng.choice((WorkloadSelector(), WorkloadSelector(), WorkloadSelector(tenants=("red",))))
    nodes = NodeSelector(names=("n0",)) if rng.random() < 0.15 else None
    enforcement = rng.choice(("hard", "hard", 1, 3000))
    rule = Sharing(max_clients=rng.choice((1, 1, 1, 2)))
    return [policy("q", rule, enforcement=enforcement, workloads=matched, nodes=nodes)]


def _windows(rng: Random) -> list[Policy]:
    """Return a limit of moves that holds on some days, for a Spec of a Thursday or without a date."""
    days = rng.choice((("saturday",), ("thursday",), ("monday", "friday")))
    first = rng.choice((None, None, dt.date(2027, 1, 1)))
    rule = Move(max_moves=rng.choice((None, 0, 1)), only_in=(Window(days, first),))
    return [policy("q", rule, enforcement=rng.choice(("hard", "hard", 1, 3)))]


RULES: Mapping[str, Callable[[Random], list[Policy]]] = {
    "cohort": _cohort,
    "colocate": _colocate,
    "reserve": _reserve,
    "sharing": _sharing,
    "survive": _survive,
    "tree": _tree,
    "windows": _windows,
}


def cases(kind: str) -> Iterator[tuple[int, Spec]]:
    """Yield Specs whose policies are one tiny Spec's first, if any, and some of a rule."""
    for seed in range(SEEDS):
        rng = Random(f"{kind} {seed}")
        base = tiny(seed * 7 + 1000 if kind != "windows" else MOVING[seed])
        policies = [*base.policies[: seed % 2], *RULES[kind](rng)]
        policies = sorted(policies, key=lambda p: p.name)
        yield seed, replace(base, policies=tuple(policies), waivers=(), as_of=THURSDAY if seed % 8 else None)


@pytest.mark.parametrize("kind", RULES)
def test_the_engine_has_the_optimum_of_brute_force(kind: str, tell: Callable[[str], None]) -> None:
    faults, looked, bound = [], 0, 0
    for seed, spec in cases(kind):
        try:
            optimum = brute(spec)
        except TooLarge:
            continue
        plan = solve(spec)
        verification = verify(spec, plan)
        told = {tier.name: tier.value for tier in plan.tiers}
        looked += 1
        bound += _binds(spec, kind)
        if not verification.ok:
            faults.append(f"seed {seed}: " + "; ".join(lines(verification)))
        if optimum is None and plan.outcome.status != "infeasible":
            faults.append(f"seed {seed}: {plan.outcome.status}, and there is no plan")
        if optimum is not None and (plan.outcome.status != "optimal" or told != optimum.by_name):
            faults.append(f"seed {seed}: {plan.outcome.status} {told}, brute force has {optimum.by_name}")
        if optimum is not None:
            best = ascending(optimum.tiers, optimum.values)
            faults += [f"seed {seed}: the bound on fleets cuts the optimum: {cut}" for cut in cuts(spec, best)]
    tell(f"{kind}: {looked} tiny Specs, the rule binds in {bound}")
    assert faults == []
    assert looked >= SEEDS // 2
    assert bound >= SEEDS // 5


def test_every_rule_is_looked_at_hard_and_soft() -> None:
    drawn = [tiny(seed) for seed in range(SLICE)] + [spec for kind in RULES for _, spec in cases(kind)]
    found = Counter((p.rule.kind, p.enforcement.kind) for spec in drawn for p in spec.policies)
    assert {(rule, kind): n for rule in TABLE for kind in ("hard", "soft") if (n := found[rule, kind]) < 5} == {}


def _binds(spec: Spec, kind: str) -> bool:
    """Tell whether the best plan without the rule's policies breaks any of them."""
    own = {p.name for p in spec.policies if p.name[0] in "qr"}
    free = replace(spec, policies=tuple(p for p in spec.policies if p.name not in own))
    only_told = [replace(p, enforcement=Enforcement("audit")) if p.name in own else p for p in spec.policies]
    context = context_of(replace(spec, policies=tuple(only_told)))
    found = context.violations(context.view(solve(free).placements))
    return any(found[name] for name in own if name in found)
