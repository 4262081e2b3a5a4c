"""What of a node is priced by itself: shapes, and of those told apart by instance every way to be on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd

import numpy as np

from dovetail.engine.contents.patterns import Keys
from dovetail.proof.sides import Card, Side

Item = tuple[int, tuple[str, ...]]
"""A shape, and how it may be on a GPU: `""` outside MIG, else a profile."""


class CardItems:
    """What one GPU may be: who may be `there`, and the steps that each takes of its `size` while it is not cut.

    Who may not be there then has a load of 0.
    """

    __slots__ = ("loads", "size", "there")

    def __init__(self, card: Card, items: Sequence[Item]) -> None:
        step = reduce(gcd, card.loads.values(), card.parts)
        self.size = card.parts // step
        loads = [card.loads.get(s, 0) // step if "" in modes else 0 for s, modes in items]
        self.loads = np.array(loads, dtype=np.int64)
        self.there = np.array([s in card.shapes for s, _ in items], dtype=bool)


def items_of(side: Side, keys: Keys) -> Iterator[Item]:
    """Yield what is priced by itself: shapes, and of some every way to be on a GPU."""
    apart = {shape for shape, _ in keys}
    for s in side.shapes:
        outside = ("",) if any(s in card.loads for card in side.cards) else ()
        modes = (*outside, *side.profiles.get(s, ()))
        yield from ((s, (mode,)) for mode in modes) if s in apart and modes else ((s, modes),)
