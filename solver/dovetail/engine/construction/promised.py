"""What is served of rates that are promised (S2.8) while replicas are taken off and placed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Ints
from dovetail.spec import Workload
from dovetail.spec.slo import host_of


class Promised:
    """What each node of a field served of promises when that was kept last, to be compared with what it serves now.

    Services that are worth what they serve of a rate are among those that are promised one.
    """

    def __init__(self, field: Field) -> None:
        self._field = field
        self._nodes = field.problem.nodes
        workloads = {shape.workload.id: shape.workload for shape in field.problem.shapes}
        slos = ((name, workload, workload.slo) for name, workload in workloads.items())
        self._of = {name: (workload, slo) for name, workload, slo in slos if slo is not None and slo.rates}
        self._kept = [self._on(node) for node in range(len(self._nodes))]
        self._served = Counter[str]()
        for each in self._kept:
            self._served.update(each)
        makes = {name: number for number, name in enumerate({node.accelerator: None for node in self._nodes})}
        self._makes = list(makes)
        self._make_of: Ints = np.array([makes[node.accelerator] for node in self._nodes], dtype=np.int64)

    def __contains__(self, workload: Workload) -> bool:
        """Tell whether a workload is promised any rate."""
        return workload.id in self._of

    def lacking(self) -> Iterator[str]:
        """Yield the workloads that serve less than was promised, and would serve more on the fastest nodes."""
        problem, admitted = self._field.problem, self._field.admitted
        for name in self._of:
            there = sum(admitted[shape] for shape in problem.shapes_of_workload[name])
            if self._lacks(name) and self._served[name] < there * max(self._by_make(name), default=0):
                yield name

    def rates(self, name: str) -> Ints:
        """Return what a replica of a workload, on whole GPUs or a share of one, serves on every node."""
        return np.array(self._by_make(name), dtype=np.int64)[self._make_of]

    def more(self, turn: int) -> int | None:
        """Return by how many thousandths less is missing, weighted, with what nodes serve that changed since a turn.

        None where a service is worth less that is worth what it serves.
        """
        changed, found = Counter[str](), 0
        for node in np.flatnonzero(self._field.touched > turn).tolist() if self._of else ():
            changed.update(self._on(node))
            changed.subtract(self._kept[node])
        for name, each in changed.items():
            workload, slo = self._of[name]
            before, now = self._served[name], self._served[name] + each
            if workload.asks_rate and min(now, slo.rate) < min(before, slo.rate):
                return None
            found += slo.floors.weight * (slo.shortfall(before) - slo.shortfall(now))
        return found

    def keep(self, node: int) -> bool:
        """Keep what a node serves now; tell whether others lack anything than before."""
        before, now = self._kept[node], self._on(node)
        self._kept[node] = now
        lacked = {name for name in before | now if self._lacks(name)}
        self._served.update(now)
        self._served.subtract(before)
        return lacked != {name for name in before | now if self._lacks(name)}

    def _lacks(self, name: str) -> bool:
        _, slo = self._of[name]
        return not slo.late and self._served[name] < slo.owed

    def _by_make(self, name: str) -> list[int]:
        _, slo = self._of[name]
        return [slo.rates.get(host_of(accelerator), 0) for accelerator in self._makes]

    def _on(self, node: int) -> Counter[str]:
        """Return what replicas on a node serve, by workload that is promised anything."""
        fill, found = self._field.fills.get(node), Counter[str]()
        for slot, count in fill.slots.items() if fill is not None and self._of else ():
            name = self._field.problem.shapes[slot.shape].workload.id
            if count and name in self._of:
                _, slo = self._of[name]
                found[name] += count * slo.rates.get(host_of(self._nodes[node].accelerator, slot.profile), 0)
        return found
