"""Contents of a node to which items of whole GPUs are added one after the other: a beam search by number of GPUs.

A knapsack in several dimensions with few of each item (Kellerer, Pferschy and Pisinger 2004, chapter 9). An item has
its turn once, with all its copies, so that no contents have more of it than there are; joined from contents that are
best by themselves, a node of items that are there once would have the same few items twice.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.engine.contents.gpu_contents import Contents, Floats, Ints, spread

_BUCKETS = 8  # of what contents take of the host, of each of which the best are kept
_EACH = np.arange(_BUCKETS, dtype=np.int8)


class _Turn(NamedTuple):
    """The turn of an item: which contents it went on with, as copies times the width and the contents' position."""

    item: int
    gpus: int
    kept: Ints


class Beam:
    """The best contents so far, by how many GPUs they take.

    Parameters
    ----------
    starts : contents without these items, by their number of GPUs, from none on.
    room : what the host has.
    gpus : those of the node.
    width : how many contents of as many GPUs are kept.
    """

    def __init__(self, starts: list[Contents], room: Ints, gpus: int, width: int) -> None:
        self._starts, self._room, self._width = starts, room.astype(np.float64), width
        self._per_room = 1.0 / np.maximum(1.0, self._room)
        self._value = np.full((gpus + 1, width), -np.inf)
        self._host = np.zeros((len(room), gpus + 1, width))
        self._start = np.zeros((gpus + 1, width), dtype=np.int64)
        self._turns: list[_Turn] = []
        for number, start in enumerate(starts):
            load = (start.host * self._per_room).max(axis=1, initial=0.0)
            rows = spread(start.value, load, width)[:width]
            self._value[number, : len(rows)] = start.value[rows]
            self._host[:, number, : len(rows)] = start.host[rows].T
            self._start[number, : len(rows)] = rows

    def add(self, item: int, gpus: int, most: int, gain: float, host: Ints) -> None:
        """Give an item its turn: that many copies at most, each on so many GPUs."""
        copies = min(most, (len(self._value) - 1) // gpus)
        value, amounts = [self._value], [self._host]
        for number in range(1, copies + 1):
            taken = number * gpus
            more = np.full_like(self._value, -np.inf)
            more[taken:] = self._value[:-taken] + number * gain
            held = np.zeros_like(self._host)
            held[:, taken:] = self._host[:, :-taken] + (number * host)[:, None, None]
            for own, room in zip(held, self._room, strict=True):
                more[own > room] = -np.inf
            value.append(more)
            amounts.append(held)
        every, all_held = np.concatenate(value, axis=1), np.concatenate(amounts, axis=2)
        kept = self._kept(every, all_held)
        flat = kept + np.arange(len(every))[:, None] * every.shape[1]
        self._value = every.ravel()[flat]
        self._host = all_held.reshape(len(all_held), -1)[:, flat]
        self._turns.append(_Turn(item, gpus, kept))

    def _kept(self, value: Floats, host: Floats) -> Ints:
        """Return which contents to go on with: half of them the best of all, others the best by load of the host."""
        load = host[0] * self._per_room[0]
        for own, each in zip(host[1:], self._per_room[1:], strict=True):
            np.maximum(load, own * each, out=load)
        order = np.argsort(-value, axis=1)
        flat = order + np.arange(len(value))[:, None] * value.shape[1]
        bucket = np.minimum((load.ravel()[flat] * _BUCKETS).astype(np.int8), _BUCKETS - 1)
        own = bucket[:, :, None] == _EACH
        good = (own & (own.cumsum(axis=1, dtype=np.int16) <= self._width // 2 // _BUCKETS)).any(axis=2)
        good[:, : self._width // 2] = True
        chosen = np.argsort(~good, axis=1, kind="stable")[:, : self._width]
        return np.asarray(order.ravel()[chosen + np.arange(len(value))[:, None] * value.shape[1]])

    def contents(self, limit: int, hosts: Ints) -> Contents:
        """Return about so many contents, best first, by the amounts of the host that an item takes."""
        load = (self._host * self._per_room[:, None, None]).max(axis=0).ravel()
        there = np.flatnonzero(np.isfinite(self._value.ravel()))
        rows = there[spread(self._value.ravel()[there], load[there], limit)]
        gpus, place = np.divmod(rows, self._width)
        taken, value = gpus.copy(), self._value.ravel()[rows]
        counts = np.zeros((len(rows), len(hosts)), dtype=np.int64)
        for turn in reversed(self._turns):
            copies, place = np.divmod(turn.kept[gpus, place], self._width)
            counts[:, turn.item] = copies
            gpus = gpus - copies * turn.gpus
        own = np.full((len(rows), len(self._value) - 1), 0, dtype=np.int64)
        for row, (start, number) in enumerate(zip(gpus.tolist(), self._start[gpus, place].tolist(), strict=True)):
            counts[row] += self._starts[start].counts[number]
            own[row, :start] = self._starts[start].gpus[number]
            own[row, start : taken[row]] = -1
        return Contents(value, counts @ hosts, counts, own)
