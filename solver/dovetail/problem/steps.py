"""How large the exact model of the whole may be for each step of a search, and so which steps a Problem goes through.

The engine reads these numbers where it decides; a report can tell the way without loading it.
"""

from __future__ import annotations

EXACT_VARIABLES = 20_000
"""The largest exact model of the whole that is tried, in counts."""

EXACT_FIRST = 3_000
"""Up to here it is tried before anything else."""


def steps_of(counts: int) -> tuple[str, ...]:
    """Return the phases of a search in order, by the names that its progress shows, unless one before ends it.

    All but small ones look for bounds before they go on, as well as in the end.
    """
    first = ("exact",) if counts <= EXACT_FIRST else ("bound",)
    last = () if counts > EXACT_VARIABLES else ("exact", "improve")
    return ("compile", "construct", *first, "generate", "improve", *last, "bound")
