"""A certificate shows what its plan says, and any change to it, to the plan or to the documents is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.proof.cases import certificate_of, certified, refuted, two_nodes, with_first
from tests.support.specs import replica

from dovetail.engine import solve
from dovetail.engine.proving.certify import with_certificate as with_proofs
from dovetail.plan import Plan
from dovetail.problem import compile_problem
from dovetail.proof.attach import attached, detached
from dovetail.proof.certificate import Branch, Certificate, Leaf, Proof, digest_of, write
from dovetail.proof.check import findings, with_certificate
from dovetail.proof.models import Earlier, ExactModels
from dovetail.rules import context_of
from dovetail.spec import Current, PresentReplica, Spec
from dovetail.verify import verify


def said(spec: Spec, plan: Plan, certificate: Certificate | None) -> list[str]:
    return [f"{finding.subject} {finding.detail}" for finding in findings(spec, plan, certificate)]


def named(plan: Plan, certificate: Certificate) -> Plan:
    """Return a plan that names another certificate, as one would who tampers with both."""
    return replace(plan, certificate=digest_of(write(certificate)))


def test_a_plan_and_its_certificate_hold() -> None:
    spec, plan = certified()
    assert plan.outcome.status == "optimal"
    assert {tier.proof for tier in plan.tiers} == {"certificate"}
    assert said(spec, plan, certificate_of(plan)) == []
    verification = with_certificate(verify(spec, plan), spec, plan, certificate_of(plan))
    assert verification.ok
    assert verification.checks[-1].name == "certificate"


def test_infeasible_is_said_on_a_certificate() -> None:
    spec, plan = refuted()
    assert plan.outcome.status == "infeasible"
    assert plan.outcome.proof == "certificate"
    assert said(spec, plan, certificate_of(plan)) == []


def test_infeasible_does_not_hold_for_documents_that_fit() -> None:
    _, plan = refuted()
    larger = two_nodes(gpus=12, must=True)
    certificate = replace(certificate_of(plan), inputs=detached_inputs(larger))
    wrong = named(replace(plan, inputs=detached_inputs(larger)), certificate)
    assert "infeasible is not shown by the certificate" in said(larger, wrong, certificate)[0]


def detached_inputs(spec: Spec) -> str:
    from dovetail.plan import digest

    return digest(spec)


def _leaf(proof: Proof, change: Callable[[Leaf], Leaf]) -> Proof:
    place = next(i for i, node in enumerate(proof.tree) if isinstance(node, Leaf) and node.multipliers)
    leaf = proof.tree[place]
    assert isinstance(leaf, Leaf)
    return replace(proof, tree=(*proof.tree[:place], change(leaf), *proof.tree[place + 1 :]))


TAMPERING: dict[str, Callable[[Proof], Proof]] = {
    "a multiplier less": lambda p: _leaf(
        p, lambda leaf: Leaf({**leaf.multipliers, min(leaf.multipliers): 0}, leaf.denominator)
    ),
    "multipliers of other rows": lambda p: _leaf(
        p, lambda leaf: Leaf({row + 1: y for row, y in leaf.multipliers.items()}, leaf.denominator)
    ),
    "multipliers below 0": lambda p: _leaf(
        p, lambda leaf: Leaf({row: -y for row, y in leaf.multipliers.items()}, leaf.denominator)
    ),
    "another denominator": lambda p: _leaf(p, lambda leaf: Leaf(leaf.multipliers, leaf.denominator * 7)),
    "a node less": lambda p: replace(p, tree=p.tree[:-1]),
    "a branch without halves": lambda p: replace(p, tree=(Branch(0, 0), *p.tree)),
    "a tighter bound": lambda p: replace(p, bound=p.bound - 1000),
    "a looser bound": lambda p: replace(p, bound=p.bound + 1000),
    "another kind": lambda p: replace(p, kind="guess"),
    "other values assumed": lambda p: replace(p, given={"admitted[7]": 1}),
    "no leaf that says anything": lambda p: replace(p, tree=(Leaf({}),)),
}


@pytest.mark.parametrize("how", TAMPERING)
def test_a_certificate_that_was_tampered_with_is_refused(how: str) -> None:
    spec, plan = certified()
    certificate = certificate_of(plan)
    changed = with_first(certificate, TAMPERING[how](certificate.tiers[0]))
    assert said(spec, plan, changed)[0].startswith("certificate is another one than the plan names")
    [finding] = said(spec, named(plan, changed), changed)[:1]
    assert finding.startswith("admitted[0] is not shown by the certificate: ")


def test_a_plan_that_claims_more_is_refused() -> None:
    spec, plan = certified()
    best = plan.tiers[0]
    claimed = replace(plan, tiers=(replace(best, value=best.value - 1000, bound=best.value - 1000), *plan.tiers[1:]))
    assert any("it proves 12000, the plan says 11000" in text for text in said(spec, claimed, certificate_of(plan)))


def test_later_tiers_stand_on_the_values_of_earlier_ones() -> None:
    spec, plan = certified()
    first, last = plan.tiers[0], plan.tiers[-1]
    less = replace(plan, tiers=(replace(first, value=first.value - 1000), *plan.tiers[1:]))
    assert any(text.startswith(last.name) for text in said(spec, less, certificate_of(plan)))


def test_other_documents_are_refused() -> None:
    _, plan = certified()
    other = two_nodes(gpus=12)
    verification = with_certificate(verify(other, plan), other, plan, certificate_of(plan))
    assert verification.stale
    fresh = replace(plan, inputs=detached_inputs(other))
    assert said(other, fresh, certificate_of(plan)) == ["certificate was made for other documents than the plan"]
    moved = replace(certificate_of(plan), inputs=fresh.inputs)
    assert any("is not shown" in text for text in said(other, named(fresh, moved), moved))


def test_a_claim_without_certificate_is_refused() -> None:
    spec, plan = certified()
    [finding] = said(spec, plan, None)
    assert "is missing: plan again with --out" in finding
    verification = with_certificate(verify(spec, plan), spec, plan, None)
    assert [check.code for check in verification.broken] == ["DT3708"]


def test_a_tier_without_proof_is_refused() -> None:
    spec, plan = certified()
    certificate = certificate_of(plan)
    fewer = replace(certificate, tiers=certificate.tiers[:1])
    assert any("it has no proof of this tier" in text for text in said(spec, named(plan, fewer), fewer))


def test_a_plan_that_names_no_certificate_makes_no_claim() -> None:
    spec, plan = certified()
    bare = detached(plan)
    assert not bare.claims_certificate
    assert {tier.proof for tier in bare.tiers} == {"solver"}
    assert with_certificate(verify(spec, bare), spec, bare, None) == verify(spec, bare)
    assert attached(bare, certificate_of(plan).tiers) == plan
    assert replace(bare, tiers=plan.tiers).claims_certificate
    unnamed = said(spec, replace(plan, certificate=None), certificate_of(plan))
    assert unnamed == ["certificate is not named by the plan, which says that bounds rest on one"]


def test_the_check_waits_for_the_state_that_a_plan_started_from() -> None:
    spec, plan = certified()
    elsewhere = replace(plan, current="sha256:" + "0" * 64)
    found = with_certificate(verify(spec, plan), spec, elsewhere, certificate_of(plan)).checks[-1]
    assert (found.ran, found.ok) == (False, True)
    assert "--base" in found.needs


def test_a_state_that_a_document_tells_is_known_to_the_check() -> None:
    bare, _ = certified()
    spec = replace(bare, current=Current((PresentReplica(replica("four#0"), "a", (0, 1, 2, 3)),), from_outside=True))
    plan = with_proofs(context_of(spec), solve(spec))
    stated = replace(spec, current=replace(spec.current, from_outside=False))
    checked = with_certificate(verify(stated, plan), stated, plan, certificate_of(plan))
    assert checked.ok
    assert checked.complete
    forged = with_first(certificate_of(plan), replace(certificate_of(plan).tiers[0], tree=(Leaf({}),)))
    assert not with_certificate(verify(stated, plan), stated, named(plan, forged), forged).ok


def test_rows_do_not_depend_on_which_tiers_were_asked_for() -> None:
    spec, plan = certified()
    problem = compile_problem(context_of(spec))
    known = {tier.name: Earlier(tier.value, tier.bound) for tier in plan.tiers}
    last = len(problem.tiers) - 1
    step_by_step, at_once = ExactModels(problem), ExactModels(problem)
    for position in range(last):
        step_by_step.of_tier(position, known)
    assert last > 0
    rows = [models.of_tier(last, known).rows for models in (step_by_step, at_once)]
    assert rows[0] == rows[1]
