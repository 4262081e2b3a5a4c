"""How much is looked at where each look takes longer, the larger a plan is."""

from __future__ import annotations

from typing import Final

EFFORT: Final = 500_000
"""Replicas that are gone through in all, about."""

_SEARCHED: Final = 2_000
_LEAST: Final = 4


def looks(size: int, most: int, *, searches: bool) -> int:
    """Return how many placements of a size may be looked at in full; none of large ones that rules would search."""
    return 0 if searches and size > _SEARCHED else max(_LEAST, min(most, EFFORT // (size + 1)))
