"""Tiny Specs that mix everything: the engine has the optimum of brute force, and tells what it does not know."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.oracle.sample import Case
from tests.support.mixed_further import carried_on, further
from tests.support.mixed_specs import mixed

from dovetail.engine import ladder, solve
from dovetail.plan import Plan, write
from dovetail.progress import Limits
from dovetail.spec import Spec
from dovetail.verify import lines, verify

SLICE = 36
MORE = 12
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "20000"))
CHUNK = 250


@cache
def cases(first: int, count: int, made: Callable[[int], Spec | None] = mixed) -> tuple[Case, ...]:
    """Return cases of consecutive seeds; Specs too large for brute force are left out."""
    found = []
    for seed in range(first, first + count):
        spec = made(seed)
        if spec is None:
            continue
        try:
            found.append(Case(seed, spec, brute(spec, leaves=6_000, evaluations=2_000)))
        except TooLarge:
            continue
    return tuple(found)


def faults_of(case: Case) -> Iterator[str]:
    """Yield how the plan of a case disagrees with brute force or fails to verify."""
    yield from broken(case, case.plan)
    if not best_without_proof(case) and (difference := case.difference()):
        yield difference


def best_without_proof(case: Case) -> bool:
    """Tell whether a plan is the best one and does not claim it.

    Where groups run in part counts do not tell who, beside instances that stay fragmentation is measured closer than
    it is bounded, and models may know more room to restart on GPUs that are cut than there is.
    """
    loose = {tier.name for tier in case.plan.tiers if tier.bound != tier.value}
    told = {tier.name: tier.value for tier in case.plan.tiers}
    running = {present.replica for present in case.spec.current.replicas}
    grouped = [w for w in case.spec.workloads if w.topology is not None and w.topology.groups]
    in_part = any({r in running for r in workload.replica_ids()} == {True, False} for workload in grouped)
    cut = bool(case.spec.current.gpus)
    restarting = any(policy.rule.kind == "survive" for policy in case.spec.policies)
    allowed = in_part or (cut and (restarting or loose == {"fragmentation"}))
    return allowed and case.optimum is not None and told == case.optimum.by_name


def broken(case: Case, plan: Plan) -> Iterator[str]:
    """Yield what the verifier says against a plan."""
    verification = verify(case.spec, plan)
    if not verification.ok:
        yield f"seed {case.seed}: " + "; ".join(lines(verification))


def beyond(case: Case, plan: Plan) -> Iterator[str]:
    """Yield where a plan of a search that was kept short claims what is not so."""
    yield from broken(case, plan)
    status = plan.outcome.status
    if case.optimum is None:
        if status not in ("unknown", "infeasible"):
            yield f"seed {case.seed}: {status}, and there is no plan"
        return
    if status == "infeasible":
        yield f"seed {case.seed}: called infeasible"
    if status not in ("optimal", "feasible"):
        return
    tiers = case.optimum.tiers
    best = ascending(tiers, case.optimum.values)
    told = ascending(tiers, [tier.value for tier in plan.tiers])
    if told > best or (status == "optimal" and told != best):
        yield f"seed {case.seed}: {status} with {told}, the optimum is {best}"
    for position, tier in enumerate(plan.tiers):
        if tier.bound is not None and told[:position] == best[:position]:
            edge = tier.bound if tiers[position].sense == "max" else -tier.bound
            if edge < best[position]:
                yield f"seed {case.seed}: the bound {tier.bound} of {tier.name} cuts the optimum {best[position]}"


def shuffled(spec: Spec, seed: int) -> Spec:
    """Return an equal Spec, its parts in the order that other files would give them."""
    rng = Random(seed)
    rows = tuple(rng.sample(spec.current.replicas, len(spec.current.replicas)))
    cut = dict(rng.sample(list(spec.current.gpus.items()), len(spec.current.gpus)))
    told = dict(rng.sample(list(spec.current.settings.items()), len(spec.current.settings)))
    cards = dict(rng.sample(list(spec.accelerators.items()), len(spec.accelerators)))
    return replace(spec, accelerators=cards, current=replace(spec.current, replicas=rows, gpus=cut, settings=told))


def test_the_engine_finds_the_optimum_of_every_tier_and_its_plans_verify() -> None:
    assert [fault for case in cases(0, SLICE) for fault in faults_of(case)] == []


@pytest.mark.parametrize("made", [further, carried_on])
def test_it_does_with_more_in_them_and_where_they_go_on(made: Callable[[int], Spec | None]) -> None:
    found = cases(0, MORE, made)
    assert len(found) >= MORE // 2
    assert [fault for case in found for fault in faults_of(case)] == []


FOUND = [(further, 20389), (further, 20796), (carried_on, 21115), (further, 21220), (mixed, 21990), (mixed, 22569)]


@pytest.mark.parametrize(("made", "seed"), FOUND)
def test_models_know_as_much_as_names(made: Callable[[int], Spec | None], seed: int) -> None:
    """Of modes that policies close, held places that do not count, groups given up, and instances that stay idle."""
    assert [case.difference() for case in cases(seed, 1, made)] == [None]


def test_the_slice_mixes_much(tell: Callable[[str], None]) -> None:
    found: Counter[str] = Counter()
    for case in cases(0, SLICE):
        places = {} if case.optimum is None else case.optimum.places
        found["cut"] += any(place.instance for place in places.values())
        found["cut today"] += bool(case.spec.current.gpus)
        found["by equal parts"] += any(n.sharing is not None for n in case.spec.cluster.nodes)
        found["gangs"] += any(w.atomic and any(r.workload == w.id for r in places) for w in case.spec.workloads)
        found["elastic"] += any(w.elastic for w in case.spec.workloads)
        found["running"] += bool(case.spec.current.replicas)
        found["promised"] += any(w.slo for w in case.spec.workloads)
        found["left out"] += len(places) < sum(w.replicas for w in case.spec.workloads)
        found["no plan"] += case.optimum is None
        found.update({policy.rule.kind for policy in case.spec.policies})
    tell(f"mixed tiny Specs: {len(cases(0, SLICE))}, {dict(sorted(found.items()))}")
    assert min(found[name] for name in ("cut", "cut today", "gangs", "elastic", "running", "promised")) >= 10


def test_equal_specs_give_equal_bytes() -> None:
    for case in cases(0, SLICE)[::4]:
        assert write(solve(shuffled(case.spec, case.seed))) == write(case.plan), f"seed {case.seed}"


def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)


def test_searches_that_are_kept_short_claim_nothing_that_is_not_so(monkeypatch: pytest.MonkeyPatch) -> None:
    short = [(case, solve(case.spec, Limits(work=0.001))) for case in cases(0, SLICE)[::3]]
    in_parts(monkeypatch)
    short += [(case, solve(case.spec, Limits(work=0.02))) for case in cases(0, SLICE)[1::5]]
    assert [fault for case, plan in short for fault in beyond(case, plan)] == []


@pytest.mark.campaign
@pytest.mark.parametrize("made", [further, carried_on])
@pytest.mark.parametrize("chunk", range(6))
def test_hundreds_agree_with_more_in_them_and_where_they_go_on(
    chunk: int, made: Callable[[int], Spec | None]
) -> None:
    first = CAMPAIGN_FIRST + chunk * CHUNK
    print(f"seeds {first} to {first + CHUNK - 1}")
    found = cases(first, CHUNK, made)
    assert [fault for case in found for fault in faults_of(case)] == []
    hinted = [(case, solve(case.spec, hint=case.optimum.places)) for case in found[::3] if case.optimum]
    assert [fault for case, plan in hinted for fault in beyond(case, plan)] == []


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(12))
def test_thousands_agree(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    first = CAMPAIGN_FIRST + chunk * CHUNK
    print(f"seeds {first} to {first + CHUNK - 1}")
    found = cases(first, CHUNK)
    assert [fault for case in found for fault in faults_of(case)] == []
    differ = [case.seed for case in found[::5] if write(solve(shuffled(case.spec, 1))) != write(case.plan)]
    assert differ == []
    short = [(case, solve(case.spec, Limits(work=0.01))) for case in found[::4]]
    in_parts(monkeypatch)
    short += [(case, solve(case.spec, Limits(work=0.1))) for case in found[1::4]]
    assert [fault for case, plan in short for fault in beyond(case, plan)] == []
