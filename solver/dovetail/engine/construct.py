"""A good start in seconds: replicas one by one, each where it spoils least, all hard rules kept (E3).

Bands come in order; within a band what is all-or-nothing first, largest first, then replicas with GPUs in an even
mixture of shapes (a mixture leaves fewer odd remainders than any sorted order), then those without.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from dovetail.engine.field import Field
from dovetail.engine.fragmentation import Gradient
from dovetail.engine.outlook import Outlook
from dovetail.engine.state import State
from dovetail.placement import Place, Places
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.spec import ReplicaId, Workload


def construct(problem: Problem, start: State, stop: Stop, hint: Places | None = None) -> State:
    """Fill up a state: admit what waits, never touching what is there.

    Parameters
    ----------
    hint : places to try first, for replicas that stand alone.
    """
    field = Field(problem, start)
    for replica, place in sorted((hint or {}).items()):
        _follow(field, replica, place)
    outlooks = Outlooks(field)
    for band in problem.spec.bands:
        waiting = [s for s in problem.shapes if problem.spec.band_of(s.workload) == band]
        for batch in _batches(problem, waiting, field.admitted):
            if stop:
                return field.state()
            _place_batch(outlooks, batch)
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
    if field.room_on(index, form, place.gpus) and not field.blocked(index, shape, gpu):
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


def _place_batch(outlooks: Outlooks, batch: list[int]) -> None:
    """Place replicas; where they need each other and too few fit, take them all off again."""
    field = outlooks.field
    done: list[tuple[int, int, tuple[int, ...]]] = []
    if not batch:
        return
    workload = field.problem.shapes[batch[0]].workload
    for models in _accelerator_choices(field, workload):
        for shape in batch:
            found = outlooks.best(shape, models)
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


class Outlooks:
    """The outlook of every shape that was asked for, over one field."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self._gradient = Gradient(field.problem)
        self._models = np.array([node.accelerator or "" for node in field.problem.nodes])
        self._of: dict[int, Outlook] = {}

    def best(self, shape: int, models: frozenset[str] | None) -> tuple[int, tuple[int, ...]] | None:
        """Return node and GPUs where a replica spoils least and no hard rule bars it, None if there are none."""
        form = self.field.problem.shapes[shape]
        if shape not in self._of:
            self._of[shape] = Outlook(self.field, self._gradient, form)
        limited = models is not None and form.request.gpu_count
        accepted = np.isin(self._models, sorted(models)) if limited and models else None
        for index, gpus in self._of[shape].places(accepted):
            if not self.field.blocked(index, shape, gpus[0] if form.request.share else None):
                return index, gpus
        return None
