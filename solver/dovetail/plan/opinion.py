"""What another engine's optima say of a plan's proof, from the plan's own data (S5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dovetail.plan.model import Plan, SecondOpinion, TierResult

Optima = Mapping[str, int | None]


def contradiction(tiers: Sequence[TierResult], optima: Optima) -> TierResult | None:
    """Return the tier whose optimum lies outside what the plan says of it: its value to its bound.

    Tiers count as long as both engines answer the same question: up to the first that is unfinished, or whose
    optimum differs from the plan's value, as it may where the plan does not claim a proof.
    """
    for tier in tiers:
        optimum = optima.get(tier.name)
        if optimum is None:
            return None
        if not _possible(tier, optimum):
            return tier
        if optimum != tier.value:
            return None
    return None


def _possible(tier: TierResult, optimum: int) -> bool:
    least, most = (tier.value, tier.bound) if tier.sense == "max" else (tier.bound, tier.value)
    return (least is None or optimum >= least) and (most is None or optimum <= most)


def opinion_of(engine: str, tiers: Sequence[TierResult], optima: Optima) -> SecondOpinion:
    """Return what an engine's optima say of a plan's tiers.

    After the first that is missing or differs from the plan's value none is told: it answers another question.
    """
    agrees = contradiction(tiers, optima) is None
    known: dict[str, int | None] = dict.fromkeys(tier.name for tier in tiers)
    for tier in tiers:
        known[tier.name] = optima.get(tier.name)
        if known[tier.name] != tier.value:
            break
    return SecondOpinion(engine, agrees, known, conclusive=not agrees or None not in known.values())


def better(plan: Plan) -> TierResult | None:
    """Return the tier, if any, of which another engine found a better value that the plan's bound allows."""
    opinion = plan.second_opinion
    if opinion is None or not opinion.agrees:
        return None
    differing = (tier for tier in plan.tiers if opinion.tiers.get(tier.name) not in (None, tier.value))
    return next(differing, None)


def confirmed(plan: Plan, opinion: SecondOpinion) -> Plan:
    """Return a plan with another engine's opinion.

    Where both engines prove the same value of a tier, its proof rests on both; so it does where both prove that there
    is no plan, and no certificate shows that.
    """
    outcome = plan.outcome
    if outcome.status == "infeasible" and outcome.proof is None and opinion.agrees and opinion.conclusive:
        outcome = replace(outcome, proof="two-engines")
    tiers = tuple(
        replace(tier, proof="two-engines") if tier.proof == "solver" and told_twice(tier, opinion) else tier
        for tier in plan.tiers
    )
    return replace(plan, tiers=tiers, outcome=outcome, second_opinion=opinion)


def told_twice(tier: TierResult, opinion: SecondOpinion | None) -> bool:
    """Tell whether a tier is proved, and another engine that contradicts nothing has the same optimum."""
    return opinion is not None and opinion.agrees and tier.proved and opinion.tiers.get(tier.name) == tier.value
