"""Amounts of nodes by the domains that the nodes lie in, and the domain that suits a gang best.

Domains have numbers; -1 stands for none, and nodes that lie in none do not count.
"""

from __future__ import annotations

import numpy as np

from dovetail.engine.construction.fragmentation import Bools, Ints


def sums(amounts: Ints, ids: Ints) -> Ints:
    """Return the sum of amounts per domain, `ids` being those of the nodes that have them."""
    inside: Bools = ids >= 0
    return np.bincount(ids[inside], weights=amounts[inside], minlength=1).astype(np.int64)


def most(ids: Ints, amounts: Ints | Bools) -> Ints:
    """Return the largest amount per domain, 0 where there is none."""
    inside: Bools = ids >= 0
    found = np.zeros(max(1, int(ids.max(initial=-1)) + 1), dtype=np.int64)
    some = inside & (amounts > 0)
    np.maximum.at(found, ids[some], amounts[some])
    return found


def best(room: Ints, left: int, used: Bools, liked: Ints) -> int:
    """Return the domain that holds all that is left with least to spare, else the one that holds most.

    Parameters
    ----------
    room : how much each domain holds, some of them anything.
    used, liked : whether the gang is there already, and how much of it is wished to be there.
    """
    able = np.flatnonzero(room >= left)
    if len(able):
        return int(able[np.lexsort((room[able], -liked[able], ~used[able]))[0]])
    able = np.flatnonzero(room)
    return int(able[np.lexsort((~used[able], -room[able], -liked[able]))[0]])
