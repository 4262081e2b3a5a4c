"""What can be said of a plan without the state that it started from (S6.5), and what cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dovetail.objectives import FAMILIES, MEASURES, Tier, families_of, with_policies
from dovetail.objectives.admitted import Admitted, Retained
from dovetail.objectives.slowest import Slowest, hinges_on_today, may_be_faster
from dovetail.objectives.violations import Mend
from dovetail.plan import Plan
from dovetail.rules import Context
from dovetail.spec import Spec

_FAMILY: Final = {"retained": "admitted"}  # the word for it in `Objective.tiers`, where it is another one


def optional_tiers(spec: Spec) -> tuple[Tier, ...]:
    """Return the tiers that a plan has or has not, as today's state demands."""
    found: list[Tier] = []
    if any(policy.enforcement.kind == "hard" and policy.rule.grandfathered for policy in spec.policies):
        found.append(Mend())
    preemptible = {spec.band_of(workload) for workload in spec.workloads if workload.preemptible}
    found += [Retained(band) for band in spec.bands if band in preemptible]
    found += [MEASURES[measure]() for measure in spec.objective.disruption]
    found += [Slowest()] if hinges_on_today(spec) else []
    return tuple(tier for tier in found if _FAMILY.get(tier.kind, tier.kind) in spec.objective.tiers)


def counts_from_today(tier: Tier, spec: Spec) -> bool:
    """Tell whether a tier's value may depend on what runs today."""
    return tier.needs_current(spec) or (isinstance(tier, Slowest) and may_be_faster(spec))


def told_tiers(context: Context, plan: Plan) -> tuple[Tier, ...]:
    """Return the tiers that a plan should tell: those that any state gives, and of the optional ones those told."""
    told = {tier.name for tier in plan.tiers}
    optional = [tier for tier in optional_tiers(context.spec) if tier.name in told]
    if any(tier.kind == "disruption" for tier in optional):  # all measures of it, or none
        optional = [tier for tier in optional_tiers(context.spec) if tier.kind == "disruption" or tier in optional]
    families = ((name, lambda c, n=name: _family(n, c, optional)) for name in families_of(context.spec))
    return tuple(tier for name, family in families for tier in with_policies(name, family, context))


def _family(name: str, context: Context, optional: list[Tier]) -> Sequence[Tier]:
    if name in ("mend", "disruption"):
        return [tier for tier in optional if tier.kind == name]
    sure = list(FAMILIES[name](context))
    if name == "slowest":
        return sure or [tier for tier in optional if isinstance(tier, Slowest)]
    if name != "admitted":
        return sure
    retained = [tier for tier in optional if isinstance(tier, Retained)]
    both: list[Retained | Admitted] = [*retained, *(tier for tier in sure if isinstance(tier, Admitted))]
    # Sorting keeps what is retained of a band before what is admitted of it.
    return sorted(both, key=lambda tier: -tier.band)
