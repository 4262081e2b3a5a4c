"""Which sizes of requests fill the GPUs of a node together."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add
from typing import Final

_MOST_SUMS: Final = 2000


def multisets(gpus: int, sizes: Sequence[int]) -> list[tuple[tuple[int, int], ...]]:
    """Return the largest multisets of sizes that fit a number of GPUs, as (size, count) pairs; one empty if none."""
    found: list[tuple[tuple[int, int], ...]] = []

    def extend(left: int, position: int, chosen: tuple[tuple[int, int], ...]) -> None:
        if position < 0:
            if not sizes or left < sizes[0]:
                found.append(chosen)
            return
        size = sizes[position]
        for count in range(left // size, -1, -1):
            extend(left - count * size, position - 1, ((size, count), *chosen) if count else chosen)

    extend(gpus, len(sizes) - 1, ())
    return _largest(found, sizes)


def packed(blocks: Sequence[int], sizes: Sequence[int]) -> list[tuple[tuple[int, int], ...]]:
    """Return the largest multisets of sizes that fit the GPUs of some blocks, none reaching out of its own.

    Where that would be too many, what fits all GPUs together is returned, which is more than fits.
    """
    sums: set[tuple[int, ...]] = {(0,) * len(sizes)}
    for gpus in blocks:
        own = [tuple(dict(pattern).get(size, 0) for size in sizes) for pattern in multisets(gpus, sizes)]
        if len(sums) * len(own) > _MOST_SUMS:
            return multisets(sum(blocks), sizes)
        sums = {tuple(map(add, one, other)) for one in sums for other in own}
    found = [tuple((s, count) for s, count in zip(sizes, vector, strict=True) if count) for vector in sorted(sums)]
    return multisets(blocks[0], sizes) if len(blocks) == 1 else _largest(found, sizes)


def fitting(blocks: Sequence[int], sizes: Sequence[int]) -> list[tuple[tuple[int, int], ...]]:
    """Return all multisets of sizes that fit the GPUs of some blocks, none reaching out of its own, smaller ones too.

    Where that would be too many, it is the largest ones.
    """
    found = packed(blocks, sizes)
    there = set[tuple[tuple[int, int], ...]]()
    left = list(found)
    while left and len(there) <= _MOST_SUMS:
        one = left.pop()
        if one not in there:
            there.add(one)
            left += [tuple((s, n - (s == size)) for s, n in one if n > (s == size)) for size, _ in one]
    return sorted(there) if not left else found


def _largest(found: Sequence[tuple[tuple[int, int], ...]], sizes: Sequence[int]) -> list[tuple[tuple[int, int], ...]]:
    """Return the multisets that no other one contains."""
    vectors = [tuple(dict(pattern).get(size, 0) for size in sizes) for pattern in found]
    return [
        pattern
        for pattern, vector in zip(found, vectors, strict=True)
        if not any(o != vector and all(a >= b for a, b in zip(o, vector, strict=True)) for o in vectors)
    ]
