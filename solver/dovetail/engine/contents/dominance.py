"""Items that a node has no use for, as there are enough others that take no more and earn no less."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from dovetail.engine.contents.gpu_contents import Floats, Ints


class Dominance:
    """Compares items by what they take (Kellerer, Pferschy and Pisinger 2004, section 3.4, in several dimensions).

    Parameters
    ----------
    kinds : per item, what decides where on a node it may be; those of different kinds are never compared.
    sizes : per item, what it takes of everything there is.
    room : what a node has of everything.
    """

    __slots__ = ("_kinds", "_most", "_same", "_sizes")

    def __init__(self, kinds: Iterable[Hashable], sizes: Ints, room: Ints) -> None:
        numbers: dict[Hashable, int] = {}
        self._kinds = np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)
        self._same = np.unique(np.column_stack([self._kinds, sizes]), axis=0, return_inverse=True)[1].ravel()
        self._sizes = sizes
        self._most = np.where(sizes > 0, room // np.maximum(1, sizes), np.inf).min(axis=1)  # of an item alone

    def undominated(self, rows: Ints, worth: Floats, limit: Ints) -> Ints:
        """Return the positions of those of some items that may be part of the best contents, in order.

        Left out is an item of which each replica can give way to another item: of those that take no more and earn no
        less there are as many as a node has room for.

        Parameters
        ----------
        worth, limit : of those items, what one earns and how many there may be.
        """
        kept = self._among_equals(rows, worth, limit)
        order = kept[np.argsort(-worth[kept], kind="stable")]
        items, there = rows[order], limit[order].astype(np.float64)
        better = np.triu(self._kinds[items][:, None] == self._kinds[items], 1)
        for column in self._sizes[items].T:
            better &= column[:, None] <= column
        most = np.where(better, self._most[items][:, None], 1.0).max(axis=0)
        return np.sort(order[there @ better < most])

    def _among_equals(self, rows: Ints, worth: Floats, limit: Ints) -> Ints:
        """Return the positions that are left where items are compared with equal ones only, which is fast."""
        order = np.lexsort((-worth, self._same[rows]))
        same, before = self._same[rows[order]], np.concatenate([[0], np.cumsum(limit[order])[:-1]])
        first = np.concatenate([[True], same[1:] != same[:-1]])
        before -= np.maximum.accumulate(np.where(first, before, 0))
        return np.sort(order[before < self._most[rows[order]]])
