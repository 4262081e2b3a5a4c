"""Places held free (`reserve`, S4.7): for hard policies before anything else, all in one domain where they ask so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dovetail.engine.construction.domains import sums
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.placing import Outlooks
from dovetail.model.score import hard_policies
from dovetail.problem import Problem, Shape
from dovetail.rules.reserve import PlacesGuard

Liked = tuple[Bools, int]  # a mask of nodes, and how many places are to be on them


def held_shapes(problem: Problem, *, hard: bool) -> list[Shape]:
    """Return the shapes of places that hard policies hold, or those of others."""
    demanded = hard_policies(problem)
    held = (shape for shape in problem.shapes if shape.workload.holds)
    return [shape for shape in held if (shape.workload.holds in demanded) == hard]


def hold(outlooks: Outlooks, *, hard: bool, liked: Callable[[Shape], Sequence[Liked]] = lambda _: ()) -> None:
    """Hold the places free that policies ask for and nobody holds yet, as far as there is room.

    Parameters
    ----------
    hard : whether for hard policies, or for the others.
    liked : tells where to try first.
    """
    for shape in held_shapes(outlooks.field.problem, hard=hard):
        if outlooks.field.wanted(shape.index):
            _hold(outlooks, shape, liked(shape))


def _hold(outlooks: Outlooks, shape: Shape, liked: Sequence[Liked]) -> None:
    """Hold places of one policy; where one domain has to have them all, in one that has no more room than it must."""
    field, wanted = outlooks.field, outlooks.field.wanted(shape.index)
    guards = (g for g in field.gates.strict(shape.index) if isinstance(g, PlacesGuard) and g.within is not None)
    guard = next(guards, None)
    if guard is None or guard.held.total():  # in the latter case there is but one domain
        for nodes, many in liked:
            outlooks.place(shape.index, min(many, field.wanted(shape.index)), nodes=nodes)
        outlooks.place(shape.index, field.wanted(shape.index))
        return
    most, best = 0, None
    for nodes, room in _domains(outlooks, shape, guard, liked):
        if room <= most:  # domains with too little room come last, the largest first
            break
        puts = outlooks.place(shape.index, wanted, nodes=nodes)
        if len(puts) == wanted:
            return
        if len(puts) > most:
            most, best = len(puts), nodes
        outlooks.undo([shape.index], puts)
    if best is not None:
        outlooks.place(shape.index, wanted, nodes=best)


def _domains(
    outlooks: Outlooks, shape: Shape, guard: PlacesGuard, liked: Sequence[Liked]
) -> Iterator[tuple[Bools, int]]:
    """Yield the nodes of each domain in the order to try, with at least as many places as it has room for."""
    nodes, wanted = outlooks.field.problem.nodes, outlooks.field.wanted(shape.index)
    room = outlooks.copies(shape, np.arange(len(nodes)))
    numbers: dict[str | None, int] = {None: -1}
    paths = (guard.domain(node) for node in nodes)
    ids = np.fromiter((numbers.setdefault(path, len(numbers) - 1) for path in paths), dtype=np.int64)
    in_all = sums(room, ids)
    fond = sum((sums(np.where(mask, room, 0), ids) for mask, _ in liked), np.zeros_like(in_all))
    counted = np.flatnonzero(in_all).tolist()
    for number in sorted(counted, key=lambda n: _turn(int(in_all[n]), bool(fond[n] >= wanted), wanted)):
        yield ids == number, int(in_all[number])


def _turn(room: int, liked: bool, wanted: int) -> tuple[bool, bool, int]:
    """Return the order of domains: liked ones that have room for all with the least room, then too small ones."""
    return room < wanted, not liked, room if room >= wanted else -room
