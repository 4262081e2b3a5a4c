"""Ways to make room for a replica: who leaves a node for it so that as few as possible move, they and who follows.

What leaves a node needs a place itself. Where it has one at once, it costs its own move; where it has none, also what
making room for it costs. So the moves that a place for a shape costs are a shortest way, searched level by level:
first what one move makes possible, then two.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from dovetail.engine.construction.covers import Covers
from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.leavers import EVERYBODY, MOST_HOPS, Leaver, Leavers, come_back, leave
from dovetail.engine.construction.outlook import NOWHERE
from dovetail.engine.construction.placing import Outlooks, Put

_WAYS = 8  # that are kept for a shape, of those that cost the same, or that many leave by
_ALIKE = 2  # nodes with the same shapes, that more have to leave
_HOMES = 8  # nodes with a place for who leaves, of which an instance must have several where the like leave too
_LOOKED_AT = 40  # nodes, that more have to leave
_WORK_EACH = 100  # nodes that are looked at for each of very many replicas


class Work(NamedTuple):
    """How many nodes are looked at: for one replica, for itself and for all who follow, and for all replicas."""

    one: int
    all: int


THOROUGH: Final = Work(4_000, 40_000)
"""For replicas that others are to move for: whether they can is to be known."""

BRIEF: Final = Work(400, 4_000)
"""Beside patterns, where most that has a way has it soon, and better patterns lead further than the rest of this."""


class Way(NamedTuple):
    """A node, and who leaves it to make room there."""

    node: int
    leavers: tuple[Leaver, ...]

    @property
    def moves(self) -> int:
        """What it costs that these leave, who follows left out."""
        return sum(each.moves for each in self.leavers)


class _Vain:
    """By node, the most moves that ways were looked for in vain with, and the turn of the node then.

    Parameters
    ----------
    nodes : how many there are.
    """

    def __init__(self, nodes: int) -> None:
        self.turns, self.moves = np.full(nodes, -1, dtype=np.int32), np.zeros(nodes, dtype=np.int8)


class Ways:
    """The ways to make room in a field as it is; `forget` them once it is another.

    Parameters
    ----------
    pinned : workloads that may not move.
    over : tells when to look no further.
    replicas : for about how many room is to be made, with how much `work`.
    """

    def __init__(
        self,
        outlooks: Outlooks,
        pinned: frozenset[str],
        over: Callable[[], bool] = lambda: False,
        replicas: int = 0,
        work: Work = THOROUGH,
    ) -> None:
        self._outlooks, self._field = outlooks, outlooks.field
        self._problem = outlooks.field.problem
        self._over = over
        self._leavers = Leavers(outlooks.field, pinned)
        self._covers = Covers(outlooks.field, self._leavers)
        self._known: dict[tuple[Hashable, int], list[Way]] = {}
        self._homes: dict[Hashable, Ints] = {}  # also by those who are off their nodes for a while
        self._vain = defaultdict[Hashable, _Vain](partial(_Vain, len(self._problem.nodes)))
        self._hops = 0  # from the first who leaves to the one that is looked at now
        self._sets: dict[tuple[int, int], tuple[int, tuple[Leaver, ...] | None]] = {}
        self._old: set[tuple[Hashable, int]] = set()  # of what is known, what was found before others moved
        self._stuck: dict[Hashable, int] = {}  # the most moves with which no place was found, though one seemed open
        self._away: dict[int, tuple[Hashable, ...]] = {}  # by shape, the domains that those left who are away
        self._off: list[Put] = []  # these themselves
        self._most, self._left_in_all = work.one, max(work.all, _WORK_EACH * replicas)
        self._left = self._granted = self._most  # for the replica at hand

    def leavers(self, node: int) -> list[Leaver]:
        """Return who may leave a node."""
        return self._leavers.of(node)

    def forget(self) -> None:
        """Forget all ways, as the field has changed."""
        self._known.clear()
        self._old.clear()
        self._homes.clear()

    def begin(self) -> None:
        """Begin to look for another replica."""
        self._left_in_all -= self._granted - self._left
        self._left = self._granted = max(0, min(self._most, self._left_in_all))

    def settle(self, changed: Container[int]) -> None:
        """Forget what a place that was found has changed: only what is looked for in vain counts for all replicas.

        Ways on nodes that are as they were are gone again, for the like of it.

        Parameters
        ----------
        changed : the nodes that hold something else now.
        """
        self._left = self._granted
        left = {key: [way for way in ways if way.node not in changed] for key, ways in self._known.items()}
        self._known = {key: ways for key, ways in left.items() if ways}
        self._old = set(self._known)
        self._homes.clear()

    def stale(self, shape: int, moves: int) -> bool:
        """Tell whether ways were found before others moved, and forget those that were, as one led to nothing."""
        key = self._key(shape, self._away.get(shape, ())), moves
        if key not in self._old:
            return False
        self._old.discard(key)
        self._known.pop(key, None)
        return True

    def known(self, leaver: Leaver, moves: int) -> Sequence[Way]:
        """Return the ways that were found at exactly so many moves for one that has left its node."""
        return self._known.get((self._key(leaver.shape, self._away_from(leaver)), moves), ())

    def learn(self, leaver: Leaver, moves: int) -> None:
        """Count on it that one who left, and who is like it, finds no place at so many moves: ways are others then.

        Ranks do not tell all that rules object to.
        """
        key = self._key(leaver.shape, self._away_from(leaver))
        self._stuck[key] = max(moves, self._stuck.get(key, -1))
        self._known.clear()
        self._old.clear()

    def find(self, shape: int, most: int) -> int | None:
        """Return the fewest moves that a place for a replica costs, None where that is more than some."""
        return next((moves for moves in range(1, most + 1) if self.more(shape, moves)), None)

    def more(self, shape: int, moves: int) -> Sequence[Way]:
        """Return the ways at so many moves to make room on nodes that no way at fewer is known to lead to."""
        key = self._key(shape, self._away.get(shape, ()))
        if (key, moves) not in self._known:
            fewer = (way for less in range(1, moves) for way in self._known.get((key, less), ()))
            nodes = {way.node for way in fewer}
            self._known[key, moves] = []  # no way leads through itself
            self._known[key, moves] = self._search(shape, moves, nodes)
        return self._known[key, moves]

    def wide(self, shape: int) -> Sequence[Way]:
        """Return ways by which any number leave a node, likeliest first.

        Each who leaves has a place by itself. Where one may take that of the next, as rules look at who is where, or
        as instances are scarce, a way comes last.
        """
        fills, found, alike = self._field.fills, list[Way](), Counter[frozenset[int]]()
        for node in self._nodes(shape, EVERYBODY):
            if self._over() or alike.total() >= _LOOKED_AT:
                break
            kind = frozenset(slot.shape for slot in fills[node].slots) if node in fills else frozenset()
            if alike[kind] >= _ALIKE:
                continue
            alike[kind] += 1
            if leavers := self._all_of(shape, node):
                found.append(Way(node, leavers))

        def order(way: Way) -> tuple[int, bool, int, int]:
            tied, sure = sum(map(self._tied, way.leavers)), self._all_have_places(way.leavers)
            return tied, not sure, way.moves, way.node

        return sorted(found, key=order)[:_WAYS]

    def _all_of(self, shape: int, node: int) -> tuple[Leaver, ...] | None:
        """Return who leaves a node for a replica, looked for anew where it has changed, or other places are taken."""
        turn, (seen, leavers) = int(self._field.touched[node]), self._sets.get((shape, node), (-1, None))
        if seen != turn or (leavers and not self._all_have_places(leavers)):
            leavers = self._look_for_all(shape, node)
            self._sets[shape, node] = turn, leavers
        return leavers

    def _all_have_places(self, leavers: Sequence[Leaver]) -> bool:
        """Tell whether some who leave have places at once, of instances each one of its own."""
        return self._cost(leavers, sum(each.moves for each in leavers)) is not None

    def _look_for_all(self, shape: int, node: int) -> tuple[Leaver, ...] | None:
        """Return who leaves a node for a replica, of those who have another place.

        Tied ones only if they must, and those whose instances are scarce elsewhere.
        """
        form = self._problem.shapes[shape]
        for tied, ahead in ((False, _HOMES - 1), (False, 0), (True, 0)):
            if found := self._covers.many(form, node, partial(self._goes, tied=tied, ahead=ahead)):
                return found
        return None

    def _goes(self, leaver: Leaver, *, tied: bool, ahead: int) -> bool:
        """Tell whether one who leaves has a place at once, where so many of the like leave too."""
        return (tied or not self._tied(leaver)) and self.follow(leaver, 0, ahead) == 0

    def _tied(self, leaver: Leaver) -> bool:
        """Tell whether a rule looks at who else is where."""
        return bool(self._field.gates.strict(leaver.shape))

    def worth(self, shape: int, moves: int) -> Mapping[int, int]:
        """Return what places must be worth, in moves and by shape, for one for a shape to be worth so many.

        Whoever leaves for it must be worth as much with who follows, or the fewest moves that its own place costs.
        """
        found: dict[int, int] = {}
        self._left = THOROUGH.all
        self._raise(shape, moves, found)
        return found

    def _raise(self, shape: int, moves: int, found: dict[int, int]) -> None:
        if found.get(shape, 0) >= moves:
            return
        found[shape] = moves
        if moves <= 1:
            return
        for node in self._nodes(shape, moves - 1):
            if self._left <= 0 or self._over():
                return
            self._left -= 1
            for cover in self._covers.few(self._problem.shapes[shape], node, moves - 1):
                for each in cover:
                    short = moves - sum(1 + found.get(other.shape, 0) for other in cover)
                    if short <= 0:
                        break
                    more = self.follow(each, short)
                    self._raise(
                        each.shape, min(found.get(each.shape, 0) + short, short if more is None else more), found
                    )

    def costs(self, shape: int, most: int) -> int:
        """Return the fewest moves that a place costs, 0 where there is one, at most one more than some."""
        if (self._outlooks.ranks(shape) != NOWHERE).any():
            return 0
        self._left = THOROUGH.all
        found = self.find(shape, most)
        return most + 1 if found is None else found

    def _key(self, shape: int, away: tuple[Hashable, ...]) -> Hashable:
        """Return what decides the ways to make room for a shape, where its own left some domains."""
        gates = self._field.gates
        if gates.strict(shape):
            return shape, away
        return (self._outlooks.form(shape), gates.apart(shape))

    def _away_from(self, leaver: Leaver) -> tuple[Hashable, ...]:
        """Return the domains that those of a leaver's shape are away from once it has left."""
        return (*self._away.get(leaver.shape, ()), self._field.gates.domains(leaver.shape, leaver.put[0], None))

    def _search(self, shape: int, moves: int, known: Container[int]) -> list[Way]:
        """Return ways at so many moves, on nodes that are not known.

        A node to which no way led is not looked at again until it changes: what its replicas could do elsewhere may
        have changed, but mostly there is less room than before.
        """
        found: list[Way] = []
        vain = self._vain[self._key(shape, self._away.get(shape, ()))]
        for node in self._nodes(shape, moves, vain):
            if self._left <= 0 or self._over():
                break
            if node in known:
                continue
            self._left -= 1
            covers = self._covers.few(self._problem.shapes[shape], node, moves)
            way = next((Way(node, cover) for cover in covers if self._cost(cover, moves) is not None), None)
            if way is not None:
                found.append(way)
            elif self._left > 0:
                vain.turns[node], vain.moves[node] = self._field.touched[node], moves
            if len(found) >= _WAYS:
                break
        return found

    def _cost(self, leavers: Sequence[Leaver], most: int) -> int | None:
        """Return the moves that it costs that some replicas leave, None where that is more than some."""
        total, ahead = sum(each.moves for each in leavers), Counter[str]()
        for each in leavers:
            if total > most:
                return None
            more = self.follow(each, most - total, ahead[each.profile])
            ahead[each.profile] += not each.again
            if more is None:
                return None
            total += more
        return total if total <= most else None

    def follow(self, leaver: Leaver, most: int, ahead: int = 0) -> int | None:
        """Return the fewest moves that another place for a replica costs; rules do not count it where it was.

        Parameters
        ----------
        ahead : how many others on instances of its profile have a place already, on a node each.
        """
        if leaver.again:
            return 0
        if self._hops >= MOST_HOPS:
            return None
        strict, before = bool(self._field.gates.strict(leaver.shape)), self._away.get(leaver.shape, ())
        self._hops += 1
        if strict:
            leave(self._field, leaver)
            self._away[leaver.shape] = self._away_from(leaver)
            self._off.append(leaver.put)
        try:
            key = self._key(leaver.shape, self._away.get(leaver.shape, ()))
            if most <= self._stuck.get(key, -1):
                return None
            homes = self._homes_of(leaver.shape, key)
            if not leaver.profile or strict:  # else another GPU of its node will do
                homes = homes[homes != leaver.put[0]]
            taken = ahead if leaver.profile else 0  # other nodes have room for many
            return 0 if len(homes) > taken else self.find(leaver.shape, most)
        finally:
            self._hops -= 1
            if strict:
                come_back(self._field, leaver)
                self._away[leaver.shape] = before
                self._off.pop()

    def _homes_of(self, shape: int, key: Hashable) -> Ints:
        """Return the first nodes with a place for a shape, as the field is now, some off their nodes."""
        now = key, tuple(self._off)
        if now not in self._homes:
            self._homes[now] = np.flatnonzero(self._outlooks.ranks(shape) != NOWHERE)[:_HOMES]
        return self._homes[now]

    # Nodes and who may leave them.

    def _nodes(self, shape: int, moves: int, vain: _Vain | None = None) -> list[int]:
        """Return the nodes on which so many moves may make room, those first that lack the least.

        Parameters
        ----------
        vain : where that was looked for already, as long as a node has not changed since.
        """
        field, form = self._field, self._problem.shapes[shape]
        most = self._leavers.most()
        may = field.hosts(form) & ~field.gates.crowded(shape)
        if vain is not None:
            may &= (vain.turns != field.touched) | (vain.moves < moves)
        nodes = np.flatnonzero(may)
        rank = min(moves, EVERYBODY)
        left = [self._leavers.free(name)[nodes] for name in self._leavers.names]
        *asked, gpus = self._leavers.asked(shape)
        fits = np.ones(len(nodes), dtype=bool)
        for position, (free, amount) in enumerate(zip(left, asked, strict=True)):
            if amount:
                fits &= free + most[nodes, rank, position] >= amount
        idle = field.untouched[nodes]
        if form.request.gpu_count and not form.request.partial:
            fits &= idle + most[nodes, rank, len(self._leavers.names)] >= gpus
        lack = np.maximum(0, gpus - idle)
        tight = (field.cpu[nodes] < form.request.cpu) | (field.memory[nodes] < form.request.memory)
        order = np.lexsort((nodes, tight, lack))
        return [int(node) for node in nodes[order][fits[order]]]
