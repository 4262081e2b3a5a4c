"""Puts proofs and plan together, and takes them apart again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.plan import Plan, TierResult
from dovetail.proof.certificate import EXACT, Certificate, Proof, digest_of, write
from dovetail.proof.reading import read


def attached(plan: Plan, proofs: Iterable[Proof], infeasible: Proof | None = None) -> Plan:
    """Return a plan that carries proofs, and whose tiers and outcome say so; without any proof, the plan as it is."""
    by_tier = {proof.tier: proof for proof in proofs}
    if not by_tier and infeasible is None:
        return plan
    ordered = tuple(by_tier[tier.name] for tier in plan.tiers if tier.name in by_tier)
    text = write(Certificate(plan.name, plan.inputs, ordered, infeasible))
    tiers = tuple(_shown(tier, by_tier.get(tier.name)) for tier in plan.tiers)
    outcome = plan.outcome if infeasible is None else replace(plan.outcome, proof="certificate")
    return replace(plan, tiers=tiers, outcome=outcome, certificate=digest_of(text), evidence=text)


def _shown(tier: TierResult, proof: Proof | None) -> TierResult:
    if proof is None:
        return tier
    return replace(tier, proof="certificate", relaxed=() if proof.kind == EXACT else tier.relaxed)


def evidence_of(plan: Plan) -> Certificate | None:
    """Return the certificate that a plan carries in memory, read anew from its text."""
    return None if plan.evidence is None else read(plan.evidence, "certificate.json")


def detached(plan: Plan) -> Plan:
    """Return a plan whose certificate is not kept: what it showed rests on the engine's word again."""
    if not plan.claims_certificate:
        return plan
    tiers = tuple(replace(tier, proof="solver") if tier.proof == "certificate" else tier for tier in plan.tiers)
    outcome = replace(plan.outcome, proof=None) if plan.outcome.proof == "certificate" else plan.outcome
    return replace(plan, tiers=tiers, outcome=outcome, certificate=None, evidence=None)
