"""Room for what waits of a band where preemptible work of lower bands goes without a place (S5.3).

Where all can be had by moves, nobody is evicted (`clearing`). Else whoever costs least goes: of every node the
cheapest set of victims is looked for that frees enough, and of all nodes the cheapest is taken. Who is on such a node
and may not be evicted moves to another one, where others may be evicted for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np

from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.gates import as_much_as
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver, fewest
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.prices import Price, Toll
from dovetail.engine.construction.victims import NEVER, Eviction, TollOf, Victims
from dovetail.engine.construction.ways import Ways
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.problem import Problem, Shape
from dovetail.progress import Stop
from dovetail.spec import Workload

_AHEAD = 48  # nodes whose victims are known, of those that look cheapest
_TRIES = 8  # nodes that are tried for a replica
_ROUNDS = 2  # for all bands: what gives way to one may make room in a quota for another
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
    field, journal = outlooks.field, Journal(outlooks)
    before = field.turn
    for _ in range(_ROUNDS):
        for band in problem.spec.bands:
            preempting = Preempting(journal, band, pinned, lambda: bool(stop) or over(), budget)
            waiting = _waiting(problem, field, band) if preempting.possible else []
            preempting.expect(waiting)
            for shape in waiting:
                missing = shape.workload.min_replicas - field.admitted[shape.index]
                count = max(1, missing)
                while preempting.place_all(shape.index, count):
                    count = 1
            budget -= preempting.moves
        _let_go(journal, pinned)
    if field.turn == before:
        return state
    found = legalise(problem, field.state())
    found = legalise(problem, construct(problem, found, stop))
    return found if better(problem, found, state, frozenset()) else state


def _let_go(journal: Journal, pinned: frozenset[str]) -> None:
    """Let victims go, the cheapest first, as long as there is more than limits on totals allow."""
    field = journal.field
    guards = [guard for guard in field.gates.totals if guard.above()]
    if not guards:
        return
    victims = Victims(field, max(field.problem.spec.bands) + 1, pinned)
    for leaver in victims.by_price():
        above = [guard.above() for guard in guards]
        if not any(above):
            break
        for each in victims.together(leaver):
            journal.leave(each)
        if any(guard.above() < much for guard, much in zip(guards, above, strict=True)):
            journal.keep()
        else:
            journal.undo()


def _waiting(problem: Problem, field: Field, band: int) -> list[Shape]:
    """Return the shapes of a band that wait and are no gangs, the largest first."""
    own = (shape for shape in problem.shapes if problem.spec.band_of(shape.workload) == band)
    found = [shape for shape in own if _counts_alone(problem, shape.workload) and field.wanted(shape.index) > 0]
    return sorted(found, key=lambda shape: (-shape.request.gpu_milli, shape.index))


def _counts_alone(problem: Problem, workload: Workload) -> bool:
    """Tell whether replicas of a workload count one by one, at least from so many of them on."""
    if workload.atomic or workload.elastic or workload.ranked or workload.holds:
        return False
    return not workload.joint or len(problem.shapes_of_workload[workload.id]) == 1


class Preempting:
    """Places replicas of a band, one after the other, where victims make room.

    Parameters
    ----------
    journal : that of the field; what led to no place is undone there, and what is counted here goes with it.
    pinned : workloads that may not move.
    over : tells when to look no further.
    budget : how many may move.

    `victims` are those that give way to the band.
    """

    def __init__(
        self, journal: Journal, band: int, pinned: frozenset[str], over: Callable[[], bool], budget: float
    ) -> None:
        self._journal, self._outlooks, self._field = journal, journal.outlooks, journal.field
        self._problem = journal.field.problem
        self.victims = Victims(self._field, band, pinned)
        self._budget = budget
        self._moved = Counter[int]()  # by shape
        self._evicted: list[str] = []  # workloads, once for each of their replicas that go for what is placed now
        self._ways = Ways(self._outlooks, pinned, over)
        self._waiting = Counter[Hashable]()  # by form, how many replicas of the band are to be placed
        self._pools: dict[tuple[Hashable, int], _Pool] = {}
        self._reliefs: dict[int, _Pool] = {}
        self._over = over

    @property
    def moves(self) -> int:
        """How many have moved."""
        return self._moved.total()

    @property
    def possible(self) -> bool:
        """Whether anybody gives way to the band."""
        return bool(self.victims.names)

    def expect(self, shapes: Iterable[Shape]) -> None:
        """Tell what is to be placed: what a gang costs that goes for several of it is shared by these."""
        for shape in shapes:
            self._waiting[self._outlooks.form(shape.index)] += self._field.wanted(shape.index)

    def price(self, shape: int, node: int) -> Price | None:
        """Return what it costs to make room for a replica on a node, None where that is not possible.

        Of what counts together only and is on several nodes, it is the part of this node.
        """
        found = self.victims.cheapest(self._problem.shapes[shape], node, self._toll_of(_HOPS))
        return None if found is None else found.price

    def least(self, shape: int) -> Price | None:
        """Return what it costs at the least to make room for a replica by evictions, None where nobody gives way."""
        return self._pool(shape, 0).least() if self.possible else None

    def place_all(self, shape: int, count: int) -> bool:
        """Place so many replicas of a shape, or none, and keep them."""
        done = all(self.place(shape) for _ in range(count))
        if done:
            self._journal.keep()
        else:
            self._journal.undo()
            self._ways.forget()
        return done

    def place(self, shape: int) -> bool:
        """Place a replica where there is room, or where victims make room, in a quota as well."""
        if self._over() or self._field.wanted(shape) <= 0:
            return False
        self._evicted.clear()
        self._ways.forget()
        nodes = np.ones(len(self._problem.nodes), dtype=bool)
        if self._field.room_in_all(shape) > 0:
            found = self._found(shape, nodes, _HOPS)
        else:
            found = self._field.gates.room(shape) == 0 and self._tried(shape, self._relief(shape), nodes, 0)
        if found:
            self._take_note(shape)
        return found

    def _take_note(self, shape: int) -> None:
        """Take note that a replica of a shape was placed, and of whom that hit."""
        for name in set(self._evicted):
            self.victims.prices.hit(name)
            self._journal.enter(partial(self.victims.prices.hit, name, -1))
        self._count(self._waiting, self._outlooks.form(shape), -1)

    def _count(self, counted: Counter[Any], key: Hashable, more: int) -> None:
        """Count so many more of something, until that is undone."""
        counted[key] += more
        self._journal.enter(partial(counted.subtract, {key: more}))

    def _found(self, shape: int, nodes: Bools, hops: int) -> bool:
        return self._journal.place(shape, nodes) or self._tried(shape, self._pool(shape, hops), nodes, hops)

    def _tried(self, shape: int, pool: _Pool, nodes: Bools, hops: int) -> bool:
        """Place a replica on one of some nodes where victims make room, after some tries at the most."""
        evictions = islice(pool.cheapest(nodes), _TRIES)
        return any(self._done(shape, eviction, nodes, hops) for eviction in evictions)

    def _done(self, shape: int, eviction: Eviction, nodes: Bools, hops: int) -> bool:
        """Let some leave a node, place a replica there, and those elsewhere who must go on; else undo it."""
        mark, evicted = self._journal.mark(), len(self._evicted)
        only, others = np.zeros_like(nodes), nodes.copy()
        only[eviction.node], others[eviction.node] = True, False
        gone = list(self._all_of(eviction))
        for leaver in gone:
            self._journal.leave(leaver)
        self._ways.forget()
        self._outlooks.forget()
        done = self._journal.place(shape, only)
        for leaver in self._away(gone) if done else ():
            if not self._settled(leaver, nodes if leaver.again else others, hops):
                done = False
                break
        if not done:
            self._journal.undo(mark)
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

    def _away(self, gone: Sequence[Leaver]) -> Iterator[Leaver]:
        """Put back, of what goes on with fewer, who may be there without the others; yield who is away."""
        parts = defaultdict[str, list[Leaver]](list)
        for leaver in gone:
            workload = self._problem.shapes[leaver.shape].workload
            if workload.joint and leaver.place is not None and fewest(workload) is not None:
                parts[workload.id].append(leaver)
            else:
                yield leaver
        for own in parts.values():
            yield from self._journal.all_back(own)

    def _settled(self, leaver: Leaver, nodes: Bools, hops: int) -> bool:
        """Place a replica elsewhere that left, if it may move; tell whether it may be where it is now."""
        may_move = self.victims.may_move(leaver) and self.moves + leaver.moves <= self._budget
        if may_move and self._journal.place(leaver.shape, nodes):
            self._count(self._moved, leaver.shape, leaver.moves)
            return True
        if self.victims.gives_way(leaver):
            self._evicted.append(self._problem.shapes[leaver.shape].workload.id)
            return True
        self._count(self._moved, leaver.shape, leaver.moves)
        return may_move and hops > 0 and self._found(leaver.shape, nodes, hops - 1)

    def _pool(self, shape: int, hops: int) -> _Pool:
        gates = self._field.gates
        alike = shape if gates.strict(shape) else (self._outlooks.form(shape), gates.apart(shape))
        key = alike, hops
        if key not in self._pools:
            form = self._problem.shapes[shape]
            self._pools[key] = _Pool(self._field, self.victims, form, self._toll_of(hops, shape))
        return self._pools[key]

    def _relief(self, shape: int) -> _Pool:
        """Return the nodes where as much goes as a shape asks for, of what a limit counts that keeps it out."""
        if shape not in self._reliefs:
            form, own, gates = self._problem.shapes[shape], self.victims, self._field.gates
            others = (other for other in self._problem.shapes if other.workload.id in own.names)
            counting = {
                other.index for other in others if gates.relieves(shape, other.index, as_much_as(form, other))
            }

            def toll_of(leaver: Leaver) -> Toll | None:
                gives = leaver.shape in counting and own.gives_way(leaver)
                return own.prices.evicted(own.losing(leaver)) if gives else None

            self._reliefs[shape] = _Pool(self._field, own, form, toll_of, counting)
        return self._reliefs[shape]

    def _sharing(self, gone: Sequence[Leaver], shape: int | None) -> int:
        """Return for how many those go who go together: of a shape that wait and fit in their GPUs, or nodes."""
        if shape is None:
            return len({each.put[0] for each in gone})
        shapes = self._problem.shapes
        freed = sum(shapes[each.shape].request.gpu_milli for each in gone)
        most = freed // max(1, shapes[shape].request.gpu_milli)
        return max(1, min(most, self._waiting[self._outlooks.form(shape)]))

    def _toll_of(self, hops: int, shape: int | None = None) -> TollOf:
        """Return what tells what it costs that a replica leaves, for one of a shape, or for a gang."""
        prices = self.victims.prices

        def toll_of(leaver: Leaver) -> Toll | None:
            if leaver.again or (self.victims.may_move(leaver) and self._ways.follow(leaver, 0) == 0):
                return Toll(prices.moved(leaver))
            toll: Toll | None = None
            if self.victims.gives_way(leaver):
                own = self.victims.losing(leaver)
                toll, sharing = prices.evicted(own), self._sharing(own, shape) if len(own) > 1 else 1
                toll = toll if sharing == 1 else Toll(prices.total([toll]) // sharing)
            if hops and self.victims.may_move(leaver) and (toll is None or not self.victims.lowest(leaver)):
                least = self._pool(leaver.shape, hops - 1).least()  # who is evicted takes the place of others in turn
                moved = None if least is None else Toll(least + prices.moved(leaver))
                toll = min(
                    (each for each in (toll, moved) if each), key=lambda each: prices.total([each]), default=None
                )
            return toll

        return toll_of


_Turn = tuple[int, int]


class _Pool:
    """The nodes that may host a shape, by what it costs to make room there.

    Parameters
    ----------
    toll_of : tells what it costs that a replica leaves, None where it may not.
    shapes : of which those are who leave, for as many GPUs as are asked for whatever is idle; None for any.
    """

    def __init__(
        self, field: Field, victims: Victims, form: Shape, toll_of: TollOf, shapes: Collection[int] | None = None
    ) -> None:
        self._field, self._victims, self._form, self._toll_of = field, victims, form, toll_of
        self._gpus = 0 if shapes is None else form.request.gpu_count
        self._known: list[tuple[Price, int, _Turn, Eviction]] = []  # a heap, with the turn at which a node was seen
        self._vain: set[int] = set()
        hosts = np.flatnonzero(field.hosts(form))
        orders = []
        for alone in (False, True):  # gangs are cheap for many, and dear for one
            dearest = victims.dearest(form.request.gpu_count, alone=alone, shapes=shapes)[hosts]
            order = np.argsort(dearest, kind="stable")
            orders.append(hosts[order[dearest[order] < NEVER]].tolist())
        turns = chain.from_iterable(zip_longest(*orders))
        self._unseen = iter(dict.fromkeys(node for node in turns if node is not None))

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
        """Return who could leave a node at the least cost; one that prices or contents were others of is seen anew.

        So nothing seems cheaper than it is; what has become cheaper shows once it comes first.
        """
        while True:
            while len(self._known) < _AHEAD and (node := next(self._unseen, None)) is not None:
                self._look_at(node)
            if not self._known:
                return None
            _, node, turn, found = self._known[0]
            if turn == self._turn(node) and node not in self._vain:
                return found
            heappop(self._known)
            if node not in self._vain:
                self._look_at(node)

    def _look_at(self, node: int) -> None:
        found = self._victims.cheapest(self._form, node, self._toll_of, self._gpus)
        if found is not None:
            heappush(self._known, (found.price, node, self._turn(node), found))

    def _turn(self, node: int) -> _Turn:
        """Return what is another where a node has changed, or what prices hang on."""
        return int(self._field.touched[node]), self._victims.prices.turn
