"""Room for what waits of a band where preemptible work of lower bands goes without a place (S5.3).

Where all can be had by moves, nobody is evicted (`clearing`). Else whoever costs least goes: of every node the
cheapest set of victims is looked for that frees enough, and of all nodes the cheapest is taken. Who is on such a node
and may not be evicted moves to another one, where others may be evicted for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from itertools import islice

import numpy as np

from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.victims import NEVER, Eviction, Price, Toll, TollOf, Victims
from dovetail.engine.construction.ways import Ways
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop

_AHEAD = 48  # nodes whose victims are known, of those that look cheapest
_TRIES = 8  # nodes that are tried for a replica
_HOPS = 1  # of who may not be evicted to where others are for it


def with_preemption(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with what waits and stands alone in place of victims, where that is a better plan.

    Parameters
    ----------
    state : one that breaks no hard policy.
    over : tells when time has run out.
    """
    if not problem.context.today.preemptible or stop or over():
        return state
    outlooks = Outlooks(Field(problem, state))
    budget, pinned = allowance(problem, state)
    journal, placed = Journal(outlooks), False
    for band in problem.spec.bands:
        preempting = Preempting(journal, band, pinned, lambda: bool(stop) or over(), budget)
        for shape in _waiting(problem, outlooks.field, band) if preempting.possible else ():
            while preempting.place(shape.index):
                journal.keep()
                placed = True
        budget -= preempting.moves
    if not placed:
        return state
    found = legalise(problem, outlooks.field.state())
    found = legalise(problem, construct(problem, found, stop))
    return found if better(problem, found, state, frozenset()) else state


def _waiting(problem: Problem, field: Field, band: int) -> list[Shape]:
    """Return the shapes of a band that wait and stand alone, those first that are worth most for their GPUs."""
    found = [
        shape
        for shape in problem.shapes
        if problem.spec.band_of(shape.workload) == band
        and not (shape.workload.joint or shape.workload.ranked or shape.workload.holds)
        and field.room_in_all(shape.index) > 0
    ]
    return sorted(found, key=lambda shape: (-shape.request.gpu_milli, shape.index))


class Preempting:
    """Places replicas of a band, one after the other, where victims make room.

    Parameters
    ----------
    journal : that of the field; what led to no place is undone there.
    pinned : workloads that may not move.
    over : tells when to look no further.
    budget : how many may move.

    `victims` are those that give way to the band; `moves` is how many have moved.
    """

    def __init__(
        self, journal: Journal, band: int, pinned: frozenset[str], over: Callable[[], bool], budget: float
    ) -> None:
        self._journal, self._outlooks, self._field = journal, journal.outlooks, journal.field
        self._problem = journal.field.problem
        self.victims = Victims(self._field, band, pinned)
        self._budget, self.moves = budget, 0
        self._evicted: list[str] = []  # workloads, once for each of their replicas that go for what is placed now
        self._ways = Ways(self._outlooks, pinned, over)
        self._pools: dict[tuple[Hashable, int], _Pool] = {}
        self._over = over

    @property
    def possible(self) -> bool:
        """Whether anybody gives way to the band."""
        return bool(self.victims.names)

    def price(self, shape: int, node: int) -> Price | None:
        """Return what it costs to make room for a replica on a node, None where that is not possible.

        Of what counts together only and is on several nodes, it is the part of this node.
        """
        found = self.victims.cheapest(self._problem.shapes[shape], node, self._shared_toll_of)
        return None if found is None else found.price

    def least(self, shape: int) -> Price | None:
        """Return what it costs at the least to make room for a replica by evictions, None where nobody gives way."""
        return self._pool(shape, 0).least() if self.possible else None

    def place(self, shape: int) -> bool:
        """Place a replica where there is room, or where victims make room."""
        if self._over() or self._field.room_in_all(shape) <= 0:
            return False
        self._evicted.clear()
        found = self._found(shape, np.ones(len(self._problem.nodes), dtype=bool), _HOPS)
        self.victims.prices.hit |= set(self._evicted)
        return found

    def _found(self, shape: int, nodes: Bools, hops: int) -> bool:
        if self._journal.place(shape, nodes):
            return True
        evictions = islice(self._pool(shape, hops).cheapest(nodes), _TRIES)
        return any(self._done(shape, eviction, nodes, hops) for eviction in evictions)

    def _done(self, shape: int, eviction: Eviction, nodes: Bools, hops: int) -> bool:
        """Let some leave a node, place a replica there, and those elsewhere who must go on; else undo it."""
        mark, moves, evicted = self._journal.mark(), self.moves, len(self._evicted)
        only, others = np.zeros_like(nodes), nodes.copy()
        only[eviction.node], others[eviction.node] = True, False
        gone = list(self._all_of(eviction))
        for leaver in gone:
            self._journal.leave(leaver)
        self._ways.forget()
        self._outlooks.forget()
        done = self._journal.place(shape, only)
        for leaver in gone if done else ():
            if not self._settled(leaver, nodes if leaver.again else others, hops):
                done = False
                break
        if not done:
            self._journal.undo(mark)
            self.moves = moves
            del self._evicted[evicted:]
            self._ways.forget()
        return done

    def _all_of(self, eviction: Eviction) -> Iterator[Leaver]:
        """Yield who leaves a node, and who goes with them elsewhere."""
        joint = set[str]()
        for leaver in eviction.leavers:
            workload = self._problem.shapes[leaver.shape].workload
            if not workload.joint:
                yield leaver
            elif workload.id not in joint:
                joint.add(workload.id)
                yield from self.victims.together(leaver)

    def _settled(self, leaver: Leaver, nodes: Bools, hops: int) -> bool:
        """Place a replica elsewhere that left, if it may move; tell whether it may be where it is now."""
        may_move = self.victims.may_move(leaver) and self.moves + leaver.moves <= self._budget
        if may_move and self._journal.place(leaver.shape, nodes):
            self.moves += leaver.moves
            return True
        if self.victims.gives_way(leaver):
            self._evicted.append(self._problem.shapes[leaver.shape].workload.id)
            return True
        self.moves += leaver.moves
        return may_move and hops > 0 and self._found(leaver.shape, nodes, hops - 1)

    def _pool(self, shape: int, hops: int) -> _Pool:
        key = self._outlooks.form(shape), hops
        if key not in self._pools:
            self._pools[key] = _Pool(self._field, self.victims, self._problem.shapes[shape], self._toll_of(hops))
        return self._pools[key]

    def _toll_of(self, hops: int) -> TollOf:
        prices = self.victims.prices

        def toll_of(leaver: Leaver) -> Toll | None:
            if leaver.again or (self.victims.may_move(leaver) and self._ways.follow(leaver, 0) == 0):
                return Toll(prices.moved(leaver))
            if self.victims.gives_way(leaver):
                return prices.evicted(self.victims.together(leaver))
            if hops and self.victims.may_move(leaver):
                least = self._pool(leaver.shape, hops - 1).least()
                return None if least is None else Toll(least + prices.moved(leaver))
            return None

        return toll_of

    def _shared_toll_of(self, leaver: Leaver) -> Toll | None:
        toll = self._toll_of(_HOPS)(leaver)
        if toll is None or not self.victims.gives_way(leaver):
            return toll
        nodes = len({each.put[0] for each in self.victims.together(leaver)})
        return Toll((toll.price + self.victims.prices.evicts * bool(toll.evicts)) // nodes)


class _Pool:
    """The nodes that may host a shape, by what it costs to make room there.

    Parameters
    ----------
    toll_of : tells what it costs that a replica leaves, None where it may not.
    """

    def __init__(self, field: Field, victims: Victims, form: Shape, toll_of: TollOf) -> None:
        self._field, self._victims, self._form, self._toll_of = field, victims, form, toll_of
        self._known: list[tuple[Price, int, int, Eviction]] = []  # a heap, with the turn at which a node was seen
        self._vain: set[int] = set()
        hosts = np.flatnonzero(field.hosts(form))
        dearest = victims.dearest(form.request.gpu_count)[hosts]
        order = np.argsort(dearest, kind="stable")
        self._unseen = iter(hosts[order[dearest[order] < NEVER]].tolist())

    def cheapest(self, nodes: Bools) -> Iterator[Eviction]:
        """Yield who could leave which of some nodes, the cheapest first; a node that was in vain is left alone."""
        aside = []
        try:
            while (found := self._best()) is not None:
                if nodes[found.node]:
                    yield found
                    self._vain.add(found.node)
                else:
                    aside.append(heappop(self._known))
        finally:
            for each in aside:
                heappush(self._known, each)

    def least(self) -> Price | None:
        """Return what the cheapest costs, None where there is no way."""
        found = self._best()
        return None if found is None else found.price

    def _best(self) -> Eviction | None:
        """Return who could leave a node at the least cost, nodes that have changed looked at anew."""
        while True:
            while len(self._known) < _AHEAD and (node := next(self._unseen, None)) is not None:
                self._look_at(node)
            if not self._known:
                return None
            _, node, turn, found = self._known[0]
            if turn == self._field.touched[node] and node not in self._vain:
                return found
            heappop(self._known)
            if node not in self._vain:
                self._look_at(node)

    def _look_at(self, node: int) -> None:
        found = self._victims.cheapest(self._form, node, self._toll_of)
        if found is not None:
            heappush(self._known, (found.price, node, int(self._field.touched[node]), found))
