"""Groups that lie within one island, or at one socket: which GPUs of a node they take (S2.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dovetail.engine.construction.blocks import Blocks
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.placing import Put
from dovetail.spec.workload import MILLI

if TYPE_CHECKING:
    from dovetail.engine.construction.gangs import Unit


def gpus_of(field: Field, unit: Unit) -> int:
    """Return how many GPUs a unit takes, 0 where any of it does not take whole ones."""
    shapes = field.problem.shapes
    requests = [(shapes[shape].request, count) for shape, count in unit.sizes().items()]
    return 0 if any(not request.gpus for request, _ in requests) else sum(r.gpus * n for r, n in requests)


def units_in(field: Field, unit: Unit, nodes: Ints) -> Ints:
    """Return for some nodes how many units their untouched GPUs have room for, each in one part of its level."""
    return field.blocks.room((unit.inside,), gpus_of(field, unit), field.gpus[nodes] == MILLI, nodes)


def seat(field: Field, unit: Unit, node: int, free: Sequence[int] | None = None) -> list[Put]:
    """Add a unit to a node, in the part with least to spare that takes it; add nothing where none does.

    Parameters
    ----------
    free : the untouched GPUs that it may take, None for all of the node.
    """
    if free is None:
        free = [gpu for gpu, left in enumerate(field.gpus[node].tolist()) if left == MILLI]
    if unit.shape is not None:
        return _seat_one(field, unit.shape, node, free)
    parts = field.problem.nodes[node].blocks((unit.inside,))
    rooms = sorted(([gpu for gpu in free if mask >> gpu & 1] for mask in parts), key=len)
    needed = gpus_of(field, unit)
    for room in rooms:
        if len(room) >= needed and (puts := _seat_all(field, unit, node, room)):
            return puts
    return []


def _seat_all(field: Field, unit: Unit, node: int, room: Sequence[int]) -> list[Put]:
    """Add all parts of a unit within some GPUs, or nothing."""
    puts: list[Put] = []
    left = list(room)
    for part in [part for part, count in unit.parts for _ in range(count)]:
        found = seat(field, part, node, left)
        if not found:
            for index, shape, gpus in reversed(puts):
                field.undo(index, shape, gpus)
            return []
        puts += found
        taken = {gpu for _, _, gpus in found for gpu in gpus}
        left = [gpu for gpu in left if gpu not in taken]
    return puts


def _seat_one(field: Field, shape: int, node: int, free: Sequence[int]) -> list[Put]:
    form = field.problem.shapes[shape]
    gpus = Blocks.choose(field.problem.nodes[node], form.request, free, 1)
    if not field.room_in_all(shape) or not field.room_on(node, form, gpus) or field.blocked(node, shape, None):
        return []
    field.put(node, shape, gpus)
    return [(node, shape, gpus)]
