"""What arithmetic on the documents says that no plan passes, the values of earlier tiers given (S5.2)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.objectives.base import Tier
from dovetail.objectives.disruption import Moves
from dovetail.objectives.violations import Mend
from dovetail.rules import Context
from dovetail.rules.leaving import must_leave

_MEND = Mend().name


def limit_given(tier: Tier, context: Context, given: Mapping[str, int]) -> int:
    """Return a tier's limit; of moves also those without which no more is mended than is not.

    Who is protected is in every plan, so whoever of them leaves a place moves.
    """
    limit = tier.limit(context)
    if isinstance(tier, Moves) and _MEND in given:
        return max(limit, must_leave(context.leaving, given[_MEND]))
    return limit
