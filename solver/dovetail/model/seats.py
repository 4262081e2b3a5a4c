"""Which GPUs of a node replicas of whole ones take that do not stay where they run."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.model.state import Fill, Slot, slot_of
from dovetail.problem import Problem
from dovetail.spec import Node


def without_kept(problem: Problem, index: int, fill: Fill) -> dict[Slot, int]:
    """Return what a node holds beside what stays on today's place."""
    rest = dict(fill.slots)
    for place, count in fill.kept.items():
        rest[slot_of(problem, index, place)] -= count
    return {slot: count for slot, count in rest.items() if count > 0}


def has_blocks(fill: Fill) -> bool:
    """Tell whether a node holds anything that keeps within an island or a socket of it."""
    return any(slot.block for slot, count in fill.slots.items() if count)


def is_pinned(problem: Problem, index: int, fill: Fill) -> bool:
    """Tell whether it matters which GPUs of a node parts are taken of."""
    node = problem.nodes[index]
    told = bool(problem.spec.asked_inside) and bool(node.islands or node.sockets)
    return told or bool(problem.present.get(index) or problem.layouts[index] or has_blocks(fill))


def whole_gpus(
    problem: Problem, index: int, fill: Fill, cut_first: bool = False
) -> tuple[list[tuple[Slot, tuple[int, ...]]], list[int]]:
    """Return the GPUs of each replica of whole ones that does not stay, and the GPUs that are left.

    Those that keep within the smallest sets choose first, so that what is left of a set serves the wider ones around
    it. GPUs that are not cut today go before others, or after them (`cut_first`), and of what may be anywhere those
    whose island is used up most.
    """
    node, layouts = problem.nodes[index], problem.layouts[index]
    taken = {gpu for place in fill.kept for gpu in place.gpus}
    if is_pinned(problem, index, fill):
        taken |= {slot.gpu for slot in fill.slots if slot.gpu >= 0}
    free = [gpu for gpu in node.healthy_gpus() if gpu not in taken]
    free.sort(key=lambda gpu: ((gpu in layouts) != cut_first, gpu))
    found = []
    for slot in _in_turn(problem, index, fill):
        wanted = problem.shapes[slot.shape].request.gpus
        gpus = _open(node, slot, free)[:wanted]
        found.append((slot, tuple(sorted(gpus))))
        free = [gpu for gpu in free if gpu not in gpus]
    return found, free


def _in_turn(problem: Problem, index: int, fill: Fill) -> Iterator[Slot]:
    rest = without_kept(problem, index, fill)
    whole = [slot for slot in sorted(rest) if problem.shapes[slot.shape].request.gpus]
    for slot in sorted(whole, key=lambda slot: (not slot.block, slot.block.bit_count())):
        yield from [slot] * rest[slot]


def _open(node: Node, slot: Slot, free: list[int]) -> list[int]:
    if slot.block:
        return [gpu for gpu in free if slot.block >> gpu & 1]
    if not node.islands:
        return free
    room = {gpu: sum(other in free for other in island) for island in node.islands for gpu in island}
    return sorted(free, key=room.__getitem__)
