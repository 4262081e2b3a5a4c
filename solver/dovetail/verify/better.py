"""Whether another placement is a plan by every check of this one, and better than a plan says that any can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from dovetail.objectives import Tier, sign_of
from dovetail.placement import View
from dovetail.verify import admission, capacity, fitness, partitions, rows, sharing, today
from dovetail.verify.case import Case
from dovetail.verify.model import Found

_CHECKS: Final[tuple[Callable[[Case], Iterator[Found]], ...]] = (
    rows.gpu_indices,
    rows.health,
    rows.gpu_count,
    partitions.instances,
    partitions.tenants,
    partitions.layouts,
    partitions.modes,
    capacity.cpu,
    capacity.memory,
    capacity.resources,
    capacity.whole_gpus,
    capacity.share_compute,
    capacity.share_memory,
    sharing.clients,
    sharing.settings,
    fitness.accelerators,
    fitness.mechanism,
    fitness.rates,
    fitness.taints,
    fitness.cordons,
    fitness.together,
    admission.atomic,
    admission.least,
    admission.widths,
    admission.groups,
    admission.mix,
    today.protected,
    today.fixed,
    today.retained,
    today.precedence,
)
"""What is asked of places, the hard policies aside; ranks are not, as who is who of a role can be told otherwise."""


class Beaten(NamedTuple):
    """A tier whose bound another plan passes, and that plan's value."""

    tier: Tier
    bound: int
    value: int


def beaten_by(case: Case, view: View) -> Beaten | None:
    """Return the tier of which a placement passes the bound, if both are plans at all and as good before it."""
    found = _passed(case, view)
    return found if found is not None and _is_plan(case, view) and _is_plan(case, case.view) else None


def _passed(case: Case, view: View) -> Beaten | None:
    """Return the first tier that differs where its bound is passed; a bound holds given the values before it."""
    bounds = {tier.name: tier.bound for tier in case.plan.tiers}
    for tier in case.tiers:
        value, bound = tier.measure(view, case.context), bounds.get(tier.name)
        if value != case.values[tier.name]:
            sign = sign_of(tier.sense)
            return Beaten(tier, bound, value) if bound is not None and sign * value > sign * bound else None
    return None


def _is_plan(case: Case, view: View) -> bool:
    plan = replace(case.plan, placements=dict(view.places), gpus=dict(view.layouts), shared=dict(view.shared))
    other = Case(case.spec, plan)
    return case.keeps_hard_policies(view) and not any(True for check in _CHECKS for _ in check(other))
