"""The exact knapsack over units of room, such as a node's GPUs or the parts of one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate


def packed(items: Mapping[int, list[int]], room: int) -> list[int]:
    """Return the greatest sum of values of items, by size, that fit up to so much room; all values are positive."""
    best = [0] * (room + 1)
    for size, values in items.items():
        sums = list(accumulate(sorted(values, reverse=True)[: room // size]))
        before = best
        best = list(before)
        for count, value in enumerate(sums, start=1):
            offset = count * size
            for have in range(offset, room + 1):
                if (earned := before[have - offset] + value) > best[have]:
                    best[have] = earned
    return best
