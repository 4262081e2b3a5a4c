"""Which parts of the cluster to plan anew: small sets of nodes, drawn reproducibly."""

from __future__ import annotations

import random
from collections.abc import Sequence

from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.spec.workload import MILLI

_SMALLEST, _LARGEST = 3, 24  # nodes of a part
_PATIENCE = 4  # parts solved to proof in a row before larger ones are tried


class Neighbourhoods:
    """Draws parts of the cluster to re-plan, reproducibly from a seed, their size fitted to what closes.

    Half the parts are random nodes; the others lean to nodes with idle GPU, whose odd remainders can be traded. Where
    gangs have a say in where they are together, every third part is about one of them: nodes that it is on, and those
    of one domain that it may gather in.
    """

    def __init__(self, problem: Problem, size: int = 6, seed: int = 1) -> None:
        self.problem = problem
        self.size = size
        self._random = random.Random(seed)
        self._wide = False
        self._turn = 0
        self._streak = 0

    def draw(self, state: State, parts: int = 1) -> list[list[int]]:
        """Return disjoint lists of node indices: fewer where there are no more nodes, one with all where they fit."""
        found: list[list[int]] = []
        rest: Sequence[int] = range(len(self.problem.nodes))
        while len(found) < parts and rest:
            found.append(self._draw(state, rest))
            taken = set(found[-1])
            rest = [node for node in rest if node not in taken]
        return found

    def _draw(self, state: State, nodes: Sequence[int]) -> list[int]:
        if self.size >= len(nodes):
            return list(nodes)
        self._turn += 1
        if self.problem.ranked and self.problem.spec.told_levels and self._turn % 3 == 0:
            return self._draw_gang(state, nodes)
        self._wide = not self._wide
        if self._wide:
            return sorted(self._random.sample(nodes, self.size))
        idle = {node: idle_milli(self.problem, state, node) + 50 for node in nodes}
        keys = {node: self._random.random() ** (1.0 / weight) for node, weight in idle.items()}
        return sorted(sorted(nodes, key=lambda node: -keys[node])[: self.size])

    def _draw_gang(self, state: State, nodes: Sequence[int]) -> list[int]:
        """Return nodes of one domain, the idle ones first, and nodes elsewhere that a gang is on."""
        gang, level = self._random.choice(self.problem.ranked), self._random.choice(self.problem.spec.told_levels)
        where = state.totals().where
        on = {node for shape in self.problem.shapes_of_workload.get(gang.id, ()) for node in where.get(shape, {})}
        seed = self._random.choice(sorted(on.intersection(nodes)) or list(nodes))
        path = self.problem.nodes[self._random.choice((seed, self._random.choice(nodes)))].domain(level)
        inside = [node for node in nodes if self.problem.nodes[node].domain(level) == path]
        inside.sort(key=lambda node: (node not in on, -idle_milli(self.problem, state, node)))
        outside = [node for node in nodes if node in on and self.problem.nodes[node].domain(level) != path]
        chosen = [*inside[: self.size], *outside[: max(1, self.size // 2)]]
        return sorted(chosen)

    def learn(self, closed: bool) -> None:
        """Try larger parts after several in a row that were solved to proof, smaller ones after one that was not."""
        self._streak = self._streak + 1 if closed else 0
        if not closed:
            self.size = max(self.size - 1, _SMALLEST)
        elif self._streak >= _PATIENCE:
            self.size, self._streak = min(self.size + 1, _LARGEST), 0


def idle_milli(problem: Problem, state: State, node: int) -> int:
    """Return the milli-GPU of a node's healthy GPUs that nothing uses."""
    used = sum(count * problem.shapes[slot.shape].request.gpu_milli for slot, count in state.fill(node).slots.items())
    return MILLI * len(problem.nodes[node].healthy_gpus()) - used
