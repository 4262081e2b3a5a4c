"""Contents of alike nodes, made up from what is to run on them in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.patterns import Pattern, counts_of
from dovetail.engine.contents.width import NARROW
from dovetail.engine.fleet.sides import Target
from dovetail.problem import Problem
from dovetail.proof.kinds import Kind
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

_BOUND = 1.5  # how much more what may not go elsewhere counts


class Packer:
    """Makes up contents of alike nodes from what is to run on them in all.

    Contents are priced by the part of a node that they fill, so that none leaves what fits nobody; what may not go to
    other plots, and what asks much of the host for its GPUs, comes early.

    Parameters
    ----------
    kind, target, wanted : the nodes, and what the LP has on them, in fractions and rounded.
    """

    def __init__(self, problem: Problem, kind: Kind, target: Target, wanted: Counter[int]) -> None:
        self._wanted = Counter({s: n for s, n in wanted.items() if n > 0 and problem.shapes[s].request.gpu_count})
        self._knapsack = Knapsack(problem, kind, kind.sides[target.side].only(self._wanted)) if self._wanted else None
        most = max(target.prices.values(), default=0.0) or 1.0
        self._price = {
            s: (target.prices.get(s, 0.0) / most + _part(problem, kind.node, s))
            * (_BOUND if s in target.bound else 1.0)
            for s in self._wanted
        }

    def contents(self, nodes: int) -> Iterator[tuple[Pattern, int]]:
        """Yield contents and how many nodes take each."""
        while nodes > 0 and self._knapsack is not None and any(self._wanted.values()):
            given = nodes
            for _, pattern in self._knapsack.price(self._price, self._wanted, NARROW):
                uses = counts_of(pattern)
                times = min([nodes, *(self._wanted[s] // n for s, n in uses.items())])
                if times:
                    self._wanted.subtract({s: n * times for s, n in uses.items()})
                    nodes -= times
                    yield pattern, times
            if nodes == given:
                return

    def left(self) -> list[tuple[int, int]]:
        """Return the shapes that found no room, and how many replicas of each."""
        return [(s, n) for s, n in sorted(self._wanted.items()) if n > 0]


def _part(problem: Problem, node: Node, shape: int) -> float:
    """Return about which part of a node a replica fills: of its GPUs, and half of that of its CPU and memory."""
    request = problem.request(shape, node)
    gpus = request.gpu_milli / (MILLI * max(1, len(node.healthy_gpus())))
    return gpus + (request.cpu / max(1, node.cpu) + request.memory / max(1, node.memory)) / 4
