"""What contents of nodes lack of what service levels promise (S2.8), as mixtures of patterns count it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from dovetail.engine.contents.patterns import Pattern
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.spec import Node, Workload
from dovetail.spec.slo import host_of
from dovetail.spec.workload import MILLI

Held = tuple[Counter[str], Counter[str]]  # by workload: what is served, and how many replicas are there


class Promises:
    """What is promised to workloads, and what nodes keep of that whatever others hold.

    Parameters
    ----------
    free : the nodes whose contents are yet to be told.
    """

    def __init__(self, problem: Problem, state: State, free: Collection[int]) -> None:
        self._of = {s.index: s.workload for s in problem.shapes if promises(s.workload)}
        self._workloads = {workload.id: workload for workload in self._of.values()}
        self._known: dict[tuple[str | None, Pattern], Held] = {}
        self._kept: Held = Counter(), Counter()
        for node, fill in state.fills.items() if self._of else ():
            if node not in free:
                self._add(self._kept, problem.nodes[node], tuple(fill.slots.items()))

    def missing(self, contents: Iterable[tuple[Node, Pattern]]) -> float:
        """Return the thousandths that are missing of all promises where free nodes hold this, weighted."""
        found = self._kept[0].copy(), self._kept[1].copy()
        for node, pattern in contents if self._of else ():
            key = node.accelerator, pattern
            if key not in self._known:
                self._known[key] = Counter(), Counter()
                self._add(self._known[key], node, pattern)
            for total, own in zip(found, self._known[key], strict=True):
                total.update(own)
        served, there = found
        return sum(_missing(each, served[name], there[name]) for name, each in self._workloads.items())

    def _add(self, held: Held, node: Node, pattern: Pattern) -> None:
        served, there = held
        for slot, count in pattern:
            workload = self._of.get(slot.shape)
            if workload is not None and workload.slo is not None:
                served[workload.id] += count * workload.slo.rates.get(host_of(node.accelerator, slot.profile), 0)
                there[workload.id] += count


def promises(workload: Workload) -> bool:
    """Tell whether a workload is promised what its replicas serve, or so many of them, and may get it."""
    slo = workload.slo
    return slo is not None and not slo.late and bool(slo.owed or slo.least(workload.replicas))


def _missing(workload: Workload, served: int, there: int) -> float:
    slo = workload.slo
    if slo is None:
        return 0.0
    owed = [(slo.owed, served), (slo.least(workload.replicas), there)]
    return MILLI * slo.floors.weight * sum(max(0.0, 1 - has / asked) for asked, has in owed if asked)
