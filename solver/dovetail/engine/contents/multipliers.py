"""Multipliers of CPU and memory near the least Lagrangian bound of a node, and what whole GPUs earn at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Final

import numpy as np

from dovetail.engine.contents.gpu_contents import Floats, Ints

PRICED: Final = 2
"""Resources of a host that multipliers price: CPU and memory; the others are only kept to."""

_FAR = (0.0, 0.25, 0.5, 0.75, 1.0, 1.3, 1.8, 3.0)  # times the multipliers of before, to try
_NEAR = (0.0, 0.6, 0.85, 1.0, 1.15, 1.6)
_NEARER = (0.93, 0.97, 1.0, 1.03, 1.07)
_LEAST = 0.02  # of what the dearest replica is worth per part of the host, for multipliers to begin with


def descend(
    bounds: Callable[[Floats], Floats],
    worth: Floats,
    gpus: int,
    room: Ints,
    before: Floats | None,
    enough: float = -inf,
) -> tuple[Floats, float]:
    """Return multipliers near the least bound, and that bound.

    Parameters
    ----------
    bounds : the bound for each of some rows of multipliers.
    worth : of replicas; `gpus` and `room` are what the node has.
    before : where a search before ended, None to look far.
    enough : a bound that need not be any less.
    """
    start = _LEAST * (worth.max(initial=0.0) * max(1, gpus) / np.maximum(1, room[:PRICED]))
    here, least = start if before is None else np.maximum(before, start), inf
    for factors in (_FAR, _NEAR, _NEARER) if before is None else (_NEAR, _NEARER):
        trial = here * np.array([(cpu, memory) for cpu in factors for memory in factors])
        found = bounds(trial)
        here, least = trial[int(np.argmin(found))], float(found.min())
        if least <= enough:
            break
    return np.asarray(here), least


def with_whole(found: Floats, gain: Floats, sizes: Iterable[int], whole: Ints, limit: Ints) -> Floats:
    """Return the most that so many GPUs earn, a column for each number, once replicas of whole ones may take some.

    Parameters
    ----------
    found : what they earn without, changed in place; its rows are those of `gain`, what each item earns.
    sizes : the numbers of GPUs that items take, `whole` that of each; `limit` is how many there may be of it.
    """
    gpus = found.shape[1] - 1
    for size in (size for size in sizes if size <= gpus):
        items = np.flatnonzero((whole == size) & (limit > 0))
        copies = np.repeat(items, np.minimum(limit[items], gpus // size))
        earned = np.sort(-gain[:, copies], axis=1)[:, : gpus // size]
        earned = np.cumsum(np.maximum(0.0, -earned), axis=1)
        before = found.copy()
        for number, more in enumerate(earned.T, start=1):
            taken = number * size
            np.maximum(found[:, taken:], before[:, :-taken] + more[:, None], out=found[:, taken:])
    return found
