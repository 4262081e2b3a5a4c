"""What GPUs of alike nodes are to hold, dealt out to these nodes: where most CPU is left, so that none runs short."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import NamedTuple

from dovetail.engine.construction.field import Field
from dovetail.spec.workload import MILLI

_TRIES = 30  # nodes for a load, of which the first may be closed to it by a rule

Part = tuple[int, str]  # a replica's shape, and the profile of its instance: empty for whole GPUs


class Load(NamedTuple):
    """A replica of whole GPUs, or all replicas that are to be on instances of one GPU."""

    gpus: int
    parts: tuple[Part, ...]


def deal(field: Field, nodes: Sequence[int], loads: Iterable[Load]) -> None:
    """Put loads on nodes as far as these and hard rules take them, the largest first, then those that take most CPU.

    What of a GPU's load finds no place by the others gets a GPU of its own where any is left.
    """
    shapes = field.problem.shapes
    found = [(load, sum(shapes[s].request.cpu for s, _ in load.parts)) for load in loads]
    ordered = sorted(found, key=lambda each: (-each[0].gpus, -each[1], each[0]))
    for gpus, alike in groupby(ordered, key=lambda each: each[0].gpus):
        heap = [(-int(field.cpu[node]), node) for node in nodes if field.untouched[node] >= gpus]
        heapify(heap)
        queue = deque(load for load, _ in alike)
        while queue and heap:
            load = queue.popleft()
            rest = _place(field, heap, load)
            if rest and len(rest) < len(load.parts):
                queue.append(Load(1, rest))


def _place(field: Field, heap: list[tuple[int, int]], load: Load) -> tuple[Part, ...]:
    """Put a load on the first node that takes any of it, and return what is left of it."""
    passed, rest = list[int](), load.parts
    while heap and len(passed) < _TRIES and len(rest) == len(load.parts):
        _, node = heappop(heap)
        rest = _put(field, node, load)
        passed.append(node)
    for node in passed:
        if field.untouched[node] >= load.gpus:
            heappush(heap, (-int(field.cpu[node]), node))
    return rest


def _put(field: Field, node: int, load: Load) -> tuple[Part, ...]:
    """Put a load on a node, and return what is left of it."""
    free = [gpu for gpu in field.problem.nodes[node].healthy_gpus() if field.gpus[node, gpu] == MILLI]
    left = []
    for shape, profile in load.parts:
        form = field.problem.shapes[shape]
        gpus = tuple(free[:1]) if form.request.partial else field.whole_gpus(node, form)
        seen = gpus[0] if form.request.partial and gpus else None
        fits = field.wanted(shape) > 0 and field.room_on(node, form, gpus) and not field.blocked(node, shape, seen)
        if fits:
            field.put(node, shape, gpus, like=profile)
        else:
            left.append((shape, profile))
    return tuple(left)
