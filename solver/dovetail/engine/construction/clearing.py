"""Room for what waits among what runs: as few replicas as will do leave a node for others that have room for them.

Construction never touches what runs. So what may only be on a few nodes stays out although others could leave these,
and what lost its node finds parts of many, none of them large enough.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import inf

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.leavers import MOST_HOPS, MOST_MOVES, Leaver, come_back, leave
from dovetail.engine.construction.placing import Outlooks, Told
from dovetail.engine.construction.ways import THOROUGH, Way, Ways, Work
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop

_VAIN, _VAIN_EACH = 400, 12  # ways that are tried for replicas that find no place, for all or each of very many
_VAIN_ONE = 40  # ways that are tried in vain for a replica, before many leave for it, and for these
_VAIN_WIDE = 40  # ways that many leave by, for all replicas that find no place


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
    clearing = Clearing.of(problem, state, lambda: bool(stop) or over())
    for band in problem.spec.bands:
        clearing.clear(band, lambda: bool(stop) or over())
    return clearing.field.state()


def makes_room_for(shape: Shape) -> bool:
    """Tell whether others make way for single replicas of a shape: not where it serves a rate, of any worth."""
    workload = shape.workload
    return bool(shape.request.gpu_count) and not (workload.joint or workload.holds or workload.asks_rate)


def make_room(
    outlooks: Outlooks, lacking: Mapping[int, int], stop: Stop, moves: float = 0, work: Work = THOROUGH
) -> set[int]:
    """Place what waits where some can make way and be elsewhere; return the nodes that they left.

    Parameters
    ----------
    lacking : how many replicas of each shape wait.
    moves : how many of those who make way may be on today's places.
    work : how much to look for.
    """
    if not lacking:
        return set()
    clearing = Clearing(outlooks, Ways(outlooks, frozenset(), lambda: bool(stop), work=work), moves + 1)
    for shape, short in lacking.items():
        for _ in range(short):
            if stop or not clearing.place(shape):
                break
    return clearing.left


def allowance(problem: Problem, state: State) -> tuple[float, frozenset[str]]:
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


class Clearing:
    """Makes some of what runs leave nodes of a field, and what these displace in turn.

    Parameters
    ----------
    ways : those of its field.
    budget : how many may move.
    patience : how many ways are tried in vain for what finds no place.

    `outlooks` are those of its field, and `left` the nodes that any have left.
    """

    def __init__(self, outlooks: Outlooks, ways: Ways, budget: float, patience: int = _VAIN) -> None:
        self.outlooks, self.field = outlooks, outlooks.field
        self._ways, self._budget = ways, budget
        self._patience, self._wide_patience = patience, _VAIN_WIDE
        self._vain = self._vain_wide = 0  # ways that were tried in vain for what is to be placed now
        self._most_vain = patience
        self._hops = 0
        self._done: list[Told | Leaver] = []
        self.left: set[int] = set()

    @property
    def done(self) -> Sequence[Told | Leaver]:
        """Who was put where, and who left, for what was placed last."""
        return self._done

    @classmethod
    def of(cls, problem: Problem, state: State, over: Callable[[], bool], replicas: int = 0) -> Clearing:
        """Return one for what runs in a state, of which as many may move as hard policies let move.

        Parameters
        ----------
        replicas : for about how many room is to be made.
        """
        budget, pinned = allowance(problem, state)
        outlooks = Outlooks(Field(problem, state))
        ways = Ways(outlooks, pinned, over, replicas)
        return cls(outlooks, ways, budget, max(_VAIN, _VAIN_EACH * replicas))

    def clear(self, band: int, over: Callable[[], bool]) -> None:
        """Place what waits of a band by itself and asks for GPUs, as far as room can be made; first who was hit."""
        problem = self.field.problem
        self._ways.forget()  # others may have come meanwhile
        for shape in sorted(problem.shapes, key=lambda shape: not problem.lost[shape.index]):
            if makes_room_for(shape) and problem.spec.band_of(shape.workload) == band:
                while not over() and self.place(shape.index):
                    pass

    def place(self, shape: int) -> bool:
        """Place a replica of a shape where there is room, or where there is once others have left."""
        if self.field.room_in_all(shape) <= 0:
            return False
        self._begin()
        return self._found(shape) and self._settle()

    def relocate(self, leavers: Sequence[Leaver]) -> bool:
        """Place all of some replicas elsewhere than they are, or none, where there is room or room can be made."""
        self._begin()
        for leaver in leavers:
            self._leave(leaver)
        self._ways.forget()
        if self._spent() <= self._budget and all(self._found(leaver.shape) for leaver in leavers):
            return self._settle()
        self._undo(0)
        self._ways.forget()
        return False

    def leavers(self, node: int) -> list[Leaver]:
        """Return who may leave a node."""
        return self._ways.leavers(node)

    def _spent(self, mark: int = 0) -> int:
        """Return the moves of what was done since a mark."""
        return sum(each.moves for each in self._done[mark:] if isinstance(each, Leaver))

    def _begin(self) -> None:
        self._done.clear()
        self._ways.begin()
        self._patience -= self._vain
        self._wide_patience -= self._vain_wide
        self._vain = self._vain_wide = 0

    def _settle(self) -> bool:
        """Keep what was done last; what was tried in vain before does not count."""
        self._vain = self._vain_wide = 0
        self._budget -= self._spent()
        self.left |= {each.put[0] for each in self._done if isinstance(each, Leaver)}
        self.outlooks.forget()
        self._ways.settle({each.put[0] if isinstance(each, Leaver) else each[0] for each in self._done})
        return True

    def _found(self, shape: int) -> bool:
        """Place a replica where there is room, or where it can be made."""
        most = int(min(MOST_MOVES, self._budget - self._spent()))
        return self._put(shape, self._everywhere()) or self._made(shape, most)

    def _made(self, shape: int, most: int) -> bool:
        """Make room for a replica by the fewest moves that do, and place it."""
        self._most_vain = min(self._patience, self._vain + _VAIN_ONE)
        for moves in range(1, most + 1):
            if self._went(shape, moves):
                return True
        return self._vacated(shape)

    def _went(self, shape: int, moves: int) -> bool:
        """Go one of the ways at so many moves, which are others once one has shown who finds no place."""
        while self._vain < self._most_vain:
            ways, vain = self._ways.more(shape, moves), self._vain
            for way in ways:
                if self._gone(shape, way, moves, self._everywhere()):
                    return True
                if self._ways.stale(shape, moves):
                    self._vain = vain
                if self._ways.more(shape, moves) is not ways:
                    break
            else:
                return False
        return False

    def _vacated(self, shape: int) -> bool:
        """Place a replica on a node that many leave for it, each for another one or by a few moves more."""
        for way in self._ways.wide(shape) if self._vain_wide < self._wide_patience else ():
            self._most_vain = min(self._patience, self._vain + _VAIN_ONE)
            most = int(min(way.moves + MOST_MOVES, self._budget - self._spent()))
            if self._gone(shape, way, most, self._everywhere()):
                return True
            self._vain_wide += 1
        return False

    def _gone(self, shape: int, way: Way, most: int, nodes: Bools) -> bool:
        """Go one way with at most so many moves, on some nodes; tell whether all found a place, else undo it.

        The node itself is left to those who come, and closed to those who are looking for another one, but for GPUs
        that are cut or set anew. A node that others have left meanwhile is another than the way was found for, who
        leaves it perhaps gone.
        """
        left_before = any(isinstance(each, Leaver) and each.put[0] == way.node for each in self._done)
        if left_before or not nodes[way.node] or self._vain >= self._most_vain or self._hops >= MOST_HOPS:
            return False
        mark, left = len(self._done), most - way.moves
        only, others = np.zeros_like(nodes), nodes.copy()
        only[way.node], others[way.node] = True, False
        for leaver in way.leavers:
            self._leave(leaver)
        self._hops += 1
        done = left >= 0 and self._put(shape, only) and self._settled(way.leavers, left, nodes, others)
        self._hops -= 1
        if done:
            return True
        self._undo(mark)
        self._vain += 1
        return False

    def _settled(self, leavers: Sequence[Leaver], most: int, nodes: Bools, others: Bools) -> bool:
        """Place replicas that left, those last that no node has room for; tell whether so many moves are enough."""
        homeless = []
        for leaver in sorted(leavers, key=lambda leaver: not leaver.again):
            if not self._put(leaver.shape, nodes if leaver.profile or leaver.again else others):
                homeless.append(leaver)
        for leaver in homeless:
            before = len(self._done)
            ways = (way for moves in range(1, most + 1) for way in self._ways.known(leaver, moves))
            if not any(self._gone(leaver.shape, way, most, others) for way in ways):
                if self._hops == 1:  # with all nodes to choose from but those of the way
                    self._ways.learn(leaver, most)
                return False
            most -= self._spent(before)
        return True

    def _everywhere(self) -> Bools:
        return np.ones(len(self.field.problem.nodes), dtype=bool)

    def _put(self, shape: int, nodes: Bools) -> bool:
        self.outlooks.reopen(shape)
        found = self.outlooks.place(shape, 1, nodes=nodes)
        self._done += self.outlooks.told(found)
        return bool(found)

    def _leave(self, leaver: Leaver) -> None:
        leave(self.field, leaver)
        self._done.append(leaver)

    def _undo(self, mark: int) -> None:
        """Undo, last first, all that was done since a mark."""
        while len(self._done) > mark:
            last = self._done.pop()
            if isinstance(last, Leaver):
                come_back(self.field, last)
            else:
                self.field.undo(*last)
        self.outlooks.forget()
