"""How hard to look for the contents of a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Width:
    """How many contents a search goes on with.

    These are those of the GPU of a node that has one, of several that are joined further, and of as many GPUs where
    items of whole ones are added one by one.

    `work` is what it costs, as a share of what a `WIDE` one does.
    """

    pool: int
    joined: int
    beam: int
    work: float


WIDE: Final = Width(2000, 400, 128, 1.0)
NARROW: Final = Width(300, 60, 32, 0.4)
