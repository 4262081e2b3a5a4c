"""What arithmetic on the documents says that no plan passes, the values of earlier tiers given (S5.2)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.objectives.base import Tier
from dovetail.objectives.disruption import GpuTimeLost, Moves, lost_with_each
from dovetail.objectives.violations import Mend
from dovetail.rules import Context
from dovetail.rules.leaving import must_leave

_MEND = Mend().name


def limit_given(tier: Tier, context: Context, given: Mapping[str, int]) -> int:
    """Return a tier's limit; of what moves cost with those without which more is left to mend than is given.

    Who is protected is in every plan, so whoever of them leaves a place moves.
    """
    limit = tier.limit(context)
    if _MEND in given and isinstance(tier, Moves):
        return limit + must_leave(context.leaving, given[_MEND], lambda _: 1)
    if _MEND in given and isinstance(tier, GpuTimeLost):
        lost = lost_with_each(context)
        return limit + must_leave(
            context.leaving, given[_MEND], lambda w: min(lost[w, r] for r in context.running[w])
        )
    return limit


def is_limit(bound: int | None, tier: Tier, context: Context, given: Mapping[str, int]) -> bool:
    """Tell whether a bound is arithmetic on the documents: what holds whatever else is given will do as well."""
    return bound in (tier.limit(context), limit_given(tier, context, given))
