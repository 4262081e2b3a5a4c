"""What one node holds as a pattern, what is wished for of many, and what the LP that mixes them says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dovetail.model.state import Fill, Slot

if TYPE_CHECKING:
    from dovetail.engine.contents.idling import Idling

Pattern = tuple[tuple[Slot, int], ...]

Keys = Mapping[tuple[int, str], int]
"""By shape and profile, the number by which replicas are priced that serve more on some instances than on others.

All others are priced by shape; numbers begin where those of shapes end."""

MANY_NODES = 5000  # to place replicas on them takes longer than to mix patterns


def pattern_of(millis: Mapping[int, int], fill: Fill) -> Pattern:
    """Return a node's contents with its shared GPUs numbered by load, so that equal contents are equal patterns.

    Parameters
    ----------
    millis : thousandths of a GPU that a replica of each shape asks for.
    """
    gpus: dict[int, list[tuple[int, str, int]]] = {}
    for slot, count in fill.slots.items():
        if slot.gpu >= 0:
            gpus.setdefault(slot.gpu, []).append((slot.shape, slot.profile, count))

    def load(contents: list[tuple[int, str, int]]) -> int:
        return sum(count * millis[shape] for shape, _, count in contents)

    shared = sorted((sorted(contents) for contents in gpus.values()), key=lambda c: (-load(c), c))
    slots = [(slot, count) for slot, count in fill.slots.items() if slot.gpu < 0]
    slots += [(Slot(shape, gpu, profile), n) for gpu, contents in enumerate(shared) for shape, profile, n in contents]
    return tuple(sorted(slots))


def counts_of(pattern: Pattern) -> Counter[int]:
    """Return the replicas per shape of a pattern."""
    total: Counter[int] = Counter()
    for slot, count in pattern:
        total[slot.shape] += count
    return total


def key_of(keys: Keys, slot: Slot) -> int:
    """Return the number by which a replica in a slot is priced."""
    return keys.get((slot.shape, slot.profile), slot.shape) if keys else slot.shape


def without(pattern: Pattern, surplus: Counter[int], row_of: Callable[[Slot], int | None]) -> Pattern:
    """Return a pattern without what there is a surplus of, by row of a slot, which is less by that then.

    Slots without a row are no part of any surplus.
    """
    left = []
    for slot, count in pattern:
        row = row_of(slot)
        gone = 0 if row is None else min(count, max(0, surplus[row]))
        if row is not None and gone:
            surplus[row] -= gone
        if count > gone:
            left.append((slot, count - gone))
    return tuple(left)


@dataclass(frozen=True, slots=True)
class Mixture:
    """An LP solution: its value, uses of each column's pattern, prices of replicas on each lot, and of a node of it.

    Prices are by `keys` where these tell replicas of a shape apart. `wish` is what was wished for, `admitted` are the
    replicas per shape that it admits, `served` the shapes of which it serves all the rate that is asked for, `steps`
    those of the simplex algorithm that it took.

    What is settled already counts in the value, which is minus infinity where a ceiling left no solution.
    """

    value: float
    uses: Mapping[int, float]
    prices: Sequence[Mapping[int, float]]
    nodes: Sequence[float]
    wish: Wish
    admitted: Mapping[int, float]
    steps: int
    served: frozenset[int] = frozenset()
    keys: Keys = field(default_factory=dict)

    def gain(self, lot: int, pattern: Pattern) -> float:
        """Return what a pattern earns on a lot beyond the price of a node and the cost of its use."""
        prices = self.prices[lot]
        earned = sum(prices.get(key_of(self.keys, slot), 0.0) * count for slot, count in pattern)
        return earned - self.nodes[lot] - self.wish.price(lot, pattern)


@dataclass(frozen=True, slots=True)
class Column:
    """A pattern on a lot, its replicas per shape as far as anybody asks for them, and what it counts in every row.

    One that `stays` is on no more nodes than hold it already, for what that is worth.
    """

    lot: int
    pattern: Pattern
    counts: Mapping[int, int]
    entries: Mapping[int, float]
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be placed: replicas asked for and worth of one, per shape, and what it costs to use a node, per lot.

    All worth less than the `grain` is no matter. `stays` tells by lot and pattern what it is worth beyond that where
    a node holds it already, and on how many nodes. `idling` tells, per lot, what contents leave idle: use that this
    loses costs `per_use` a unit. A thousandth that is missing of what was promised costs `per_short`.
    """

    demand: Mapping[int, int]
    worth: Mapping[int, float]
    cost: Sequence[float]
    grain: float
    stays: Mapping[tuple[int, Pattern], tuple[float, int]] = field(default_factory=dict)
    idling: Sequence[Idling | None] = ()
    per_use: float = 0.0
    per_short: float = 0.0

    def price(self, lot: int, pattern: Pattern) -> float:
        """Return what it costs that a node of a lot holds a pattern."""
        found = self.cost[lot] if pattern else 0.0
        idling = self.idling[lot] if self.per_use and pattern else None
        return found if idling is None else found + self.per_use * idling.lost(pattern)


@dataclass(frozen=True, slots=True)
class Whole:
    """Patterns and how many nodes take each, the worth of it all, the simplex steps it took, and whether time cut it.

    The worth is that of what was settled before as well, as are the replicas that count: `admitted` per shape, and
    those `needed` per row that nodes supply.
    """

    chosen: list[tuple[Column, int]]
    value: float
    admitted: Mapping[int, int]
    needed: Mapping[int, int]
    steps: int
    cut: bool
