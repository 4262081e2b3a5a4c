"""Free capacity of all nodes as arrays, for constructions that add one replica at a time."""

from __future__ import annotations

from collections import Counter

import numpy as np

from dovetail.engine.fragmentation import Bools, Ints
from dovetail.model.state import NO_GPU, Fill, Slot, State
from dovetail.placement.room import share_memory
from dovetail.problem import Problem, Shape
from dovetail.rules import Guard
from dovetail.spec import Node
from dovetail.spec.workload import MILLI


class Field:
    """Free capacity of all nodes as arrays, and the contents so far.

    `gpus` and `vram` have one column per GPU index; a GPU that does not exist or has failed shows -1. `touched` is
    the log of nodes that changed, in order.
    """

    def __init__(self, problem: Problem, state: State) -> None:
        self.problem = problem
        nodes = problem.nodes
        width = max([node.gpus for node in nodes], default=0)
        self.cpu = np.array([node.cpu for node in nodes], dtype=np.int64)
        self.memory = np.array([node.memory for node in nodes], dtype=np.int64)
        names = sorted({name for shape in problem.shapes for name in shape.request.resources})
        self.resources = {n: np.array([node.resources.get(n, 0) for node in nodes], dtype=np.int64) for n in names}
        self.gpus = np.full((len(nodes), width), -1, dtype=np.int64)
        self.vram = np.full((len(nodes), width), -1, dtype=np.int64)
        self.card = np.array([_card(problem, node) for node in nodes], dtype=np.int64)
        for index, node in enumerate(nodes):
            healthy = list(node.healthy_gpus())
            self.gpus[index, healthy] = MILLI
            self.vram[index, healthy] = MILLI * self.card[index]
        self.hosts = np.zeros((len(problem.shapes), len(nodes)), dtype=bool)
        makes = np.array(problem.makes.of, dtype=np.int64)
        for make, shapes in enumerate(problem.hosted_by_make):
            self.hosts[np.ix_(np.array(shapes, dtype=np.int64), np.flatnonzero(makes == make))] = True
        self._close_nodes()
        self.fills: dict[int, Fill] = {}
        self.admitted: Counter[int] = Counter()
        self.guards = _guards(problem)
        self.by_gpu = any(guard.by_gpu for guard in self.guards)
        self._settled = _settled(problem, state)
        self.touched: list[int] = []
        for index, fill in state.fills.items():
            self._adopt(index, fill)

    def _close_nodes(self) -> None:
        """Take the nodes that hard policies close to workloads off their hosts."""
        index = self.problem.node_index
        for policy in self.problem.spec.policies:
            scope = self.problem.context.scopes[policy.name]
            if policy.enforcement.kind == "hard" and (closed := policy.rule.closed_nodes(scope)):
                nodes = [index[name] for name in closed if name in index]
                shapes = [s.index for s in self.problem.shapes if s.workload.id in scope.ids]
                self.hosts[np.ix_(shapes, nodes)] = False

    def wanted(self, shape: int) -> int:
        """Return how many more replicas of a shape may join.

        Where some that may not move were evicted, none may: nothing tells who would come back, and where.
        """
        return 0 if shape in self._settled else self.problem.shapes[shape].demand - self.admitted[shape]

    def _adopt(self, index: int, fill: Fill) -> None:
        """Take over what a state holds on a node; whole-GPU replicas that stay keep their GPU indices."""
        self.fills[index] = Fill(kept=Counter(fill.kept))
        kept: Counter[int] = Counter()
        for place, count in fill.kept.items():
            if self.problem.shapes[place.shape].request.gpus:
                kept[place.shape] += count
                for _ in range(count):
                    self._put(index, place.shape, place.gpus)
        for slot, count in sorted(fill.slots.items(), key=lambda item: (item[0].gpu == NO_GPU, item[0])):
            for _ in range(count - kept[slot.shape] * (slot.gpu == NO_GPU)):
                self._put(index, slot.shape, self._gpus_for(index, slot))

    def _gpus_for(self, index: int, slot: Slot) -> tuple[int, ...]:
        if slot.gpu != NO_GPU:
            return (slot.gpu,)
        wanted = self.problem.shapes[slot.shape].request.gpus
        return tuple(int(gpu) for gpu in np.flatnonzero(self.gpus[index] == MILLI)[:wanted])

    def _put(self, index: int, shape: int, gpus: tuple[int, ...], count: int = 1) -> None:
        request = self.problem.shapes[shape].request
        self.touched.append(index)
        self.cpu[index] -= count * request.cpu
        self.memory[index] -= count * request.memory
        for name, amount in request.resources.items():
            self.resources[name][index] -= count * amount
        for gpu in gpus:
            self.gpus[index, gpu] -= count * (request.gpu_milli if request.share else MILLI)
            vram = share_memory(request, int(self.card[index])) if request.share else MILLI * int(self.card[index])
            self.vram[index, gpu] -= count * vram
        gpu = gpus[0] if request.share else NO_GPU
        fill = self.fills.setdefault(index, Fill())
        fill.slots[Slot(shape, gpu)] += count
        self.admitted[shape] += count
        member = self.problem.shapes[shape].members[0]
        for guard in self.guards:
            seen = None if gpu == NO_GPU else gpu
            guard.add(member.workload, member.role, self.problem.nodes[index], seen, count)

    def put(self, index: int, shape: int, gpus: tuple[int, ...]) -> None:
        """Add a replica on given GPUs."""
        self._put(index, shape, gpus)

    def undo(self, index: int, shape: int, gpus: tuple[int, ...]) -> None:
        """Take a replica off again."""
        self._put(index, shape, gpus, -1)

    def blocked(self, index: int, shape: int, gpu: int | None) -> bool:
        """Tell whether a hard rule keeps a replica off a place."""
        member = self.problem.shapes[shape].members[0]
        node = self.problem.nodes[index]
        return any(guard.blocks(member.workload, member.role, node, gpu) for guard in self.guards)

    def barred(self, shape: int) -> bool:
        """Tell whether a hard rule keeps a replica off every place."""
        member = self.problem.shapes[shape].members[0]
        return any(guard.bars(member.workload, member.role) for guard in self.guards)

    def opened(self, shape: int) -> int:
        """Return a number that changes whenever places that were blocked may have opened, undoing aside."""
        workload = self.problem.shapes[shape].members[0].workload
        return sum(guard.opened(workload) for guard in self.guards)

    def fits_host(self, shape: Shape, nodes: Ints) -> Bools:
        """Tell for some nodes whether CPU, memory and resources are left for a replica."""
        request = shape.request
        mask = (self.cpu[nodes] >= request.cpu) & (self.memory[nodes] >= request.memory)
        for name, amount in request.resources.items():
            mask &= self.resources[name][nodes] >= amount
        return np.asarray(mask)

    def share_memory(self, shape: Shape, nodes: Ints) -> Ints:
        """Return the GPU memory that a share takes on each of some nodes, in thousandths of a MiB."""
        share = shape.request.share
        if share is None or share.memory is not None:
            return np.full(len(nodes), share_memory(shape.request, 0))
        return np.asarray(share.compute * self.card[nodes])

    def room_on(self, index: int, shape: Shape, gpus: tuple[int, ...]) -> bool:
        """Tell whether a node, on given GPUs, has room for a replica."""
        fits = self.hosts[shape.index, index] and self.fits_host(shape, np.array([index]))[0]
        sound = len(set(gpus)) == len(gpus) == shape.request.gpu_count
        if not fits or not sound or not all(0 <= gpu < self.gpus.shape[1] for gpu in gpus):
            return False
        if shape.request.share is None:
            return all(self.gpus[index, gpu] == MILLI for gpu in gpus)
        vram = int(self.share_memory(shape, np.array([index]))[0])
        return bool(self.gpus[index, gpus[0]] >= shape.request.gpu_milli and self.vram[index, gpus[0]] >= vram)

    def state(self) -> State:
        """Return the contents so far."""
        fills = {index: Fill(+fill.slots, +fill.kept) for index, fill in self.fills.items()}
        return State({index: fill for index, fill in sorted(fills.items()) if fill.slots})


def _card(problem: Problem, node: Node) -> int:
    return problem.spec.accelerators[node.accelerator].memory if node.accelerator else 0


def _settled(problem: Problem, state: State) -> frozenset[int]:
    """Return the shapes that may not move and of which some running replicas do not stay."""
    kept = state.kept()
    return frozenset(
        shape.index
        for shape in problem.shapes
        if not shape.workload.movable and kept[shape.index] < problem.running[shape.index]
    )


def _guards(problem: Problem) -> list[Guard]:
    found = []
    for policy in problem.spec.policies:
        if policy.enforcement.kind == "hard":
            guard = policy.rule.guard(problem.context.scopes[policy.name])
            if guard is not None:
                found.append(guard)
    return found
