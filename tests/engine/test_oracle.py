"""The engine's optimum is brute force's, tier by tier, on tiny random Specs."""

from __future__ import annotations

import os

import pytest
from tests.oracle.brute import ascending, brute
from tests.oracle.sample import SLICE, Case, cases, shared
from tests.support.specs import make_spec, node, place, policy, workload

from dovetail.engine import improving, ladder, solve
from dovetail.engine.parts.lns import Neighbourhoods
from dovetail.engine.second_opinion import second_opinion
from dovetail.plan import Outcome
from dovetail.problem import Problem
from dovetail.progress import Limits
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.verify import lines, verify

CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))
CAMPAIGN_CHUNKS = 20
CHUNK = 250


def faults_of(case: Case) -> list[str]:
    """Return how a case disagrees with brute force or fails to verify."""
    found = [case.difference()]
    verification = verify(case.spec, case.plan)
    if not verification.ok:
        found.append(f"seed {case.seed}: " + "; ".join(lines(verification)))
    return [fault for fault in found if fault is not None]


def test_the_slice_is_large_and_has_what_cannot_be_planned() -> None:
    assert len(shared()) >= 300
    assert len(shared()) >= 0.9 * SLICE
    assert sum(case.optimum is None for case in shared()) >= 5


def test_the_engine_finds_the_optimum_of_every_tier_and_its_plans_verify() -> None:
    assert [fault for case in shared() for fault in faults_of(case)] == []


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(CAMPAIGN_CHUNKS))
def test_the_engine_finds_the_optimum_on_thousands(chunk: int, record_property: object) -> None:
    first = CAMPAIGN_FIRST + chunk * CHUNK
    record_property("seeds", f"{first}-{first + CHUNK - 1}")  # type: ignore[operator]
    print(f"seeds {first} to {first + CHUNK - 1}")
    assert [fault for case in cases(first, CHUNK) for fault in faults_of(case)] == []


def test_pyomo_and_highs_prove_the_same_optimum() -> None:
    asked = shared()[:24]
    for case in asked:
        infeasible = case.optimum is None
        opinion = second_opinion(context_of(case.spec), case.plan.tiers, infeasible=infeasible)
        assert opinion.agrees, f"seed {case.seed}: {opinion}"
        if case.optimum is not None:
            assert dict(opinion.tiers) == case.optimum.by_name, f"seed {case.seed}"


def test_infeasible_is_said_on_a_certificate() -> None:
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [policy("all", Admission())])
    assert brute(spec) is None
    assert solve(spec).outcome == Outcome("infeasible", proof="certificate")


def test_without_a_certificate_two_engines_must_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [policy("all", Admission())])
    monkeypatch.setattr("dovetail.engine.proving.certify.refutation", lambda *_, **__: None)
    assert solve(spec).outcome == Outcome("infeasible", proof="two-engines")
    monkeypatch.setattr("dovetail.engine.second_opinion.confirm_infeasible", lambda *_, **__: None)
    plan = solve(spec)
    assert plan.outcome.status == "unknown"
    assert verify(spec, plan).ok


@pytest.mark.parametrize("size", [1, 2, 6])
def test_improvement_by_parts_never_passes_the_optimum_nor_its_bounds_cross_it(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    monkeypatch.setattr(improving, "Neighbourhoods", lambda problem, *_: _parts(problem, size))
    for case in shared()[:42]:
        plan = solve(case.spec, Limits(work=0.1))
        verification = verify(case.spec, plan)
        assert verification.ok, f"seed {case.seed}: " + "; ".join(lines(verification))
        if case.optimum is None:
            assert plan.outcome.status in ("unknown", "infeasible"), f"seed {case.seed}"
        elif plan.outcome.status != "unknown":
            _within(case, [(t.value, t.bound) for t in plan.tiers], plan.outcome.status)


def _parts(problem: Problem, size: int) -> Neighbourhoods:
    parts = Neighbourhoods(problem, size=size)
    parts.learn = lambda closed: None  # type: ignore[method-assign]
    return parts


def _within(case: Case, told: list[tuple[int, int | None]], status: str) -> None:
    assert case.optimum is not None
    tiers = case.optimum.tiers
    best = ascending(tiers, case.optimum.values)
    values = ascending(tiers, [value for value, _ in told])
    assert values <= best, f"seed {case.seed}: better than the optimum"
    assert status != "optimal" or values == best, f"seed {case.seed}: called optimal"
    for position, (_, bound) in enumerate(told):
        if bound is not None and values[:position] == best[:position]:
            edge = bound if tiers[position].sense == "max" else -bound
            assert edge >= best[position], f"seed {case.seed}: the bound of {tiers[position].name} cuts the optimum"


def test_the_brute_force_itself_on_a_case_done_by_hand() -> None:
    spec = make_spec(
        [node("a", 2, price=3), node("b", 1, price=1)],
        [workload("low", 2, gpus=1), workload("high", 1, gpus=2, priority=9)],
        running={"low#0": place("a", 1)},
    )
    optimum = brute(spec)
    assert optimum is not None
    assert optimum.by_name == {
        "admitted[9]": 2000,
        "admitted[0]": 1000,
        "disruption.evicted": 0,
        "disruption.gpuTimeLost": 0,
        "disruption.moves": 1,
        "cost": 4,
    }
