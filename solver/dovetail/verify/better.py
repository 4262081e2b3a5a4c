"""Whether another placement is a plan by every check of this one, and better than a plan says that any can be."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from dovetail.objectives import Tier, sign_of
from dovetail.placement import View
from dovetail.verify.case import Case
from dovetail.verify.placed import PLACED
from dovetail.verify.ranks import ranks

_ASKED: Final = tuple(check for check in PLACED if check.run is not ranks)
"""Who is who of a role can be told otherwise, so ranks are not asked of another placement."""


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
    return case.keeps_hard_policies(view) and not any(True for check in _ASKED for _ in check.run(other))
