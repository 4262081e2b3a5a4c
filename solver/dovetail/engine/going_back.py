"""The end of a search: what runs today goes back to its place where that is free, if the plan is better for it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import islice

from dovetail.engine.construction.returning import Spot, free_spots, returned, stayed
from dovetail.engine.record import Record
from dovetail.progress import Stop

_RETURNS = 20  # workloads that go back by themselves, where not all can


def go_back(best: Record, stop: Stop) -> None:
    """Let who came to the place of an equal one be that one, and then others go back: all together, else by turns."""
    same = stayed(best.problem, best.state)
    if same is not best.state:
        best.offer(same)
    spots = free_spots(best.problem, best.state)
    if spots and not _goes_back(best, spots, stop) and len(spots) > 1:
        for workload, own in islice(spots.items(), _RETURNS):
            if best.bounds.until is not None and time.monotonic() >= best.bounds.until:
                break
            _goes_back(best, {workload: own}, stop)


def _goes_back(best: Record, spots: Mapping[str, Sequence[Spot]], stop: Stop) -> bool:
    state = returned(best.problem, best.state, spots, stop)
    return state is not None and best.offer(state)
