"""Nodes filled as they are wished to be, as far as hard rules let them, the rest by construction (E3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dovetail.engine.construct import fill_band
from dovetail.engine.field import Field
from dovetail.engine.patterns import Pattern
from dovetail.engine.placing import Outlooks
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop

_Wish = tuple[int, int, tuple[int, ...], int]  # node, shape, GPUs, count


def filled(problem: Problem, state: State, wished: Iterable[tuple[int, Pattern]], stop: Stop) -> State:
    """Return a state with patterns on some nodes, filled up with what else fits.

    Parameters
    ----------
    state : what is on all other nodes.
    wished : nodes, each with what it is to hold.
    """
    field = Field(problem, state)
    _grant(field, [wish for node, pattern in wished for wish in _wishes(problem, node, pattern)], stop)
    outlooks = Outlooks(field)
    for band in problem.spec.bands:
        fill_band(outlooks, band, stop)
    return field.state()


def _wishes(problem: Problem, node: int, pattern: Pattern) -> Iterator[_Wish]:
    """Yield a node's contents after a pattern; what takes whole GPUs gets those that no share is on."""
    healthy = problem.nodes[node].healthy_gpus()
    shared = {slot.gpu for slot, _ in pattern if slot.gpu >= 0}
    free = iter(gpu for position, gpu in enumerate(healthy) if position not in shared)
    for slot, count in pattern:
        if slot.gpu >= 0:
            yield node, slot.shape, (healthy[slot.gpu],), count
        elif gpus := problem.shapes[slot.shape].request.gpus:
            for _ in range(count):
                yield node, slot.shape, tuple(next(free) for _ in range(gpus)), 1
        else:
            yield node, slot.shape, (), count


def _grant(field: Field, wishes: list[_Wish], stop: Stop) -> None:
    """Put what is wished for where it is; what a hard rule keeps off for now waits until others are placed."""
    more = True
    while wishes and more and not stop:
        more, left = False, []
        for node, shape, gpus, count in wishes:
            done = _put(field, node, shape, gpus, count)
            more = more or done > 0
            if done < count:
                left.append((node, shape, gpus, count - done))
        wishes = left


def _put(field: Field, node: int, shape: int, gpus: tuple[int, ...], count: int) -> int:
    """Put as many replicas as are asked for, fit and keep hard rules; return how many."""
    form = field.problem.shapes[shape]
    for done in range(count):
        blocked = field.blocked(node, shape, gpus[0] if form.request.share else None)
        if blocked or field.wanted(shape) <= 0 or not field.room_on(node, form, gpus):
            return done
        field.put(node, shape, gpus)
    return count
