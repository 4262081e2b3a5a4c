"""From places to a plan: what was admitted, how policies fare, figures, digest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.placement import Held, Places
from dovetail.plan.digest import combined, documents_digest, outside_digest
from dovetail.plan.model import Outcome, Plan, SecondOpinion, TierResult
from dovetail.plan.policies import held_of, policies_of, recovery_of
from dovetail.plan.promises import promises_of
from dovetail.plan.reasons import admitted_of
from dovetail.plan.summary import summary_of
from dovetail.rules import Context

WITHOUT_PLACES = ("infeasible", "unknown")
"""Outcomes that come without any plan, hence without places, tiers and figures (S6.4)."""


def finish(
    context: Context,
    places: Places,
    tiers: Sequence[TierResult],
    outcome: Outcome,
    *,
    held: Held | None = None,
    inputs: str | None = None,
    second_opinion: SecondOpinion | None = None,
    conflict: Sequence[str] = (),
) -> Plan:
    """Return the plan that puts replicas where `places` says.

    Parameters
    ----------
    places : places of all admitted replicas; ignored, as are `tiers`, where the outcome is that there is no plan.
    held : the places that policies hold free, by policy.
    inputs : the Spec's digest where it is known already.
    conflict : names of policies that cannot hold together, for an infeasible outcome.
    """
    spec = context.spec
    outside = outside_digest(spec)
    bare = Plan(
        name=spec.name,
        inputs=inputs or combined(documents_digest(spec), outside),
        current=outside,
        options=spec.options,
        outcome=outcome,
        second_opinion=second_opinion,
    )
    if outcome.status in WITHOUT_PLACES:
        return replace(bare, conflict=tuple(sorted(conflict)))
    return _filled(replace(bare, tiers=tuple(tiers), placements=dict(places)), context, held or {})


def _filled(plan: Plan, context: Context, held: Held) -> Plan:
    """Return a plan with all that follows from its places and tiers."""
    view = context.view(plan.placements, held)
    return replace(
        plan,
        summary=summary_of(view, context),
        gpus=dict(view.layouts),
        shared=dict(view.shared),
        admitted=admitted_of(view, context, plan.tiers),
        promises=promises_of(view),
        policies=policies_of(view, context),
        held=held_of(view, context),
        recovery=recovery_of(view, context),
    )
