"""The end of a search: what runs today goes back to its place where that is free, if the plan is better for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from dovetail.engine.construction.returning import Spot, free_spots, returned, stayed
from dovetail.engine.record import Record
from dovetail.progress import Stop

_RETURNS = 20  # workloads that go back by themselves, where not all can, and replicas of these
_NODES = 20_000  # over how many fewer of the latter do: each time takes all nodes


def go_back(best: Record, stop: Stop) -> None:
    """Let who came to the place of an equal one be that one, and then others go back: all together, else by turns.

    Policies that take a search of their own keep nobody away at last: their guards keep out more than they need.
    """
    same = stayed(best.problem, best.state)
    if same is not best.state:
        best.offer(same)
    _by_turns(best, stop, frozenset())
    if best.searching:
        _by_turns(best, stop, best.searching)


def _by_turns(best: Record, stop: Stop, aside: frozenset[str]) -> None:
    """Let all go back that may, else workload by workload, and of those that cannot the first replicas one by one."""
    spots = free_spots(best.problem, best.state)
    if not spots or _goes_back(best, spots, stop, aside):
        return
    single: list[dict[str, list[Spot]]] = []
    for workload, own in islice(spots.items(), _RETURNS):
        if best.bounds.over() or (len(spots) > 1 and _goes_back(best, {workload: own}, stop, aside)):
            continue
        if len(own) > 1 and not best.problem.spec.by_id[workload].joint:
            single += [{workload: [spot]} for spot in own]
    for each in single[: min(_RETURNS, _NODES // len(best.problem.nodes))]:
        if not best.bounds.over():
            _goes_back(best, each, stop, aside)


def _goes_back(best: Record, spots: Mapping[str, Sequence[Spot]], stop: Stop, aside: frozenset[str]) -> bool:
    state = returned(best.problem, best.state, spots, stop, aside)
    return state is not None and best.offer(state)
