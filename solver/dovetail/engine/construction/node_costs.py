"""What nodes cost as they are and with all their GPUs in use (S5.6), and idle ones that cost less."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.problem import Problem

_SWAPS = 3  # kinds of cheaper idle nodes that are tried for what a node holds


class NodeCosts:
    """What each node of a field cost when that was kept last, to be compared with what it costs now.

    `used` is a mask of those that were in use then.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        every = range(len(field.problem.nodes))
        self._kept = [cost_on(field, node) for node in every]
        self.used: Bools = np.array([_in_use(field, node) for node in every], dtype=np.bool_)

    def __iter__(self) -> Iterator[int]:
        """Yield what was kept, node by node."""
        return iter(self._kept)

    def since(self, turn: int) -> dict[int, int]:
        """Return what each node costs now that has changed since a turn of the field."""
        return {n: cost_on(self._field, n) for n in np.flatnonzero(self._field.touched > turn).tolist()}

    def saved(self, now: Mapping[int, int]) -> int:
        """Return by how much less than what was kept some nodes cost now, all together."""
        return sum(self._kept[node] - cost for node, cost in now.items())

    def keep(self, node: int) -> int:
        """Keep what a node costs now, and return it."""
        self._kept[node], self.used[node] = cost_on(self._field, node), _in_use(self._field, node)
        return self._kept[node]


def prices_of(problem: Problem) -> list[int]:
    """Return what each node costs with all its GPUs in use."""
    return [node.full_price for node in problem.nodes]


def cost_on(field: Field, node: int) -> int:
    """Return what a node costs as it is, with those of its GPUs that are in use (S5.6)."""
    made = field.problem.nodes[node]
    gpus = len(made.healthy_gpus()) - int(field.untouched[node])
    return made.gpu_price * gpus + (made.price if _in_use(field, node) else 0)


def _in_use(field: Field, node: int) -> bool:
    fill = field.fills.get(node)
    return fill is not None and any(fill.slots.values())


def cheaper_idle(
    field: Field, node: int, used: Bools, prices: Sequence[int], shapes: Collection[int]
) -> Iterator[int]:
    """Yield idle nodes that cost less than one and might hold some shapes, one of each make, cheapest first."""
    may = ~used
    for shape in shapes:
        may = may & field.hosts(field.problem.shapes[shape])
    makes: dict[tuple[int, int], int] = {}
    for other in map(int, np.flatnonzero(may)):
        if prices[other] < prices[node]:
            makes.setdefault((prices[other], field.problem.makes.of[other]), other)
    yield from (makes[key] for key in sorted(makes)[:_SWAPS])
