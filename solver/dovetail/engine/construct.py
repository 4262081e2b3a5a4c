"""A good start in seconds: replicas one by one, each where it spoils least, all hard rules kept (E3).

Bands come in order; within a band what is all-or-nothing first, largest first, then replicas with GPUs in an even
mixture of shapes (a mixture leaves fewer odd remainders than any sorted order), then those without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from dovetail.engine.fragmentation import Floats, Gradient, Ints
from dovetail.engine.state import NO_GPU, Fill, Slot, State
from dovetail.placement import Place, Places
from dovetail.placement.room import share_memory
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.rules import Guard
from dovetail.spec import Node, ReplicaId, Workload
from dovetail.spec.workload import MILLI

BUCKET = 40.0  # milli-GPU; the gradient is compared in steps of this size, ties go to the first node


class Field:
    """Free capacity of all nodes as arrays, and the contents so far.

    `gpus` and `vram` have one column per GPU index; a GPU that does not exist or has failed shows -1.
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
        for node_class in problem.classes:
            self.hosts[np.ix_(problem.hosted[node_class.index], node_class.nodes)] = True
        self.fills: dict[int, Fill] = {}
        self.admitted: Counter[int] = Counter()
        self.guards = _guards(problem)
        for index, fill in state.fills.items():
            self._adopt(index, fill)

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

    def fitting(self, shape: Shape) -> Ints:
        """Return the indices of the nodes with room for a replica, rules aside."""
        request = shape.request
        mask = self.hosts[shape.index] & (self.cpu >= request.cpu) & (self.memory >= request.memory)
        for name, amount in request.resources.items():
            mask &= self.resources[name] >= amount
        if request.gpus:
            mask &= (self.gpus == MILLI).sum(axis=1) >= request.gpus
        return np.flatnonzero(mask)

    def room_on(self, index: int, shape: Shape, gpus: tuple[int, ...]) -> bool:
        """Tell whether given GPUs of a node have room for a replica."""
        if len(gpus) != shape.request.gpu_count or any(gpu >= self.gpus.shape[1] for gpu in gpus):
            return False
        if shape.request.share is None:
            return all(self.gpus[index, gpu] == MILLI for gpu in gpus)
        vram = int(share_memory_of(self, shape, np.array([index]))[0])
        return bool(self.gpus[index, gpus[0]] >= shape.request.gpu_milli and self.vram[index, gpus[0]] >= vram)

    def state(self) -> State:
        """Return the contents so far."""
        fills = {index: Fill(+fill.slots, +fill.kept) for index, fill in self.fills.items()}
        return State({index: fill for index, fill in sorted(fills.items()) if fill.slots})


def construct(problem: Problem, start: State, stop: Stop, hint: Places | None = None) -> State:
    """Fill up a state: admit what waits, never touching what is there.

    Parameters
    ----------
    hint : places to try first, for replicas that stand alone.
    """
    field = Field(problem, start)
    for replica, place in sorted((hint or {}).items()):
        _follow(field, replica, place)
    gradient = Gradient(problem)
    for band in problem.spec.bands:
        waiting = [s for s in problem.shapes if problem.spec.band_of(s.workload) == band]
        for batch in _batches(problem, waiting, field.admitted):
            if stop:
                return field.state()
            _place_batch(field, gradient, batch)
    return field.state()


def _follow(field: Field, replica: ReplicaId, place: Place) -> None:
    """Put a replica where a hint says, if it waits, stands alone and fits there."""
    problem = field.problem
    shape = problem.shapes_of_role.get((replica.workload, replica.role))
    index = problem.node_index.get(place.node)
    if shape is None or index is None or replica in problem.context.today.places:
        return
    form = problem.shapes[shape]
    if form.workload.atomic or form.workload.min_replicas > 1 or field.admitted[shape] >= form.demand:
        return
    gpu = place.gpus[0] if form.request.share and place.gpus else None
    if (
        index in field.fitting(form)
        and field.room_on(index, form, place.gpus)
        and not field.blocked(index, shape, gpu)
    ):
        field.put(index, shape, place.gpus)


def _batches(problem: Problem, shapes: list[Shape], admitted: Counter[int]) -> Iterator[list[int]]:
    """Yield lists of shape indices, one per replica, that stand or fall together."""
    joint: dict[str, list[int]] = defaultdict(list)
    single: list[Shape] = []
    for shape in shapes:
        least = max(shape.workload.min_replicas, shape.workload.replicas if shape.workload.atomic else 0)
        if least > 1:
            joint[shape.workload.id] += [shape.index] * (shape.demand - admitted[shape.index])
        else:
            single.append(shape)
    weight = {w: sum(problem.shapes[s].request.gpu_milli for s in batch) for w, batch in joint.items()}
    for workload in sorted(joint, key=lambda w: (-weight[w], w)):
        yield joint[workload]
    for gpu in (True, False):
        part = [s for s in single if bool(s.request.gpu_count) == gpu]
        yield from ([index] for index in _mixture(part, admitted))


def _mixture(shapes: list[Shape], admitted: Counter[int]) -> Iterable[int]:
    """Return shape indices, one per waiting replica, each shape spread evenly over the sequence."""
    keys = []
    for shape in shapes:
        waiting = shape.demand - admitted[shape.index]
        keys += [((position + 0.5) / waiting, shape.index) for position in range(waiting)]
    return [index for _, index in sorted(keys)]


def _place_batch(field: Field, gradient: Gradient, batch: list[int]) -> None:
    """Place replicas; where they need each other and too few fit, take them all off again."""
    done: list[tuple[int, int, tuple[int, ...]]] = []
    if not batch:
        return
    workload = field.problem.shapes[batch[0]].workload
    for models in _accelerator_choices(field, workload):
        for shape in batch:
            found = _best_place(field, gradient, field.problem.shapes[shape], models)
            if found is not None:
                field.put(found[0], shape, found[1])
                done.append((found[0], shape, found[1]))
            elif workload.atomic:
                break
        if _enough(field, workload):
            return
        for index, shape, gpus in reversed(done):
            field.undo(index, shape, gpus)
        done.clear()


def _enough(field: Field, workload: Workload) -> bool:
    shapes = field.problem.shapes_of_workload[workload.id]
    if workload.min_replicas <= 1 and not workload.atomic:
        return True
    admitted = sum(field.admitted[shape] for shape in shapes)
    return admitted >= (workload.replicas if workload.atomic else workload.min_replicas)


def _accelerator_choices(field: Field, workload: Workload) -> list[frozenset[str] | None]:
    """Return the accelerator sets to try; one at a time for a gang that must not mix them (S2.4)."""
    if not workload.atomic or workload.mix == "any" or not any(r.request.gpu_count for r in workload.roles):
        return [None]
    held = {
        field.problem.nodes[index].accelerator or ""
        for index, fill in field.fills.items()
        for slot, count in fill.slots.items()
        if count and field.problem.shapes[slot.shape].workload.id == workload.id
    }
    models = sorted(held or {node.accelerator for node in field.problem.nodes if node.accelerator})
    return [frozenset([model]) for model in models]


def _best_place(
    field: Field, gradient: Gradient, shape: Shape, models: frozenset[str] | None
) -> tuple[int, tuple[int, ...]] | None:
    nodes = field.fitting(shape)
    if models is not None and shape.request.gpu_count:
        nodes = np.array([n for n in nodes if field.problem.nodes[n].accelerator in models], dtype=np.int64)
    if not len(nodes):
        return None
    if shape.request.share:
        return _best_gpu(field, gradient, shape, nodes)
    after = _after_whole(field, nodes, shape.request.gpus)
    score = _increase(field, gradient, nodes, shape.request.cpu, after)
    for position in np.argsort(score, kind="stable"):
        index = int(nodes[position])
        if not field.blocked(index, shape.index, None):
            free = np.flatnonzero(field.gpus[index] == MILLI)[: shape.request.gpus]
            return index, tuple(int(gpu) for gpu in free)
    return None


def _after_whole(field: Field, nodes: Ints, wanted: int) -> Ints:
    after = field.gpus[nodes].copy()
    if wanted:
        untouched = after == MILLI
        after[untouched & (np.cumsum(untouched, axis=1) <= wanted)] = 0
    return after


def _best_gpu(field: Field, gradient: Gradient, shape: Shape, nodes: Ints) -> tuple[int, tuple[int, ...]] | None:
    milli = shape.request.gpu_milli
    vram = share_memory_of(field, shape, nodes)
    rows, gpus = np.nonzero((field.gpus[nodes] >= milli) & (field.vram[nodes] >= vram[:, None]))
    if not len(rows):
        return None
    rows, gpus = _distinct_gpus(field, nodes, rows, gpus)
    after = field.gpus[nodes[rows]].copy()
    after[np.arange(len(rows)), gpus] -= milli
    score = _increase(field, gradient, nodes[rows], shape.request.cpu, after)
    left = after[np.arange(len(rows)), gpus]
    for position in np.lexsort((rows, left, score)):
        index, gpu = int(nodes[rows[position]]), int(gpus[position])
        if not field.blocked(index, shape.index, gpu):
            return index, (gpu,)
    return None


def _distinct_gpus(field: Field, nodes: Ints, rows: Ints, gpus: Ints) -> tuple[Ints, Ints]:
    """Keep one of a node's equally free GPUs, unless rules could tell them apart."""
    if field.guards:
        return rows, gpus
    free = field.gpus[nodes[rows], gpus]
    key = rows * (MILLI + 1) + free
    _, first = np.unique(key, return_index=True)
    first.sort()
    return rows[first], gpus[first]


def share_memory_of(field: Field, shape: Shape, nodes: Ints) -> Ints:
    """Return the GPU memory that a share takes on each of some nodes, in thousandths of a MiB."""
    share = shape.request.share
    if share is None or share.memory is not None:
        return np.full(len(nodes), share_memory(shape.request, 0))
    return np.asarray(share.compute * field.card[nodes])


def _increase(field: Field, gradient: Gradient, nodes: Ints, cpu: int, after: Ints) -> Floats:
    """Return, in buckets, by how much placements raise the fragmentation of their nodes."""
    if not after.shape[1]:
        return np.zeros(len(nodes))
    models = gradient.model_of[nodes]
    before = gradient.amount(models, field.cpu[nodes], field.gpus[nodes])
    return np.asarray(np.floor((gradient.amount(models, field.cpu[nodes] - cpu, after) - before) / BUCKET))


def _card(problem: Problem, node: Node) -> int:
    return problem.spec.accelerators[node.accelerator].memory if node.accelerator else 0


def _guards(problem: Problem) -> list[Guard]:
    found = []
    for policy in problem.spec.policies:
        if policy.enforcement.kind == "hard":
            guard = policy.rule.guard(problem.context.scopes[policy.name])
            if guard is not None:
                found.append(guard)
    return found
