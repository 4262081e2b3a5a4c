"""A good start in seconds: replicas one by one, each where it spoils least, all hard rules kept (E3).

Bands come in order; within a band what is all-or-nothing first, largest first, then replicas with GPUs in an even
mixture of shapes (a mixture leaves fewer odd remainders than any sorted order), then those without.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from dovetail.engine.field import Field
from dovetail.engine.fragmentation import Gradient
from dovetail.engine.outlook import Outlook
from dovetail.model.state import State
from dovetail.placement import Place, Places
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.spec import ReplicaId, Workload

Put = tuple[int, int, tuple[int, ...]]  # node, shape, GPUs
Choices = list[frozenset[str] | None]  # accelerators that may be used together, one set after the other; None: all


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
        for batch in _batches(field, waiting):
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
    if form.workload.atomic or form.workload.min_replicas > 1 or field.wanted(shape) <= 0:
        return
    gpu = place.gpus[0] if form.request.share and place.gpus else None
    if field.room_on(index, form, place.gpus) and not field.blocked(index, shape, gpu):
        field.put(index, shape, place.gpus)


def _batches(field: Field, shapes: list[Shape]) -> Iterator[list[int]]:
    """Yield lists of shape indices, one per replica, that stand or fall together."""
    joint: dict[str, list[int]] = defaultdict(list)
    single: list[Shape] = []
    for shape in shapes:
        if max(shape.workload.min_replicas, shape.workload.replicas if shape.workload.atomic else 0) > 1:
            joint[shape.workload.id] += [shape.index] * field.wanted(shape.index)
        else:
            single.append(shape)
    weight = {w: sum(field.problem.shapes[s].request.gpu_milli for s in batch) for w, batch in joint.items()}
    for workload in sorted(joint, key=lambda w: (-weight[w], w)):
        yield joint[workload]
    for gpu in (True, False):
        yield from ([index] for index in _mixture(field, [s for s in single if bool(s.request.gpu_count) == gpu]))


def _mixture(field: Field, shapes: list[Shape]) -> Iterable[int]:
    """Return shape indices, one per waiting replica, each shape spread evenly over the sequence."""
    keys = []
    for shape in shapes:
        waiting = field.wanted(shape.index)
        keys += [((position + 0.5) / waiting, shape.index) for position in range(waiting)]
    return [index for _, index in sorted(keys)]


def _place_batch(outlooks: Outlooks, batch: list[int]) -> None:
    """Place replicas; where they need each other and too few fit, take them all off again."""
    if not batch:
        return
    field = outlooks.field
    workload = field.problem.shapes[batch[0]].workload
    done: list[Put] = []
    for part, models in _parts(field, workload, batch):
        done += _place_part(outlooks, part, models, whole=workload.atomic)
    if not _enough(field, workload):
        outlooks.undo(batch, done)


def _place_part(outlooks: Outlooks, part: list[int], choices: Choices, *, whole: bool) -> list[Put]:
    """Place what fits of some replicas; where only the `whole` will do, with the first models that do for all."""
    put: list[Put] = []
    for models in choices:
        for shape in part:
            found = outlooks.best(shape, models)
            if found is not None:
                outlooks.field.put(found[0], shape, found[1])
                put.append((found[0], shape, found[1]))
            elif whole:
                break
        if not whole or len(put) == len(part):
            break
        outlooks.undo(part, put)
        put = []
    return put


def _enough(field: Field, workload: Workload) -> bool:
    shapes = field.problem.shapes_of_workload[workload.id]
    if workload.min_replicas <= 1 and not workload.atomic:
        return True
    admitted = sum(field.admitted[shape] for shape in shapes)
    return admitted >= (workload.replicas if workload.atomic else workload.min_replicas)


def _parts(field: Field, workload: Workload, batch: list[int]) -> list[tuple[list[int], Choices]]:
    """Return a batch cut up into what may not mix accelerators (S2.4), each part with the models to try.

    The roles with least choice come first, so that the others do not take their places.
    """
    if not workload.atomic or workload.mix == "any":
        return [(batch, [None])]
    if workload.mix == "none":
        return [(batch, _choices(field, field.problem.shapes_of_workload[workload.id]))]
    roles = [([shape] * batch.count(shape), _choices(field, (shape,))) for shape in dict.fromkeys(batch)]
    return sorted(roles, key=lambda role: len(role[1]))


def _choices(field: Field, shapes: tuple[int, ...]) -> Choices:
    """Return the models to try for shapes that may not mix: the one they have, or each that might do."""
    problem = field.problem
    users = {shape for shape in shapes if problem.shapes[shape].request.gpu_count}
    if not users:
        return [None]
    if any(field.admitted[shape] for shape in users):
        nodes = [
            problem.nodes[index]
            for index, fill in field.fills.items()
            if any(count and slot.shape in users for slot, count in fill.slots.items())
        ]
    else:
        forms = [problem.shapes[shape] for shape in users]
        makes = frozenset[int]().union(*(problem.makes.hosting(form.workload, form.role) for form in forms))
        nodes = [problem.makes.members[make][0] for make in makes]
    return [frozenset([model]) for model in sorted({node.accelerator for node in nodes if node.accelerator})]


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
        return self._of[shape].best(np.isin(self._models, sorted(models)) if limited and models else None)

    def undo(self, asked: list[int], puts: list[Put]) -> None:
        """Take off what was put last; what shapes that were not asked since then remember is as true as before."""
        for index, shape, gpus in reversed(puts):
            self.field.undo(index, shape, gpus)
        for shape in set(asked) & self._of.keys():
            self._of[shape].reopen()
