"""What lies inside a node: NVLink islands and CPU sockets (S1.1), as sets of GPU indices.

A set of GPUs is a bit mask, bit i for the GPU with index i: masks are their own names, and sort and compare at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

ISLAND_LEVEL = "island"
SOCKET_LEVEL = "socket"
INNER_LEVELS = (ISLAND_LEVEL, SOCKET_LEVEL)

Mask = int
Parts = tuple[tuple[int, ...], ...]
"""GPU indices of every island, or at every socket, in the order of the document; empty where there is one."""


def mask_of(gpus: Iterable[int]) -> Mask:
    """Return the mask of some GPU indices."""
    found = 0
    for gpu in gpus:
        found |= 1 << gpu
    return found


def holds(outer: Mask, inner: Mask) -> bool:
    """Tell whether a set of GPUs holds all of another one."""
    return not inner & ~outer


@cache
def masks_of(parts: Parts, gpus: int) -> tuple[Mask, ...]:
    """Return the masks of the domains of one inner level; all GPUs where nothing is declared."""
    return tuple(mask_of(part) for part in parts) if parts else ((1 << gpus) - 1,)


@cache
def blocks_of(islands: Parts, sockets: Parts, gpus: int, inside: tuple[str, ...]) -> tuple[Mask, ...]:
    """Return the largest sets of GPUs that lie in one domain of each of some inner levels: they make up the node."""
    found: tuple[Mask, ...] = ((1 << gpus) - 1,)
    for level, parts in ((ISLAND_LEVEL, islands), (SOCKET_LEVEL, sockets)):
        if level in inside and parts:
            found = tuple(both for old in found for own in masks_of(parts, gpus) if (both := old & own))
    return found


@cache
def sets_of(islands: Parts, sockets: Parts, gpus: int) -> tuple[Mask, ...]:
    """Return the node, its islands and its sockets, the smaller first; of any two one holds the other, or none."""
    every = {*blocks_of((), (), gpus, ()), *masks_of(islands, gpus), *masks_of(sockets, gpus)}
    return tuple(sorted(every, key=lambda mask: (mask.bit_count(), mask)))
