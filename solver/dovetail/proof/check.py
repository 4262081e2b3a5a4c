"""Checks a certificate against documents and plan, in integers and without a solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dovetail.objectives import is_limit, sign_of
from dovetail.plan import Plan, TierResult, as_planned
from dovetail.problem import Problem, compile_problem
from dovetail.proof.certificate import Certificate, digest_of, write
from dovetail.proof.models import Earlier, Models
from dovetail.proof.table import MODELS
from dovetail.proof.tree import Unproved, check_tree
from dovetail.rules import context_of
from dovetail.spec import Spec
from dovetail.verify import CERTIFICATE, STATE, CheckResult, Finding, Verification
from dovetail.verify.model import SAME_DOCUMENTS

NAME, CODE = CERTIFICATE.name, CERTIFICATE.code


def with_certificate(
    verification: Verification, spec: Spec, plan: Plan, certificate: Certificate | None
) -> Verification:
    """Return what verifying a plan found, with the check of its certificate where it claims to have one."""
    if not plan.claims_certificate:
        return verification
    if verification.stale:
        result = CheckResult(NAME, CODE, ran=False, needs=SAME_DOCUMENTS)
    elif plan.current is not None and verification.given_current is None:
        result = CheckResult(NAME, CODE, ran=False, needs=STATE)
    else:
        result = CheckResult(NAME, CODE, tuple(findings(spec, plan, certificate)))
    return replace(verification, checks=(*verification.checks, result))


def findings(spec: Spec, plan: Plan, certificate: Certificate | None) -> Iterator[Finding]:
    """Yield what a plan says to rest on a certificate and does not.

    Parameters
    ----------
    spec : what the documents mean, with the state that the plan started from.
    certificate : None where there is none.
    """
    if certificate is None:
        yield Finding(NAME, "is missing: plan again with --out, or name the file with --certificate")
        return
    if plan.certificate is None:
        yield Finding(NAME, "is not named by the plan, which says that bounds rest on one")
    elif plan.certificate != digest_of(write(certificate)):
        yield Finding(NAME, "is another one than the plan names: their digests differ")
    if certificate.inputs != plan.inputs:
        yield Finding(NAME, "was made for other documents than the plan")
        return
    checker = _Checker(compile_problem(context_of(as_planned(spec, plan))), certificate)
    yield from checker.none(plan) if plan.outcome.status == "infeasible" else checker.tiers(plan)


class _Checker:
    """Checks proofs against one Problem, each kind of model rebuilt once."""

    def __init__(self, problem: Problem, certificate: Certificate) -> None:
        self._problem = problem
        self._certificate = certificate
        self._models: dict[str, Models] = {}

    def none(self, plan: Plan) -> Iterator[Finding]:
        """Check that there is no plan."""
        if plan.outcome.proof != "certificate":
            return
        proof = self._certificate.infeasible
        if proof is None:
            yield Finding(plan.outcome.status, "is not shown by the certificate")
            return
        try:
            check_tree(self._of_kind(proof.kind).of_none().question(-1), proof.tree, proof.cuts)
        except Unproved as error:
            yield Finding(plan.outcome.status, f"is not shown by the certificate: {error}")

    def tiers(self, plan: Plan) -> Iterator[Finding]:
        """Check the tiers in order, each given what is known of those before it."""
        earlier: dict[str, Earlier] = {}
        for position, told in enumerate(plan.tiers[: len(self._problem.tiers)]):
            known = told.bound if told.proof == "trivial" and self._is_limit(position, told) else None
            if told.proof == "certificate" and told.name == self._problem.tiers[position].name:
                try:
                    self._tier(position, told, earlier)
                    known = told.bound
                except Unproved as error:
                    yield Finding(told.name, f"is not shown by the certificate: {error}")
            earlier[told.name] = Earlier(told.value, known)

    def _is_limit(self, position: int, told: TierResult) -> bool:
        return is_limit(told.bound, self._problem.tiers[position], self._problem.context, told.given)

    def _tier(self, position: int, told: TierResult, earlier: Mapping[str, Earlier]) -> None:
        proof = self._certificate.of(told.name)
        if proof is None:
            raise Unproved("it has no proof of this tier")
        sign = sign_of(self._problem.tiers[position].sense)
        if told.bound is None or sign * proof.bound > sign * told.bound:
            raise Unproved(f"it proves {proof.bound}, the plan says {told.bound}")
        if dict(proof.given) != dict(told.given):
            raise Unproved("it assumes other values of earlier tiers than the plan tells")
        assumed = {name: earlier[name] for name, value in proof.given.items() if _told(earlier, name, value)}
        statement = self._of_kind(proof.kind).of_tier(position, assumed)
        if sorted(statement.relaxed) != sorted(told.relaxed):
            raise Unproved("it ignores other rules than the plan tells")
        check_tree(statement.question(sign * proof.bound), proof.tree, proof.cuts)

    def _of_kind(self, kind: str) -> Models:
        if kind not in MODELS:
            raise Unproved(f"this version knows no proofs of kind {kind}")
        if kind not in self._models:
            self._models[kind] = MODELS[kind](self._problem)
        return self._models[kind]


def _told(earlier: Mapping[str, Earlier], name: str, value: int) -> bool:
    if name not in earlier or earlier[name].value != value:
        raise Unproved(f"it assumes {name} = {value}, which no earlier tier has")
    return True
