"""Room for what waits among what runs: as few replicas as will do leave a node for others that have room for them.

Construction never touches what runs. So what may only be on a few nodes stays out although others could leave these,
and what lost its node finds parts of many, none of them large enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.problem import Present, Problem
from dovetail.progress import Stop

_NODES = 24  # that are tried for a replica
_MOST_LEAVE = 8  # replicas that one may make leave
_VAIN = 200  # nodes that are tried in vain, for all shapes together


def with_room(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return what `cleared` makes of a state that breaks no hard policy, where that is a better plan."""
    found = legalise(problem, cleared(problem, state, stop, over))
    return found if better(problem, found, state, frozenset()) else state


def cleared(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with what waits placed where some of what runs can make way and be elsewhere.

    Parameters
    ----------
    over : tells when time has run out.
    """
    clearing = _Clearing(Outlooks(Field(problem, state)), *_budget(problem, state))
    for band in problem.spec.bands:
        for shape in problem.shapes:
            alone = not (shape.workload.joint or shape.workload.holds)
            if alone and shape.request.gpu_count and problem.spec.band_of(shape.workload) == band:
                while not (stop or over()) and clearing.place(shape.index):
                    pass
    return clearing.field.state()


def _budget(problem: Problem, state: State) -> tuple[float, frozenset[str]]:
    """Return how many more replicas may move as far as hard policies limit that, and the workloads that may not."""
    gone = sum((problem.running - Counter(state.kept())).values())
    most = inf
    pinned: set[str] = set()
    for policy in problem.spec.policies:
        if policy.enforcement.kind == "hard":
            claims = policy.rule.claims(problem.context.scopes[policy.name])
            pinned |= {workload.id for workload in claims.stays}
            most = most if claims.moves is None else min(most, claims.moves - gone)
    return most, frozenset(pinned)


@dataclass(frozen=True, slots=True)
class _Runs:
    """A replica that runs on a node and stays there so far."""

    node: int
    place: Present

    @property
    def put(self) -> Put:
        return self.node, self.place.shape, self.place.gpus


class _Clearing:
    """Makes some of what runs leave nodes of a field.

    Parameters
    ----------
    budget : how many may move.
    pinned : workloads that may not.
    """

    def __init__(self, outlooks: Outlooks, budget: float, pinned: frozenset[str]) -> None:
        self._outlooks, self.field = outlooks, outlooks.field
        self._problem = self.field.problem
        self._budget, self._pinned = budget, pinned
        self._vain = 0
        self._homeless: set[int] = set()
        self._barren: dict[int, set[int]] = {}

    def place(self, shape: int) -> bool:
        """Place a replica of a shape where there is room, or where there is once others have left."""
        if self.field.room_in_all(shape) <= 0:
            return False
        if self._outlooks.place(shape, 1):
            return True
        tried = 0
        for node in self._candidates(shape):
            if tried >= _NODES or self._vain >= _VAIN or self._budget <= 0:
                break
            ways = [way for way in self._ways(shape, node) if len(way) <= self._budget]
            tried += bool(ways)
            if any(self._swapped(shape, node, way) for way in ways):
                return True
            self._barren.setdefault(shape, set()).add(node)
        self._vain += tried
        return False

    def _candidates(self, shape: int) -> Sequence[int]:
        """Return nodes that a shape may be on, those first that lack the least for it."""
        field, form = self.field, self._problem.shapes[shape]
        may = field.hosts(form) & ~field.gates.crowded(shape)
        may[sorted(self._barren.get(shape, ()))] = False
        nodes = np.array([n for n in np.flatnonzero(may).tolist() if n in self._problem.present], dtype=np.int64)
        lack = np.maximum(0, form.request.gpu_count - field.untouched[nodes])
        tight = (field.cpu[nodes] < form.request.cpu) | (field.memory[nodes] < form.request.memory)
        return [int(node) for node in nodes[np.lexsort((nodes, tight, lack))]]

    def _ways(self, shape: int, node: int) -> Iterator[list[_Runs]]:
        """Yield sets of replicas that may leave a node, single ones first, small before large; then several."""
        runs = sorted(self._may_leave(node), key=lambda each: self._size(each.place.shape))
        runs = [each for each in runs if each.place.shape not in self._homeless and each.place.shape != shape]
        lack = self._problem.shapes[shape].request.gpu_count - int(self.field.untouched[node])
        seen: set[int] = set()
        for each in runs:
            if each.place.shape not in seen and self._problem.shapes[each.place.shape].request.gpu_count >= lack:
                seen.add(each.place.shape)
                yield [each]
        for many in range(2, min(_MOST_LEAVE, len(runs)) + 1):
            if sum(self._problem.shapes[each.place.shape].request.gpu_count for each in runs[-many:]) >= lack:
                yield runs[-many:]
                break

    def _size(self, shape: int) -> tuple[int, int, int]:
        request = self._problem.shapes[shape].request
        return request.gpu_milli, request.cpu, shape

    def _may_leave(self, node: int) -> Iterator[_Runs]:
        fill = self.field.fills.get(node)
        for place, count in fill.kept.items() if fill is not None else ():
            workload = self._problem.shapes[place.shape].workload
            free = workload.movable and not workload.joint and not workload.ranked
            if free and not place.instance and workload.id not in self._pinned:
                for _ in range(count):
                    yield _Runs(node, place)

    def _swapped(self, shape: int, node: int, leaving: Sequence[_Runs]) -> bool:
        """Take replicas off a node, put another one there and them elsewhere; tell whether all found a place."""
        outlooks = self._outlooks
        self._keep(leaving, -1)
        outlooks.undo([shape], [each.put for each in leaving])
        only = np.zeros(len(self._problem.nodes), dtype=bool)
        only[node] = True
        moved: list[Put] = []
        for each in leaving:
            outlooks.reopen(each.place.shape)
            found = outlooks.place(each.place.shape, 1, nodes=~only)
            if not found:
                self._homeless.add(each.place.shape)
                break
            moved += found
        put = outlooks.place(shape, 1, nodes=only) if len(moved) == len(leaving) else []
        if put:
            self._budget -= len(leaving)
            outlooks.forget()
            return True
        outlooks.undo([shape, *(each.place.shape for each in leaving)], [*moved, *put])
        for each in leaving:
            self.field.put(*each.put)
        self._keep(leaving, 1)
        return False

    def _keep(self, leaving: Sequence[_Runs], count: int) -> None:
        for each in leaving:
            self.field.fills[each.node].kept[each.place] += count
