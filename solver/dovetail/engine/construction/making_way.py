"""Room that gangs leave: one that could be elsewhere makes way for work that may only be where it is.

Clearing moves replicas one by one, and what counts together only is never one of them (`clearing`). So what lost its
node, and has to be on nodes of one kind, waits as long as gangs are there that might as well be on others. A gang is
taken off, what waits takes what it needs of its nodes, and nodes are vacated for the gang as for any that waits
(`vacating`); on those that are left of its own it stays. Vacating leaves gangs where they are too, so one of them
makes way likewise for a gang that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

import numpy as np

from dovetail.engine.construction.clearing import allowance, makes_room_for
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.vacating import Vacating, gangs_that_wait
from dovetail.model.legal import without_shapes
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.objectives.disruption import lost_with_all
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.spec import Workload

_SETS = 6  # sets of nodes that are tried for each gang
_VAIN = 12, 8  # gangs in a row that led to nothing, where single replicas wait and where gangs do
_FOR_EACH = 4  # of these for one gang that waits
_CROWD = 48  # others without a place, for whom room is made where that gang goes


def with_gangs_making_way(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with work that waits where gangs are that can be elsewhere, where that is a better plan.

    For gangs before single replicas; those first that lose the least work by it.

    Parameters
    ----------
    state : one that breaks no hard policy.
    over : tells when time has run out.
    """
    if not _gangs(problem, state):
        return state
    state = _for_gangs(problem, state, stop, lambda: bool(stop) or over())
    return _for_singles(problem, state, stop, over)


def _for_gangs(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with gangs that wait where others are that can be elsewhere, where that is a better plan."""
    vain = 0
    for waiting in gangs_that_wait(problem, state):
        field = Field(problem, state)
        needs = [problem.shapes[shape] for shape in problem.shapes_of_workload[waiting.id]]
        hosts = np.logical_or.reduce([field.hosts(shape) for shape in needs])
        others = (gang for gang in _gangs(problem, state) if np.any(_nodes_of(problem, state, gang) & hosts))
        for other in islice(others, _FOR_EACH):
            if over() or vain >= _VAIN[1]:
                return state
            band = min(map(problem.spec.band_of, (waiting, other)))
            begun = without_shapes(state, problem.shapes_of_workload[other.id])
            vacating = Vacating(problem, begun, band, over, _SETS, _CROWD)
            vain += 1
            if not (vacating.place(waiting) and vacating.place(other)):
                continue
            found = vacating.filled_up(stop)
            if better(problem, found, state, frozenset()):
                vain, state = 0, found
                break
    return state


def _for_singles(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with single replicas that wait where gangs are that can be elsewhere, where that is better."""
    vain, beside = 0, Field(problem, state)
    for gang in _gangs(problem, state):
        own = _nodes_of(problem, state, gang)
        waiting = [shape for shape in _waiting(beside) if np.any(beside.hosts(problem.shapes[shape]) & own)]
        if not waiting:
            continue
        if stop or over() or vain >= _VAIN[0]:
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
    vacating = Vacating(problem, begun, problem.spec.band_of(gang), lambda: bool(stop) or over(), _SETS, _CROWD)
    if not (vacating.bar(waiting, own) and vacating.place_all([gang])):
        return None
    return vacating.filled_up(stop)
