"""How hard to look for the contents of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Width:
    """How many contents a search goes on with: of the GPU of a node that has one, and of several, joined further.

    `work` is what it costs, as a share of what a `WIDE` one does.
    """

    pool: int
    joined: int
    work: float


WIDE: Final = Width(2000, 400, 1.0)
NARROW: Final = Width(300, 60, 0.3)
