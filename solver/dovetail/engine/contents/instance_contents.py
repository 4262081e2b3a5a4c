"""What single GPUs may hold on MIG instances, for pricing: a profile's slots go to what earns most there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dovetail.mig import Geometry
from dovetail.proof.cutting import layouts_of

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Instances:
    """Items that may be on MIG instances of a GPU.

    Parameters
    ----------
    geometry : what the GPU can be cut into, None where it cannot.
    modes : per item, how it may be on the GPU: `""` outside MIG, else a profile.
    """

    def __init__(self, geometry: Geometry | None, modes: Sequence[tuple[str, ...]]) -> None:
        self._geometry = geometry
        self._modes = modes
        self._items = {
            name: [i for i, own in enumerate(modes) if name in own]
            for name in sorted({mode for own in modes for mode in own if mode})
        }
        found = layouts_of(geometry, frozenset(self._items)) if geometry and self._items else ()
        self._layouts = [dict(layout) for layout in found]
        names = list(self._items)
        self._table = np.array([[lay.get(name, 0) for name in names] for lay in self._layouts], dtype=np.float64)
        self._told: dict[bytes, Mapping[tuple[int, str], int]] = {}

    def at(self, rows: Ints) -> Instances:
        """Return the same of some of the items."""
        return Instances(self._geometry, [self._modes[row] for row in rows.tolist()])

    def any(self) -> Bools:
        """Tell for each item whether it may be on an instance."""
        return np.array([any(own) for own in self._modes], dtype=bool)

    def most(self, reduced: Floats) -> Floats:
        """Return the most that instances of one GPU earn, per row of what items earn."""
        if not self._layouts:
            return np.zeros(len(reduced))
        worth = np.stack([np.maximum(0.0, reduced[:, items].max(axis=1)) for items in self._items.values()], axis=1)
        return np.asarray((worth @ self._table.T).max(axis=1))

    def contents(self, gain: Floats, limit: Ints, wanted: Bools) -> Ints:
        """Return good contents of a GPU that is cut, as counts per item.

        Every layout is filled with what earns most; and, so that others have a turn, with the next best in its place.
        """
        found = [np.zeros(len(gain), dtype=np.int64)]
        ranked = {
            name: sorted((i for i in items if wanted[i] and gain[i] > 0), key=lambda i: -gain[i])
            for name, items in self._items.items()
        }
        choices = [ranked, *({**ranked, name: order[1:]} for name, order in ranked.items() if len(order) > 1)]
        choices += [{**ranked, name: []} for name, order in ranked.items() if order]
        for chosen in choices:
            found += [self._filled(layout, chosen, limit) for layout in self._layouts]
        for fewer, more in pairwise(ranked):  # of one profile alone, too
            found += [self._filled(layout, {more: ranked[more], fewer: []}, limit) for layout in self._layouts]
        return np.stack(found)

    def _filled(self, layout: Mapping[str, int], ranked: Mapping[str, Sequence[int]], limit: Ints) -> Ints:
        counts = np.zeros(len(limit), dtype=np.int64)
        told: Counter[tuple[int, str]] = Counter()
        for name, slots in layout.items():
            left = slots
            for item in ranked.get(name, ()):
                taken = min(left, int(limit[item] - counts[item]))
                if taken > 0:
                    counts[item] += taken
                    told[item, name] += taken
                    left -= taken
        if told:
            self._told[counts.tobytes()] = told
        return counts

    def told(self, counts: Ints) -> Mapping[tuple[int, str], int] | None:
        """Return how many of each item are on which profile, for contents that were returned; else None."""
        return self._told.get(counts.tobytes())
