"""Replicas that ask for the same change places among alike nodes, so that more of those that run stay in place."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping

from dovetail.engine.contents.patterns import Pattern
from dovetail.model.state import Slot
from dovetail.problem import Problem
from dovetail.problem.shapes import request_attributes
from dovetail.proof.kinds import Kind


def exchanged(
    anew: Mapping[int, Pattern], running: Mapping[int, Counter[int]], alike: Callable[[int], Hashable]
) -> dict[int, Pattern]:
    """Return what nodes are to hold with as many as possible of those who run there; nowhere fewer than before.

    Parameters
    ----------
    anew : nodes of one lot, each with what it is to hold.
    running : who runs on each of them, per shape.
    alike : tells shapes apart that may not take each other's places.
    """
    pool: dict[Hashable, Counter[int]] = defaultdict(Counter)
    for pattern in anew.values():
        for slot, count in pattern:
            pool[alike(slot.shape)][slot.shape] += count
    given: dict[int, Counter[Slot]] = {node: Counter() for node in anew}
    own = {node: Counter(running[node]) for node in anew}
    left = [(node, slot, count) for node, pattern in anew.items() for slot, count in pattern]

    def share_out(wanted: Callable[[int, Slot], Iterable[tuple[int, int]]]) -> None:
        """Give places to those who are wanted there, as far as there are any left."""
        rest = []
        for node, slot, count in left:
            there = pool[alike(slot.shape)]
            for shape, most in wanted(node, slot):
                taken = min(count, most, there[shape])
                given[node][Slot(shape, slot.gpu, slot.profile)] += taken
                own[node][shape] -= taken
                there[shape] -= taken
                count -= taken
            rest += [(node, slot, count)] if count else []
        left[:] = rest

    share_out(lambda node, slot: [(slot.shape, own[node][slot.shape])])
    share_out(lambda node, slot: [(s, n) for s, n in own[node].items() if alike(s) == alike(slot.shape)])
    share_out(lambda _, slot: pool[alike(slot.shape)].items())
    return {node: tuple(sorted((+slots).items())) for node, slots in given.items()}


def alike_on(problem: Problem, kind: Kind) -> Callable[[int], Hashable]:
    """Return what tells shapes apart on a kind of nodes: what they ask for, and who may share a node or a GPU."""
    known: dict[int, Hashable] = {}
    sides = [(frozenset(side.shapes), side) for side in kind.sides]

    def of(shape: int) -> Hashable:
        if shape not in known:
            form = problem.shapes[shape]
            cards = tuple((shape in c.shapes, c.loads.get(shape)) for _, side in sides for c in side.cards)
            there = tuple((shape in shapes, side.profiles.get(shape)) for shapes, side in sides)
            tenant = form.workload.tenant if form.request.partial else None
            alone = shape if shape in kind.most else None
            asked = tuple(request_attributes(form.request).values())
            known[shape] = asked, there, cards, tenant, alone
        return known[shape]

    return of
