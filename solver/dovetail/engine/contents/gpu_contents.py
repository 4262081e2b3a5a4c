"""Contents of GPUs as rows of arrays, and what shares that meet on one GPU may earn: the ground of `knapsack`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Together = tuple[Ints, Ints, int]  # items, the units that each counts, and how many of these there may be

_SLACK = 0.1  # how far from the best the contents of a shared GPU may be, as a share of it
_FEW_PAIRS = 10_000
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

    def joined(self, other: Contents, room: Ints, limits: Ints, together: Sequence[Together], most: int) -> Contents:
        """Return the best pairs with contents of other GPUs that fit the host and what may be there of each item.

        Parameters
        ----------
        room, limits : what the host has, and how many there may be of each item.
        together : items that count together, in their units, and how much there may be of them.
        most : four times as many pairs are returned, about.
        """
        value = self.value[:, None] + other.value
        load = np.zeros(value.shape)
        for axis, size in enumerate(room):
            total = self.host[:, axis][:, None] + other.host[:, axis]
            np.maximum(load, total / max(1, size), out=load)
        bad = load > 1
        counts = self.counts.max(axis=0), other.counts.max(axis=0)
        over = np.flatnonzero((counts[0] + counts[1] > limits) & (counts[0] > 0) & (counts[1] > 0))
        if value.size <= _FEW_PAIRS:  # then all items at once are quicker, else one by one where there are any
            left = limits[over] - other.counts[:, over]
            bad |= (self.counts[:, over].T[:, :, None] > left.T[:, None, :]).any(axis=0)
        for item in over if value.size > _FEW_PAIRS else ():
            some, more = np.flatnonzero(self.counts[:, item]), np.flatnonzero(other.counts[:, item])
            full = self.counts[some, item][:, None] + other.counts[more, item] > limits[item]
            bad[np.ix_(some, more)] |= full
        for items, units, limit in together:
            mine, theirs = self.counts[:, items] @ units, other.counts[:, items] @ units
            some, more = np.flatnonzero(mine), np.flatnonzero(theirs)
            if len(some) and len(more):
                bad[np.ix_(some, more)] |= mine[some, None] + theirs[more] > limit
        one, two = np.nonzero(~bad)
        keep = spread(value[one, two], load[one, two], 4 * most)
        one, two = one[keep], two[keep]
        return Contents(
            value[one, two],
            self.host[one] + other.host[two],
            self.counts[one] + other.counts[two],
            np.concatenate([self.gpus[one], other.gpus[two]], axis=1),
        )


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

    def best(self, reduced: Floats, rest: Floats | None = None) -> Ints:
        """Return what earns the most on a GPU, as counts per share, whatever it takes of other things.

        Parameters
        ----------
        reduced, rest : as for `layers`.
        """
        table, taken = np.zeros(self.size + 1), []
        for position, copies in self._lots:
            room = copies * int(self.weight[position])
            taken.append(np.zeros(self.size + 1, dtype=bool))
            if room <= self.size:
                more = table[:-room] + copies * reduced[self.items[position]]
                taken[-1][room:] = more > table[room:]
                np.maximum(table[room:], more, out=table[room:])
        used = self.size if rest is None else int(np.argmax(table + rest[::-1]))
        counts = np.zeros(len(self.items), dtype=np.int64)
        for (position, copies), told in zip(reversed(self._lots), reversed(taken), strict=True):
            if told[used]:
                counts[position] += copies
                used -= copies * int(self.weight[position])
        return counts

    def layers(
        self, reduced: Floats, limits: Ints, memory: tuple[Ints, int], most: int, rest: Floats | None
    ) -> Iterator[Ints]:
        """Yield contents of a GPU that earn almost the most, as counts per share, by their number of replicas.

        Parameters
        ----------
        reduced, limits : what items earn, and how many there may be.
        memory : what each of these shares takes of a GPU's, and that.
        most : contents of a layer, at the most.
        rest : what the steps earn that are left, by their number.
        """
        gain, limit, (vram, card) = reduced[self.items], limits[self.items], memory
        table = self.table(reduced[None, :])[:, 0]
        left = np.zeros(self.size + 1) if rest is None else rest
        if rest is not None:
            table = np.array([(table[: room + 1] + rest[room::-1]).max() for room in range(self.size + 1)])
        floor = table[-1] * (1 - _SLACK)
        order = np.arange(len(self.items))
        counts = np.zeros((1, len(self.items)), dtype=np.int64)
        earned, room, free = np.zeros(1), np.array([self.size]), np.array([card])
        last = np.zeros(1, dtype=np.int64)
        while len(counts):
            after = room[:, None] - self.weight
            could = earned[:, None] + gain + table[np.maximum(after, 0)]
            fits = (after >= 0) & (could >= floor) & (order >= last[:, None]) & (gain > 0)
            fits &= (counts < limit) & (free[:, None] >= vram)
            which, item = np.nonzero(fits)
            if len(which) > most:
                keep = np.sort(np.argsort(-could[which, item], kind="stable")[:most])
                which, item = which[keep], item[keep]
            earned, room, free, last = earned[which] + gain[item], after[which, item], free[which] - vram[item], item
            counts = counts[which]
            counts[np.arange(len(which)), item] += 1
            yield counts[earned + left[room] >= floor]


def spread(value: Floats, load: Floats, limit: int) -> Ints:
    """Return about so many rows, best first: half of them the best of all, half the best of every bucket of load."""
    if len(value) <= limit or limit == 1:
        return np.argsort(-value, kind="stable")[:limit]
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
