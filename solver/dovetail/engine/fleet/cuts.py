"""How to cut one GPU into shares so that it earns most at given prices (an exact knapsack over its parts)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import NamedTuple

import numpy as np

MILLION = 10**6

Cut = tuple[int, ...]  # how many shares of each size


class Sizes(NamedTuple):
    """The parts of a GPU, and those that each kind of share takes."""

    parts: int
    shares: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PricedGpu:
    """A shared GPU whose shares have prices, and what it costs itself, in millionths.

    Parameters
    ----------
    sizes, prices : size and price of each kind of share.
    rest : what the parts that are left earn, by their number; nothing where it is empty.
    """

    sizes: Sizes
    prices: tuple[int, ...]
    cost: int
    rest: tuple[int, ...] = ()

    def gain(self, cut: Cut) -> int:
        """Return what a cut earns beyond the GPU's cost."""
        earned = sum(price * count for price, count in zip(self.prices, cut, strict=True))
        if self.rest:
            earned += self.rest[self.sizes.parts - sum(s * n for s, n in zip(self.sizes.shares, cut, strict=True))]
        return earned - self.cost

    @property
    def dearest(self) -> tuple[tuple[int, Cut], ...]:
        """The cuts that earn most, the best one first; see `dearest`."""
        return dearest(*self.sizes, self.prices, self.rest)

    @property
    def most(self) -> int:
        """The most that a cut gains, 0 where none gains anything."""
        return max(0, self.dearest[0][0] - self.cost)


def paying(gpus: Iterable[PricedGpu]) -> Mapping[Sizes, Sequence[Cut]]:
    """Return those of the dearest cuts of some GPUs that gain anything there, by the sizes that they are of."""
    found: dict[Sizes, dict[Cut, None]] = {}
    for gpu in gpus:
        gaining = (cut for worth, cut in gpu.dearest if worth > gpu.cost)
        found.setdefault(gpu.sizes, {}).update(dict.fromkeys(gaining))
    return {sizes: list(cuts) for sizes, cuts in found.items()}


@lru_cache(maxsize=100_000)
def dearest(
    parts: int, shares: tuple[int, ...], prices: tuple[int, ...], rest: tuple[int, ...] = ()
) -> tuple[tuple[int, Cut], ...]:
    """Return cuts of one GPU, each as its total price and how many shares of each size it takes.

    First is the one that earns most, and then, per size, the one that earns most of those with a share of it: an LP
    that is given all of them needs a third of the rounds.

    Parameters
    ----------
    parts : those of the GPU.
    shares, prices : size and price of each kind of share; those without a price are left out.
    rest : what the parts that are left earn, never less for more of them; nothing where it is empty.
    """
    useful = [position for position, price in enumerate(prices) if price > 0]
    if not useful:
        return ((0, (0,) * len(shares)),)
    step = gcd(parts, *(shares[position] for position in useful))
    size = parts // step
    sizes = np.array([shares[position] // step for position in useful], dtype=np.int64)
    worth = np.array([prices[position] for position in useful], dtype=np.int64)
    best = np.zeros(size + 1, dtype=np.int64)
    choice = np.full(size + 1, -1, dtype=np.int64)
    for room in range(1, size + 1):
        best[room] = best[room - 1]
        fits = np.flatnonzero(sizes <= room)
        if len(fits):
            earned = best[room - sizes[fits]] + worth[fits]
            most = int(np.argmax(earned))
            if earned[most] > best[room]:
                best[room], choice[room] = earned[most], fits[most]
    left = np.array(rest[::-1][::step] if rest else [0] * (size + 1), dtype=np.int64)  # by what is taken
    total = best + left
    most = int(np.argmax(total[1:])) + 1 if rest else size
    found = {_taken(choice, sizes, useful, len(shares), most): int(total[most])}
    for one, position in enumerate(useful):
        own = int(sizes[one])
        with_one = best[: size + 1 - own] + worth[one] + left[own:]
        room = int(np.argmax(with_one)) if rest else size - own
        pattern = list(_taken(choice, sizes, useful, len(shares), room))
        pattern[position] += 1
        found.setdefault(tuple(pattern), int(with_one[room]))
    return tuple((total, pattern) for pattern, total in found.items())


def _taken(choice: np.ndarray, sizes: np.ndarray, useful: Sequence[int], count: int, room: int) -> Cut:
    pattern = [0] * count
    while room > 0:
        if choice[room] < 0:
            room -= 1
        else:
            pattern[useful[choice[room]]] += 1
            room -= int(sizes[choice[room]])
    return tuple(pattern)


def millionths(dual: Sequence[float], rows: Iterable[int]) -> tuple[int, ...]:
    """Return the prices of rows, in millionths."""
    return tuple(max(0, round(dual[row] * MILLION)) for row in rows)
