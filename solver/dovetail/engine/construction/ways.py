"""Ways to make room for a replica: who leaves a node for it so that as few as possible move, they and who follows.

What leaves a node needs a place itself. Where it has one at once, it costs its own move; where it has none, also what
making room for it costs. So the moves that a place for a shape costs are a shortest way, searched level by level:
first what one move makes possible, then two.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.leavers import MOST_MOVES, Leaver, Leavers, come_back, leave
from dovetail.engine.construction.outlook import NOWHERE
from dovetail.engine.construction.placing import Outlooks
from dovetail.problem import Shape
from dovetail.rules.guards import ApartGuard
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.workload import MILLI

_WAYS = 8  # that are kept for a shape, of those that cost the same
_COVERS = 24  # sets of replicas that are looked at on one node
_ANEW = 2  # replicas that came anew, and leave beside others that move
_WORK = 4_000  # nodes that are looked at for one replica, for itself and for all who follow
_ALL_WORK, _WORK_EACH = 40_000, 100  # and for all replicas, or for each of very many


class Way(NamedTuple):
    """A node, and who leaves it to make room there."""

    node: int
    leavers: tuple[Leaver, ...]


class _Item(NamedTuple):
    """Replicas that leave together, what that costs at the least, and what it frees in each dimension."""

    moves: int
    freed: tuple[int, ...]
    leavers: tuple[Leaver, ...]


class Ways:
    """The ways to make room in a field as it is; `forget` them once it is another.

    Parameters
    ----------
    pinned : workloads that may not move.
    over : tells when to look no further.
    replicas : for about how many room is to be made.
    """

    def __init__(
        self,
        outlooks: Outlooks,
        pinned: frozenset[str],
        over: Callable[[], bool] = lambda: False,
        replicas: int = 0,
    ) -> None:
        self._outlooks, self._field = outlooks, outlooks.field
        self._problem = outlooks.field.problem
        self._over = over
        self._leavers = Leavers(outlooks.field, pinned)
        self._known: dict[tuple[Hashable, int], list[Way]] = {}
        self._homes: dict[Hashable, Ints] = {}
        self._away: dict[int, tuple[Hashable, ...]] = {}  # by shape, the domains that those left who are away
        self._left, self._left_in_all = _WORK, max(_ALL_WORK, _WORK_EACH * replicas)

    def leavers(self, node: int) -> list[Leaver]:
        """Return who may leave a node."""
        return self._leavers.of(node)

    def forget(self) -> None:
        """Forget all ways, as the field has changed."""
        self._known.clear()
        self._homes.clear()

    def begin(self) -> None:
        """Begin to look for another replica."""
        self._left_in_all -= _WORK - self._left
        self._left = max(0, min(_WORK, self._left_in_all))

    def known(self, leaver: Leaver, moves: int) -> Sequence[Way]:
        """Return the ways that were found at exactly so many moves for one that has left its node."""
        return self._known.get((self._key(leaver.shape, self._away_from(leaver)), moves), ())

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

    def worth(self, shape: int, moves: int) -> Mapping[int, int]:
        """Return what places must be worth, in moves and by shape, for one for a shape to be worth so many.

        Whoever leaves for it must be worth as much with who follows, or the fewest moves that its own place costs.
        """
        found: dict[int, int] = {}
        self._left = _ALL_WORK
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
            for cover in self._covers(self._problem.shapes[shape], node, moves - 1):
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
        self._left = _ALL_WORK
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
        """Return ways at so many moves, on nodes that are not known."""
        found: list[Way] = []
        for node in self._nodes(shape, moves):
            if self._left <= 0 or self._over():
                break
            if node in known:
                continue
            self._left -= 1
            for cover in self._covers(self._problem.shapes[shape], node, moves):
                if self._cost(cover, moves) is not None:
                    found.append(Way(node, cover))
                    break
            if len(found) >= _WAYS:
                break
        return found

    def _cost(self, leavers: Sequence[Leaver], most: int) -> int | None:
        """Return the moves that it costs that some replicas leave, None where that is more than some."""
        total = sum(each.moves for each in leavers)
        for each in leavers:
            if total > most:
                return None
            more = self.follow(each, most - total)
            if more is None:
                return None
            total += more
        return total if total <= most else None

    def follow(self, leaver: Leaver, most: int) -> int | None:
        """Return the fewest moves that another place for a replica costs; rules do not count it where it was."""
        strict, before = bool(self._field.gates.strict(leaver.shape)), self._away.get(leaver.shape, ())
        if strict:
            leave(self._field, leaver)
            self._away[leaver.shape] = self._away_from(leaver)
        try:
            key = self._key(leaver.shape, self._away.get(leaver.shape, ()))
            if key not in self._homes:
                self._homes[key] = np.flatnonzero(self._outlooks.ranks(leaver.shape) != NOWHERE)[:2]
            return 0 if (self._homes[key] != leaver.put[0]).any() else self.find(leaver.shape, most)
        finally:
            if strict:
                come_back(self._field, leaver)
                self._away[leaver.shape] = before

    # Nodes and who may leave them.

    def _nodes(self, shape: int, moves: int) -> list[int]:
        """Return the nodes on which so many moves may make room, those first that lack the least."""
        field, form = self._field, self._problem.shapes[shape]
        most = self._leavers.most()
        may = field.hosts(form) & ~field.gates.crowded(shape)
        nodes = np.flatnonzero(may)
        rank = min(moves, MOST_MOVES)
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

    # Who leaves.

    def _covers(self, form: Shape, node: int, moves: int) -> Iterator[tuple[Leaver, ...]]:
        """Yield sets of replicas without which a node has room for one, none that holds another, few first."""
        leavers = self._leavers.of(node)
        barring = [each for each in leavers if self._bars(form, each.shape)]
        budget = moves - sum(each.moves for each in barring)
        if budget < 0:
            return
        rest = [each for each in leavers if each not in barring and each.shape != form.index]
        lack = self._lack(form, node, barring)
        items = [item for item in self._items(form, node, rest) if item.moves <= budget]
        for chosen in islice(_chosen(items, lack, budget), _COVERS):
            cover = (*barring, *(leaver for item in chosen for leaver in item.leavers))
            if len(set(map(id, cover))) == len(cover):
                yield cover

    def _bars(self, form: Shape, shape: int) -> bool:
        """Tell whether a rule that looks at nodes keeps two shapes apart."""
        other = self._problem.shapes[shape].workload
        for guard in self._field.gates.guards(form.index):
            if isinstance(guard, ApartGuard) and guard.level == NODE_LEVEL:
                mine, theirs = guard.key(form.workload), guard.key(other)
                if mine is not None and theirs is not None and mine != theirs:
                    return True
        return False

    def _lack(self, form: Shape, node: int, gone: Sequence[Leaver]) -> tuple[int, ...]:
        """Return what a node lacks for a replica once some are gone: CPU, memory, resources, and GPUs."""
        *hosts, gpus = self._leavers.asked(form.index)
        free = (int(self._leavers.free(name)[node]) for name in self._leavers.names)
        lack = [asked - left for asked, left in zip(hosts, free, strict=True)]
        idle = int(self._field.untouched[node])
        if form.request.partial and idle == 0:
            idle = int(any(self._relieves(form, node, gpu, 0) for gpu in range(self._field.gpus.shape[1])))
        for each in gone:
            request = self._problem.shapes[each.shape].request
            lack = [a - b for a, b in zip(lack, self._leavers.asked(each.shape)[:-1], strict=True)]
            idle += request.gpus or int(form.request.partial and request.partial)
        return (*lack, gpus - idle)

    def _relieves(self, form: Shape, node: int, gpu: int, milli: int) -> bool:
        """Tell whether a GPU has room for a share once so much of it is free in addition."""
        left, asked = int(self._field.gpus[node, gpu]), self._problem.request(form.index, self._problem.nodes[node])
        return left >= 0 and left + milli >= max(1, asked.gpu_milli)

    def _items(self, form: Shape, node: int, leavers: Sequence[Leaver]) -> list[_Item]:
        """Return what may leave, replica by replica; for whole GPUs also all the shares of one together."""
        found = []
        shared: dict[int, list[Leaver]] = {}
        made = self._problem.nodes[node]
        for each in leavers:
            request = self._problem.request(each.shape, made)
            *hosts, gpus = self._leavers.asked(each.shape)
            if request.partial:
                shared.setdefault(each.put[2][0], []).append(each)
                gpus = int(form.request.partial and self._relieves(form, node, each.put[2][0], request.gpu_milli))
            found.append(_Item(each.moves, (*hosts, gpus), (each,)))
        if not form.request.partial:
            for gpu, group in shared.items():
                requests = [self._problem.request(each.shape, made) for each in group]
                if int(self._field.gpus[node, gpu]) + sum(request.gpu_milli for request in requests) == MILLI:
                    *hosts, _ = map(sum, zip(*(self._leavers.asked(each.shape) for each in group), strict=True))
                    found.append(_Item(sum(each.moves for each in group), (*hosts, 1), tuple(group)))
        return sorted(found, key=lambda item: (item.moves, -item.freed[-1], -item.freed[0]))


def _chosen(items: Sequence[_Item], lack: tuple[int, ...], budget: int) -> Iterator[tuple[_Item, ...]]:
    """Yield sets of items that free what is lacking within a budget of moves, small sets first."""
    free = any(not item.moves for item in items)
    for size in range(budget + 1 + (_ANEW if free else 0)):
        yield from _of_size(items, lack, budget, size)


def _of_size(items: Sequence[_Item], lack: tuple[int, ...], budget: int, size: int) -> Iterator[tuple[_Item, ...]]:
    wanting = [d for d, amount in enumerate(lack) if amount > 0]
    if not wanting or not size:
        if not wanting and not size:
            yield ()
        return
    if any(size * max((item.freed[d] for item in items), default=0) < lack[d] for d in wanting):
        return
    last: object = None
    for position, item in enumerate(items):
        same = item.freed, item.moves, tuple(each.shape for each in item.leavers)
        if item.moves > budget or same == last or not any(item.freed[d] for d in wanting):
            continue
        last = same
        left = tuple(a - b for a, b in zip(lack, item.freed, strict=True))
        for more in _of_size(items[position + 1 :], left, budget - item.moves, size - 1):
            yield (item, *more)
