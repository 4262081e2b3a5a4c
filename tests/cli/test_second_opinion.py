"""`--second-opinion`: both engines' proof, a contradiction, and an answer that never came."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Shell, SolversHere

from dovetail.plan import Outcome, Plan, TierResult, confirmed, opinion_of
from dovetail_cli.render import review

pytestmark = pytest.mark.usefixtures("solvers_here")


def text(project: Path) -> str:
    return (project / "plan.yaml").read_text(encoding="utf-8")


def answers(monkeypatch: pytest.MonkeyPatch, more: int | None) -> list[float | None]:
    """Let the other engine have `more` than the plan in the first tier, or no answer; return its time limits."""
    asked: list[float | None] = []

    def stand_in(solver: object, spec: object, plan: Plan, seconds: float | None, *told: object) -> Plan:
        asked.append(seconds)
        optima = {} if more is None else {plan.tiers[0].name: plan.tiers[0].value + more}
        return confirmed(plan, opinion_of("HiGHS", plan.tiers, optima))

    monkeypatch.setattr(SolversHere, "second_opinion", stand_in)
    return asked


def test_what_both_engines_prove_rests_on_two(dovetail: Shell, project: Path) -> None:
    assert dovetail("plan", "--second-opinion", "--out", "plan.yaml") == 0
    assert "second opinion: HiGHS" in dovetail.out
    assert "agrees" in dovetail.out
    assert "agrees: true, conclusive: true" in text(project)
    assert "proof: solver" not in text(project)
    assert dovetail("verify", "plan.yaml", ".") == 0


def test_a_contradiction_ends_with_4_and_leaves_no_plan(
    dovetail: Shell, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, 1000)
    assert dovetail("plan", "--second-opinion", "--out", "plan.yaml") == 4
    assert "DOES NOT AGREE: admitted[0]" in dovetail.out
    assert "DT3707" in dovetail.err
    assert not (project / "plan.yaml").exists()


def test_no_answer_is_a_warning(dovetail: Shell, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, None)
    assert dovetail("plan", "--second-opinion", "--out", "plan.yaml") == 0
    assert "is inconclusive; it left 1 tier open" in dovetail.out
    assert "warning: the second opinion of HiGHS is inconclusive" in dovetail.err
    assert "agrees: true, conclusive: false" in text(project)
    assert dovetail("verify", "plan.yaml", ".") == 0


@pytest.mark.parametrize(
    ("limit", "seconds"), [((), None), (("--time-limit", "20s"), 20.0), (("--time-limit", "10m"), 600.0)]
)
def test_it_has_the_time_limit_or_its_own(
    dovetail: Shell, project: Path, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, ...], seconds: float | None
) -> None:
    asked = answers(monkeypatch, 0)
    assert dovetail("plan", "--second-opinion", *limit) == 0
    assert asked == [seconds]


def test_infeasible_is_said_with_its_two_engines(dovetail: Shell, project: Path) -> None:
    (project / "must.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Policy\nmetadata: {name: all}\n"
        "spec: {match: {workloads: {}}, rule: {admission: {}}, enforcement: hard}\n",
        encoding="utf-8",
    )
    for name in ("a", "b"):
        (project / "workloads" / f"{name}.yaml").write_text(
            f"apiVersion: dovetail/v1alpha1\nkind: Workload\nmetadata: {{name: {name}}}\n"
            "spec: {type: job, replicas: 2, request: {gpus: 4}}\n",
            encoding="utf-8",
        )
    assert dovetail("plan", "--second-opinion") == 5
    assert "INFEASIBLE (proved by two engines)" in dovetail.out
    assert "agrees" in dovetail.out


def test_a_better_value_that_the_bound_allows_is_told() -> None:
    tiers = (
        TierResult("admitted[0]", 5000, 9000, "milli-GPU", "max", "solver"),
        TierResult("cost", 3, 3, "millionths/h", "min", "solver"),
    )
    plan = Plan("p", "sha256:", Outcome("feasible"), tiers)
    told = confirmed(plan, opinion_of("HiGHS", tiers, {"admitted[0]": 7000}))
    assert list(review.opinion(told)) == [
        "second opinion: HiGHS found better, within the bound: admitted[0] 7 GPU; 1 tier not compared"
    ]
