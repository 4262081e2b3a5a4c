"""Contents of GPUs as rows of arrays, and what shares that meet on one GPU may earn: the ground of `knapsack`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_BUCKETS = 16  # of what contents take of the host; the best of each are kept, as the best of all may not go together


@dataclass(frozen=True, slots=True)
class Contents:
    """Rows of contents of some GPUs: their reduced value, the host's amounts, counts per item, and GPU by GPU.

    `gpus` refers to rows of the pool of single GPUs; -1 where an item over several GPUs goes on.
    """

    value: Floats
    host: Ints
    counts: Ints
    gpus: Ints

    def take(self, rows: Ints) -> Contents:
        """Return some rows."""
        return Contents(self.value[rows], self.host[rows], self.counts[rows], self.gpus[rows])


class Shares:
    """Shares that may meet on a GPU, largest first, and what they may earn on it.

    Parameters
    ----------
    items : their positions among the items of a search.
    weight, limit : steps of a GPU that each takes, and how many there may be.
    """

    def __init__(self, items: Ints, weight: Ints, limit: Ints, size: int) -> None:
        self.items, self.weight, self.size = items, weight, size
        self._lots = [
            (position, copies)
            for position, most in enumerate(np.minimum(limit, size // weight).tolist())
            for copies in _powers(most)
        ]

    def table(self, reduced: Floats) -> Floats:
        """Return the most they earn by steps of room: a column per row of `reduced`."""
        table = np.zeros((self.size + 1, len(reduced)))
        gain = reduced[:, self.items].T
        for position, copies in self._lots:
            room = copies * int(self.weight[position])
            if room <= self.size:
                np.maximum(table[room:], table[:-room] + copies * gain[position], out=table[room:])
        return table


def spread(value: Floats, load: Floats, limit: int) -> Ints:
    """Return about so many rows, best first: half of them the best of all, half the best of every bucket of load."""
    if len(value) <= limit:
        return np.argsort(-value, kind="stable")
    bucket = np.minimum((load * _BUCKETS).astype(np.int64), _BUCKETS - 1)
    half, share = limit // 2, limit // 2 // _BUCKETS
    chosen = [np.argpartition(-value, half)[:half]]
    for position in range(_BUCKETS):
        rows = np.flatnonzero(bucket == position)
        chosen.append(rows[np.argpartition(-value[rows], share)[:share]] if len(rows) > share else rows)
    keep = np.unique(np.concatenate(chosen))
    return np.asarray(keep[np.argsort(-value[keep], kind="stable")])


def earnings(counts: Ints, gain: Floats) -> Floats:
    """Return what rows of counts earn; not by a matrix product, whose threads cost more than they give here."""
    return np.asarray((counts * gain).sum(axis=-1))


def _powers(count: int) -> list[int]:
    """Return numbers whose sums are 0 to `count`: powers of two and a rest."""
    found: list[int] = []
    while count > 0:
        found.append(min(count, 2 ** len(found)))
        count -= found[-1]
    return found
