"""Rows on what restarts after failures: a count per case, shape and surviving node, beside what stays (S4.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dovetail.linear import Linear
from dovetail.model.state import NO_GPU, Slot
from dovetail.placement.instances import share_memory
from dovetail.rules.quota import requested_of
from dovetail.rules.recovery import Failure, Stakes
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

if TYPE_CHECKING:
    from dovetail.model.part import PartModel

MOST_COUNTS = 100_000
"""The most counts of restarts that a model has; beyond them it says nothing."""


def not_restarted(part: PartModel, stakes: Stakes, failures: Sequence[Failure]) -> Mapping[str, Linear] | None:
    """Return per failure an expression that is at least the replicas that do not restart, and can equal it."""
    rows = _Restarts(part, stakes)
    if rows.size(failures) > MOST_COUNTS:
        return None
    return {failure.name: rows.add(failure) for failure in failures}


class _Restarts:
    """What stays on each node whatever fails, worked out once, and the rows of each failure."""

    def __init__(self, part: PartModel, stakes: Stakes) -> None:
        self._part, self._stakes = part, stakes
        problem = part.problem
        self._shapes = [s for s in problem.shapes if s.workload.id in stakes.ids]
        self._contents = {index: list(part.contents(index)) for index in range(len(problem.nodes))}
        self._staying = {index: self._stays(index) for index in self._contents}
        self._flags: dict[tuple[int, int, str], int] = {}

    def _stays(self, index: int) -> list[tuple[Slot, Linear]]:
        shapes, gone = self._part.problem.shapes, self._stakes.evictable
        found = self._contents[index]  # what is on a MIG instance is not evicted: its GPU would have to be cut anew
        return [(slot, c) for slot, c in found if slot.profile or shapes[slot.shape].workload.id not in gone]

    def size(self, failures: Sequence[Failure]) -> int:
        """Return about how many counts there would be."""
        gpus = max((len(node.healthy_gpus()) for node in self._part.problem.nodes), default=0)
        each = sum(gpus if shape.request.share else 1 for shape in self._shapes)
        return len(failures) * len(self._part.problem.nodes) * each

    def add(self, failure: Failure) -> Linear:
        """Add the rows of a failure."""
        nodes, model = self._part.problem.nodes, self._part.model
        model.section(f"failure {failure.name}")
        lost = {index for index, node in enumerate(nodes) if node.name in failure.nodes}
        missing = Linear()
        again: dict[int, dict[Slot, int]] = {index: {} for index in self._contents if index not in lost}
        for shape in self._shapes:
            gone = Linear.total(c for i in lost for slot, c in self._contents[i] if slot.shape == shape.index)
            most = model.range_of(gone)[1]
            if most <= 0:
                continue
            short = model.integer(0, most)
            found = Linear.of(short)
            for index, slot in self._places(shape.index, again):
                variable = again[index][slot] = model.integer(0, most)
                found.add_term(variable)
            model.require(found.minus(gone), lower=0)
            missing.add_term(short)
        for index, counts in again.items():
            if counts:
                self._add_host_rows(index, counts)
                self._add_gpu_rows(index, counts)
        self._add_sides(lost, again)
        return missing

    def _places(self, shape: int, again: Mapping[int, object]) -> Iterator[tuple[int, Slot]]:
        """Yield the surviving nodes that a shape may restart on, for shares with each GPU."""
        problem = self._part.problem
        form = problem.shapes[shape]
        open_to = self._stakes.hosts[form.workload.id]
        for index in again:
            node = problem.nodes[index]
            if form.request.share and node.mechanism != "fraction":
                continue  # restarts on MIG instances, or that set GPUs anew, are not planned
            if node.name in open_to and shape in problem.hosted[problem.class_of[index]]:
                gpus = node.healthy_gpus() if form.request.share else (NO_GPU,)
                yield from ((index, Slot(shape, gpu)) for gpu in gpus)

    def _add_host_rows(self, index: int, counts: Mapping[Slot, int]) -> None:
        node, shapes = self._part.problem.nodes[index], self._part.problem.shapes
        names = {name for slot in counts for name in shapes[slot.shape].request.resources}
        capacities = {"cpu": node.cpu, "memory": node.memory, **{n: node.resources.get(n, 0) for n in sorted(names)}}
        for name, limit in capacities.items():
            row = Linear({v: requested_of(shapes[slot.shape].request, name) for slot, v in counts.items()})
            if any(row.terms.values()):
                for slot, count in self._staying[index]:
                    row.add(count, requested_of(shapes[slot.shape].request, name))
                self._at_most(row, limit)

    def _at_most(self, row: Linear, limit: int) -> None:
        if self._part.model.range_of(row)[1] > limit:
            self._part.model.require(row, upper=limit)

    def _add_gpu_rows(self, index: int, counts: Mapping[Slot, int]) -> None:
        """Let whole GPUs and shared ones fit the node's healthy GPUs, and shares their GPU."""
        node, shapes = self._part.problem.nodes[index], self._part.problem.shapes
        total = Linear({v: shapes[slot.shape].request.gpus for slot, v in counts.items() if slot.gpu == NO_GPU})
        most = len(node.healthy_gpus())
        for shared in self._part.sharing(index) if total.terms else ():
            self._at_most(total.plus(0).add(shared, most), most)
        for slot, count in self._staying[index]:
            total.add(count, shapes[slot.shape].request.gpus)
        for gpu in node.healthy_gpus():
            here = {slot: v for slot, v in counts.items() if slot.gpu == gpu}
            stay = [(slot, count) for slot, count in self._staying[index] if slot.gpu == gpu]
            shares = [(slot, count) for slot, count in stay if not slot.profile]
            flags = [self._used(index, gpu, "mig", [pair for pair in stay if pair[0].profile])]
            flags.append(self._shared(node, gpu, here, shares) if here else self._used(index, gpu, "shared", shares))
            used = Linear({flag: 1 for flag in flags if flag is not None})
            if len(used.terms) > 1:
                self._part.model.require(used, upper=1)
            total.add(used)
        if any(total.terms.values()):
            self._at_most(total, len(node.healthy_gpus()))

    def _used(self, index: int, gpu: int, mode: str, stay: Sequence[tuple[Slot, Linear]]) -> int | None:
        """Return a flag that is 1 where parts of a GPU stay in use, one for all failures; None where none can be."""
        key = index, gpu, mode
        if stay and key not in self._flags:
            self._flags[key] = self._flag_of(self._load(stay))
        return self._flags.get(key)

    def _load(self, stay: Sequence[tuple[Slot, Linear]]) -> Linear:
        shapes, load = self._part.problem.shapes, Linear()
        for slot, count in stay:
            load.add(count, shapes[slot.shape].request.gpu_milli)
        return load

    def _flag_of(self, load: Linear) -> int:
        flag = self._part.model.boolean()
        most = max(MILLI, self._part.model.range_of(load)[1])
        self._part.model.require(load.minus(Linear.of(flag, most)), upper=0)
        return flag

    def _shared(self, node: Node, gpu: int, here: Mapping[Slot, int], stay: Sequence[tuple[Slot, Linear]]) -> int:
        """Return a flag that is 1 where shares are on a GPU, of which some may restart there."""
        shapes = self._part.problem.shapes
        restarts = Linear({v: shapes[slot.shape].request.gpu_milli for slot, v in here.items()})
        flag = self._flag_of(restarts.add(self._load(stay)))
        card = self._part.spec.accelerators[node.accelerator or ""].memory
        vram = Linear({v: share_memory(shapes[slot.shape].request, card) for slot, v in here.items()})
        for slot, count in stay:
            vram.add(count, share_memory(shapes[slot.shape].request, card))
        self._at_most(vram, MILLI * card)
        return flag

    def _add_sides(self, lost: set[int], again: Mapping[int, Mapping[Slot, int]]) -> None:
        """Keep what survives and what restarts of a workload on one side: an accelerator, a required domain."""
        problem = self._part.problem
        for workload in self._stakes.matched:
            shapes = set(problem.shapes_of_workload.get(workload.id, ()))
            sides: dict[tuple[str, str], Linear] = {}
            for index, counts in again.items():
                own = Linear.total(c for slot, c in self._contents[index] if slot.shape in shapes)
                own.add(Linear({v: 1 for slot, v in counts.items() if slot.shape in shapes}))
                if self._part.model.range_of(own)[1] > 0:
                    side = self._stakes.side_of(workload, problem.nodes[index])
                    sides.setdefault(side, Linear()).add(own)
            if len(sides) > 1:
                flags = [self._part.model.at_least_one(count) for _, count in sorted(sides.items())]
                self._part.model.require(Linear({flag.variable: 1 for flag in flags}), upper=1)
