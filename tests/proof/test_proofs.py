"""Proofs that the engine makes: as tight as brute force on tiny Specs, never beyond it, and they all check."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.oracle.sample import Case, cases
from tests.proof.cases import certificate_of, two_nodes

from dovetail.engine import solve
from dovetail.engine.proving import certify
from dovetail.engine.proving.certify import with_certificate
from dovetail.engine.proving.prove import Work, prove
from dovetail.linear import Linear
from dovetail.plan import Plan, write
from dovetail.progress import Stop
from dovetail.proof.check import findings
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.tree import Question, Unproved, check_tree
from dovetail.rules import context_of


@cache
def certified() -> tuple[tuple[Case, Plan], ...]:
    return tuple((case, with_certificate(context_of(case.spec), case.plan)) for case in cases(0, 84))


def test_nearly_every_bound_of_tiny_specs_has_a_proof() -> None:
    proofs = Counter(tier.proof for _, plan in certified() for tier in plan.tiers)
    assert proofs["certificate"] >= 0.95 * (proofs["certificate"] + proofs["solver"])
    assert proofs["certificate"] >= 70


def test_all_of_them_check_against_the_documents() -> None:
    for case, plan in certified():
        if plan.claims_certificate:
            assert list(findings(case.spec, plan, certificate_of(plan))) == [], f"seed {case.seed}"


def test_no_certified_bound_crosses_the_true_optimum() -> None:
    for case, plan in certified():
        told = {tier.name: tier.bound for tier in plan.tiers if tier.proof == "certificate"}
        assert (case.optimum is None) == (plan.outcome.status == "infeasible")
        if case.optimum is not None:
            assert told.items() <= case.optimum.by_name.items(), f"seed {case.seed}"


def test_a_bound_beyond_the_optimum_cannot_be_proved() -> None:
    for case, plan in certified()[:40]:
        for tier in plan.tiers[:1]:
            less = -1 if tier.sense == "max" else 1
            wrong = replace(tier, bound=tier.value + less, proof="solver")
            again = with_certificate(
                context_of(case.spec), replace(plan, evidence=None, tiers=(wrong, *plan.tiers[1:]))
            )
            assert again.tiers[0].proof == "solver", f"seed {case.seed}"


def test_the_same_plan_gets_the_same_bytes() -> None:
    spec = two_nodes()
    once, again = (with_certificate(context_of(spec), solve(spec)) for _ in range(2))
    assert once.evidence == again.evidence is not None
    assert write(once) == write(again)
    assert f"certificate: {once.certificate}" in write(once)


def test_what_is_certified_stays_so() -> None:
    spec = two_nodes()
    plan = with_certificate(context_of(spec), solve(spec))
    assert with_certificate(context_of(spec), plan) == plan


@pytest.mark.parametrize("how", ["work", "stop", "size"])
def test_without_the_means_a_plan_goes_without(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    spec = two_nodes()
    plan = solve(spec)
    stop = Stop()
    if how == "stop":
        stop.set()
    else:
        monkeypatch.setattr(certify, "WORK_PER_TIER" if how == "work" else "LARGEST", 0)
    assert with_certificate(context_of(spec), plan, stop=stop) == plan


def test_integer_infeasibility_that_no_lp_sees_is_proved() -> None:
    # 2x + 2y + 2z = 5: fractions reach it, integers do not.
    rows = (PlainRow((0, 1, 2), (2, 2, 2), 5), PlainRow((0, 1, 2), (-2, -2, -2), -5))
    question = Question(Linear(), 0, (0,) * 3, (3,) * 3, rows)
    found = prove(question, Work(10**6), lambda: False)
    assert found is not None
    check_tree(question, *found)


def test_what_is_possible_is_not_refuted() -> None:
    question = Question(Linear({0: 1}), 1, (0,), (3,), (PlainRow((0,), (2,), 3),))
    assert prove(question, Work(10**6), lambda: False) is None
    with pytest.raises(Unproved):
        check_tree(question, ())


@pytest.mark.parametrize(
    ("question", "provable"),
    [
        (Question(Linear(), 1, (), (), ()), True),
        (Question(Linear({}, 3), 4, (), (), ()), True),
        (Question(Linear({}, 3), 3, (), (), ()), False),
        (Question(Linear({0: 2}), 8, (0,), (3,), ()), True),
        (Question(Linear({0: 2}), 6, (0,), (3,), ()), False),
        (Question(Linear(), 0, (0,), (3,), (PlainRow((), (), -1),)), True),
        (Question(Linear(), 0, (), (), (PlainRow((), (), -1),)), True),
        (Question(Linear({0: 1}), 3, (0,), (5,), (PlainRow((0,), (0,), 0), PlainRow((0,), (2,), 5))), True),
    ],
)
def test_models_with_next_to_nothing_in_them(question: Question, provable: bool) -> None:
    found = prove(question, Work(10**6), lambda: False)
    assert (found is not None) == provable
    if found is not None:
        check_tree(question, *found)


@pytest.mark.parametrize("skipped", [0, 1])
def test_tiers_without_a_proof_leave_later_ones_theirs(monkeypatch: pytest.MonkeyPatch, skipped: int) -> None:
    calls: list[Question] = []

    def now_and_then(question: Question, *rest: Any) -> object:
        calls.append(question)
        return None if len(calls) % 2 == skipped else prove(question, *rest)

    monkeypatch.setattr(certify, "prove", now_and_then)
    shown = 0
    for case, _ in certified():
        plan = with_certificate(context_of(case.spec), case.plan)
        if plan.claims_certificate and plan.outcome.status != "infeasible":
            assert list(findings(case.spec, plan, certificate_of(plan))) == [], f"seed {case.seed}"
            shown += any(tier.proof == "solver" for tier in plan.tiers)
    assert shown > 20
