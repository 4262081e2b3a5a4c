"""Held places and gangs before all else: those that the LP over kinds of nodes has, where the LP has them.

A gang of a lower band needs whole nodes together, which are there as long as nothing else is. The LP has told who is
to be there (`cases`) and in which of the outermost domains; the rest of the plan follows on the nodes that are left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor

import numpy as np

from dovetail.engine.construction.construct import place_gang
from dovetail.engine.construction.domains import sums
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.holding import Liked, held_shapes, hold
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.fleet.homes import amounts_of
from dovetail.engine.fleet.sides import NOTHING, Target
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.spec import Workload

_HALF = 0.5


def crews(lp: FleetLp, stop: Stop, *, exact: bool = False) -> State:
    """Return a state with held places and the gangs of which the LP's last solution has at least a half, alone.

    Gangs come first, which find room in fewer ways, unless that leaves none for places.

    Parameters
    ----------
    exact : whether gangs are on as many nodes of each kind as the LP has them on, where they find room there, rather
        than where they span few domains.
    """
    problem = lp.fleet.original
    found = with_held(lp, _with_gangs(lp, State(), stop, exact=exact))
    admitted = found.admitted()
    if all(admitted[shape.index] == shape.demand for shape in held_shapes(problem, hard=True)):
        return found
    return _with_gangs(lp, with_held(lp, State()), stop, exact=exact)


def _with_gangs(lp: FleetLp, state: State, stop: Stop, *, exact: bool) -> State:
    """Return a state with those gangs as well, as far as they find room."""
    problem, values, admitted = lp.fleet.original, lp.values(), lp.admitted()
    outlooks = Outlooks(Field(problem, state))
    targets = list(lp.targets())
    gangs = [w for w in problem.spec.workloads if w.ranked and w.id in lp.fleet.flags]
    for workload in sorted(gangs, key=lambda w: _turn(problem, w)):
        if stop:
            break
        total = lp.fleet.admitted(workload)
        if sum(values[v] * c for v, c in total.terms.items()) >= _HALF * workload.min_replicas:
            liked, only = _liked(lp, workload), None
            upto = _widths(problem, workload, admitted)
            if exact:
                only = _seats(outlooks, workload, targets)
            elif liked is None or not liked.any():
                only = _kinds(lp, workload, targets)
            if only is None or not place_gang(outlooks, workload, liked, only, upto):
                place_gang(outlooks, workload, liked, upto=upto)
    return outlooks.field.state()


def with_held(lp: FleetLp, state: State) -> State:
    """Return a state with the places held that hard policies ask for, on nodes that the LP has no other use for.

    Where it tells of them these are as many of each kind as it has, else nodes that are idle in its solution.
    """
    problem = lp.fleet.original
    if not held_shapes(problem, hard=True):
        return state
    outlooks = Outlooks(Field(problem, state))
    targets = list(lp.targets())
    idle = _idle(lp, targets, state)
    hold(outlooks, hard=True, liked=lambda shape: _told(problem, shape, targets) or [(idle, shape.demand)])
    return outlooks.field.state()


def _told(problem: Problem, shape: Shape, targets: Iterable[Target]) -> list[Liked]:
    """Return where the LP has replicas of a shape, and how many of them there, in whole numbers."""
    found, total, there = list[Liked](), 0.0, 0
    for target in targets:
        total += target.counts.get(shape.index, 0.0)
        if round(total) > there:
            mask = np.zeros(len(problem.nodes), dtype=np.bool_)
            mask[list(target.members)] = True
            found.append((mask, round(total) - there))
            there = round(total)
    return found


def _idle(lp: FleetLp, targets: Iterable[Target], state: State) -> Bools:
    """Return a mask of as many empty nodes of each kind as the LP has no use for."""
    used = Counter[int]()
    for target in targets:
        used[target.kind] += ceil(target.nodes - NOTHING)
    mask = np.zeros(len(lp.fleet.original.nodes), dtype=np.bool_)
    for position, kind in enumerate(lp.fleet.kinds):
        empty = [node for node in kind.members if not state.fill(node).slots]
        mask[empty[: max(0, kind.size - used[position])]] = True
    return mask


def _turn(problem: Problem, workload: Workload) -> tuple[int, int, str]:
    """Return the order of gangs: bands in theirs, within a band the largest first."""
    shapes = (problem.shapes[s] for s in problem.shapes_of_workload[workload.id])
    size = sum(shape.request.gpu_milli * shape.demand for shape in shapes)
    return problem.spec.bands.index(problem.spec.band_of(workload)), -size, workload.id


def _widths(problem: Problem, workload: Workload, admitted: Mapping[int, float]) -> Mapping[int, int]:
    """Return how many replicas of elastic roles an LP has, in whole steps (S2.6)."""
    found = dict[int, int]()
    for shape in problem.shapes_of_workload[workload.id]:
        role = problem.shapes[shape].role
        if role.least is not None:
            steps = floor((admitted.get(shape, 0.0) - role.least) / role.step + NOTHING)
            found[shape] = role.least + max(0, steps) * role.step
    return found


def _liked(lp: FleetLp, workload: Workload) -> Ints | None:
    """Return per node what the LP has in its outermost domain, as far as it tells; None where there are no levels."""
    problem = lp.fleet.original
    if not problem.spec.told_levels:
        return None
    amounts = amounts_of(lp, workload)
    outer = problem.spec.told_levels[0]
    return np.array([round(amounts.get(str(node.domain(outer)), 0.0)) for node in problem.nodes], dtype=np.int64)


def _kinds(lp: FleetLp, workload: Workload, targets: Iterable[Target]) -> Bools:
    """Return a mask of the nodes of kinds that the LP has a workload on, for one of which it tells no domains.

    Elsewhere it might take scarce nodes from those who have no other.
    """
    mask = np.zeros(len(lp.fleet.original.nodes), dtype=np.bool_)
    shapes = lp.fleet.original.shapes_of_workload[workload.id]
    for target in targets:
        if any(target.counts.get(s, 0.0) > NOTHING for s in shapes):
            mask[list(target.members)] = True
    return mask


def _seats(outlooks: Outlooks, workload: Workload, targets: Iterable[Target]) -> Bools:
    """Return a mask of as many nodes as the LP has a workload on, kind by kind."""
    problem = outlooks.field.problem
    mask = np.zeros(len(problem.nodes), dtype=np.bool_)
    for target in targets:
        for shape in problem.shapes_of_workload[workload.id]:
            if (count := target.counts.get(shape, 0.0)) > NOTHING:
                mask[_together(outlooks, target.members, problem.shapes[shape], ceil(count - NOTHING))] = True
    return mask


def _together(outlooks: Outlooks, members: Sequence[int], shape: Shape, count: int) -> Ints:
    """Return nodes with room for so many replicas of a shape, or for all that there is: of few inner domains."""
    nodes = np.array(members, dtype=np.int64)
    room = outlooks.copies(shape, nodes)
    levels = outlooks.field.problem.spec.told_levels
    ids = outlooks.domains[levels[-1]][nodes] if levels else np.zeros(len(nodes), dtype=np.int64)
    in_all = sums(room, np.maximum(ids, 0))[np.maximum(ids, 0)]
    order = np.lexsort((nodes, ids, -in_all))
    before = np.cumsum(room[order]) - room[order]
    return nodes[order][(before < count) & (room[order] > 0)]
