"""GPUs of one island, or one socket: what constructions know of the inside of nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.spec import Node, Request


class Blocks:
    """The blocks that each GPU lies in, per set of levels inside a node that requests demand.

    Parameters
    ----------
    width : the most GPUs of any node.
    """

    def __init__(self, nodes: Sequence[Node], width: int) -> None:
        self._nodes = nodes
        self._width = width
        self._matter = [bool(node.islands or node.sockets) for node in nodes]
        self._some = any(self._matter)
        self._tables: dict[tuple[str, ...], Ints] = {}

    def matter(self, index: int) -> bool:
        """Tell whether a node has islands or sockets."""
        return self._matter[index]

    def any(self, inside: tuple[str, ...]) -> bool:
        """Tell whether some levels matter on any node."""
        return self._some and bool(inside)

    def room(self, inside: tuple[str, ...], gpus: int, free: Bools, nodes: Ints) -> Ints:
        """Return how many replicas of so many GPUs, each in one block, the free GPUs of some nodes have room for."""
        table = self._table(inside)[nodes]
        found = np.zeros(len(nodes), dtype=np.int64)
        for block in range(int(table.max(initial=-1)) + 1):
            found += (free & (table == block)).sum(axis=1) // gpus
        return found

    def _table(self, inside: tuple[str, ...]) -> Ints:
        """Return the number of the block of every GPU of every node, -1 where there is no GPU."""
        if inside not in self._tables:
            table = np.full((len(self._nodes), self._width), -1, dtype=np.int64)
            for index, node in enumerate(self._nodes):
                for number, block in enumerate(node.blocks(inside)):
                    table[index, [gpu for gpu in range(node.gpus) if block >> gpu & 1]] = number
            self._tables[inside] = table
        return self._tables[inside]

    @staticmethod
    def choose(node: Node, request: Request, free: Sequence[int], count: int) -> tuple[int, ...]:
        """Return some of the free GPUs for so many replicas, each in the block with least to spare."""
        left = list(free)
        found: list[int] = []
        for _ in range(count):
            blocks = ([gpu for gpu in left if mask >> gpu & 1] for mask in node.blocks(request.inside))
            able = sorted((block for block in blocks if len(block) >= request.gpus), key=len)
            if not able:
                break
            gpus = _tightest(node, able[0], left)[: request.gpus]
            found += sorted(gpus)
            left = [gpu for gpu in left if gpu not in gpus]
        return tuple(found)


def _tightest(node: Node, gpus: Sequence[int], free: Sequence[int]) -> Sequence[int]:
    """Return some GPUs, those of the islands first of which least is free."""
    if not node.islands:
        return gpus
    room = {gpu: sum(other in free for other in island) for island in node.islands for gpu in island}
    return sorted(gpus, key=room.__getitem__)
