"""Room that gangs leave: one that could be elsewhere makes way for single replicas that may only be where it is.

Clearing moves replicas one by one, and what counts together only is never one of them (`clearing`). So what lost its
node, and has to be on nodes of one kind, waits as long as gangs are there that might as well be on others. A gang is
taken off, what waits takes what it needs of its nodes, and nodes are vacated for the gang as for any that waits
(`vacating`); on those that are left of its own it stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dovetail.engine.construction.clearing import allowance, makes_room_for
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.vacating import Vacating
from dovetail.model.legal import legalise, without_shapes
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.objectives.disruption import lost_with_all
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.spec import Workload

_SETS = 6  # sets of nodes that are tried for each gang
_VAIN = 12  # gangs in a row that led to nothing


def with_gangs_making_way(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with work that waits where gangs are that can be elsewhere, where that is a better plan.

    Those first that lose the least work by it.

    Parameters
    ----------
    state : one that breaks no hard policy.
    over : tells when time has run out.
    """
    gangs = _gangs(problem, state)
    if not gangs:
        return state
    vain, beside = 0, Field(problem, state)
    for gang in gangs:
        own = _nodes_of(problem, state, gang)
        waiting = [shape for shape in _waiting(beside) if np.any(beside.hosts(problem.shapes[shape]) & own)]
        if not waiting:
            continue
        if stop or over() or vain >= _VAIN:
            break
        # As far as quotas let it beside the gang.
        most = {shape: room for shape in waiting if (room := beside.room_in_all(shape))}
        begun = without_shapes(state, problem.shapes_of_workload[gang.id])
        found = _elsewhere(problem, begun, gang, most, own, stop, over) if most else None
        vain += 1
        if found is not None and better(problem, found, state, frozenset()):
            vain, state, beside = 0, found, Field(problem, found)
    return state


def _waiting(field: Field) -> Sequence[int]:
    """Return the shapes that wait and that others make way for, the highest band first, in it the largest."""
    problem = field.problem
    bands = {shape.index: problem.spec.band_of(shape.workload) for shape in problem.shapes if makes_room_for(shape)}
    found = (shape for shape in bands if field.wanted(shape) > 0)
    return sorted(found, key=lambda shape: (-bands[shape], -problem.shapes[shape].request.gpu_milli, shape))


def _gangs(problem: Problem, state: State) -> Sequence[Workload]:
    """Return the gangs that are there and may move, those first that lose the least work by it."""
    _, pinned = allowance(problem, state)
    admitted, running = state.totals().admitted, problem.context.running
    costs = {}
    for workload in problem.spec.workloads:
        there = any(admitted[shape] for shape in problem.shapes_of_workload.get(workload.id, ()))
        if there and workload.atomic and workload.replicas > 1 and workload.movable and workload.id not in pinned:
            lost = lost_with_all(problem.spec, workload, running[workload.id]) if workload.id in running else 0
            costs[workload.id] = lost, workload.replicas, workload.id
    return [problem.spec.by_id[name] for name in sorted(costs, key=costs.__getitem__)]


def _nodes_of(problem: Problem, state: State, gang: Workload) -> Bools:
    """Return the nodes that a gang is on."""
    found = np.zeros(len(problem.nodes), dtype=np.bool_)
    for shape in problem.shapes_of_workload[gang.id]:
        found[list(state.totals().where.get(shape, {}))] = True
    return found


def _elsewhere(
    problem: Problem,
    begun: State,
    gang: Workload,
    waiting: Mapping[int, int],
    own: Bools,
    stop: Stop,
    over: Callable[[], bool],
) -> State | None:
    """Return a state with a gang elsewhere, and what waits where it was; None where either has no place there.

    Parameters
    ----------
    begun : a state without the gang.
    waiting : how many of each shape may take its nodes.
    own : the nodes that it is on.
    """
    vacating = Vacating(problem, begun, problem.spec.band_of(gang), lambda: bool(stop) or over(), _SETS)
    if not (vacating.bar(waiting, own) and vacating.place_all([gang])):
        return None
    return legalise(problem, construct(problem, legalise(problem, vacating.field.state()), stop))
