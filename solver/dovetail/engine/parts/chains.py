"""Parts along which room is passed on: a host of what waits, one where somebody on it may go, and so on to room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.model.state import NO_GPU, Fill, State
from dovetail.problem import Problem
from dovetail.spec import Request
from dovetail.spec.workload import MILLI

_LONGEST = 4  # times that room is passed on


@dataclass(frozen=True, slots=True)
class _Level:
    """Shapes as many steps away from room, and a mask of the nodes that any of them are on."""

    shapes: frozenset[int]
    nodes: Bools


class Chains:
    """Draws nodes along ways on which a replica that waits could be there: each node makes room for the one before.

    A shape is no step away from room where a node that it may be on has enough left of whole GPUs, GPU, CPU and
    memory, and one step further than the nearest shape that is on such a node. Rules between workloads, and which of
    a node's GPUs are idle, are left to the model of the part.
    """

    def __init__(self, problem: Problem, random: Random) -> None:
        self._problem, self._random = problem, random
        self._field = Field(problem, State({}))  # tells which nodes are open to what
        self._asked = {s.index: _amounts(s.request) for s in problem.shapes if s.request.gpu_count}
        gpus = (len(node.healthy_gpus()) for node in problem.nodes)
        whole = [[n, MILLI * n, node.cpu, node.memory] for n, node in zip(gpus, problem.nodes, strict=True)]
        self._whole = np.array(whole, dtype=np.int64).reshape(-1, 4)
        self._left = self._whole.copy()
        self._seen: dict[int, Fill] = {}
        self._state: State | None = None
        self._room: dict[int, Bools] = {}
        self._levels: Sequence[_Level] = ()

    def draw(self, state: State, shape: int, nodes: Iterable[int], size: int) -> list[int]:
        """Return up to so many of some nodes, on ways for a shape; none where there is no way."""
        if state is not self._state:
            self._look(state)
        inside = np.zeros(len(self._problem.nodes), dtype=bool)
        inside[list(nodes)] = True
        found: set[int] = set()
        for _ in range(size):
            way = self._way(state, shape, inside)
            if not way or len(found.union(way)) > size:
                break
            found.update(way)
        return sorted(found)

    def _way(self, state: State, shape: int, inside: Bools) -> list[int]:
        """Return nodes along one way, as short as there is one, with one step at the least."""
        found: list[int] = []
        masks = [level.nodes & inside for level in self._levels]
        steps = next((k for k, mask in enumerate(masks) if (self._hosts(shape) & mask).any()), -1)
        for level, mask in zip(self._levels[steps::-1], masks[steps::-1], strict=True) if steps >= 0 else ():
            node = self._any(self._hosts(shape) & mask)
            if node is None:
                return []
            found.append(node)
            shape = self._random.choice(sorted(level.shapes.intersection(state.fill(node).counts())))
        last = self._any(self._room[shape] & inside) if found else None
        return [*found, last] if last is not None else []

    def _any(self, mask: Bools) -> int | None:
        some = np.flatnonzero(mask).tolist()
        return self._random.choice(some) if some else None

    def _hosts(self, shape: int) -> Bools:
        return self._field.hosts(self._problem.shapes[shape])

    def _look(self, state: State) -> None:
        """Take up a state: where shapes have room, and how many steps the others are away from it."""
        self._take_up(state)
        self._state, self._room, levels = state, {}, list[_Level]()
        for shape, asked in self._asked.items():
            fits = self._hosts(shape) & (self._left >= asked).all(axis=1)
            if fits.any():
                self._room[shape] = fits
        where = state.totals().where
        known = frozenset(self._room)
        new = known
        while new and len(levels) < _LONGEST:
            movable = frozenset(s for s in new if where.get(s) and self._problem.shapes[s].workload.movable)
            on = np.zeros(len(self._left), dtype=bool)
            on[[node for shape in movable for node in where[shape]]] = True
            levels.append(_Level(movable, on))
            new = frozenset(shape for shape in self._asked if shape not in known and (self._hosts(shape) & on).any())
            known |= new
        self._levels = levels

    def _take_up(self, state: State) -> None:
        """Take up what nodes have left."""
        for node in self._seen.keys() - state.fills.keys():
            del self._seen[node]
            self._left[node] = self._whole[node]
        for node, fill in state.fills.items():
            if self._seen.get(node) is not fill:
                self._seen[node] = fill
                parted = {slot.gpu for slot, count in fill.slots.items() if count and slot.gpu != NO_GPU}
                used = np.array([len(parted), 0, 0, 0])
                for slot, count in fill.slots.items():
                    used += _amounts(self._problem.request(slot.shape, self._problem.nodes[node])) * count
                self._left[node] = self._whole[node] - used


def _amounts(request: Request) -> Ints:
    """Return what a request takes: whole GPUs, milli-GPU, CPU and memory."""
    return np.array([request.gpus, request.gpu_milli, request.cpu, request.memory], dtype=np.int64)
