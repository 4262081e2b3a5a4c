"""Ruin and recreate where work waits: it takes the place of what came anew, as long as that admits more.

Beside what runs no patterns are mixed, and who came first has the room and the quota. Here a replica that waits comes
to a node, or below a limit, from which others are taken off for it; these find a place elsewhere, or wait themselves.
Where that leads no further, what runs makes way as well, if it goes on elsewhere and more is admitted by that.

An earlier band comes first whatever it costs later ones. But there are many ways to a little more of it, and those
that cost them little are given the time to be found first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from random import Random

from dovetail.engine.construction.gates import as_much_as
from dovetail.engine.construction.leavers import Leaver, stands_alone
from dovetail.engine.generation.ruins import Ruins, Whereabouts
from dovetail.model.state import State
from dovetail.objectives.admitted import Admitted
from dovetail.problem import Problem, Shape

Drawn = tuple[int, Leaver | None]
"""A replica to be placed: its shape, and who it was if it was taken off."""

_FIRST = 0.3  # of the times, that one of the first band comes of which any wait
_MAKES_WAY = 0.6  # of the times, that a node is cleared for one that waits, where no limit keeps it out
_LOOKS = 8  # nodes that are looked at for it, until it may be there
_RIVALS = 8  # replicas that are taken off for it at the most, where a limit keeps it out
_MORE = 0, 2, 4  # other shapes that may come in place of who was taken off, one of these numbers
_NOISE = 0.7, 1.4  # times its size, that a replica is taken for where the larger ones come first
_LARGEST = 0.7  # of the times, that they do within a band
_DEAR = 2.5  # times what a band gains, that later ones lose for it at the most
_DEARLY = 0.05  # of the times, that more is taken all the same


class WaitingRuins(Ruins):
    """Admits more of what waits, an earlier band before a later one, in place of what came anew.

    Parameters
    ----------
    pinned : where what runs makes way as well, the workloads that may not move; None where nothing does.
    closed : names of tiers of which no plan has more than the state: of these nobody comes who waits.
    """

    def __init__(
        self,
        problem: Problem,
        state: State,
        source: Random,
        pinned: frozenset[str] | None = None,
        closed: Collection[str] = (),
    ) -> None:
        self._problem = problem
        self._closed = {shape.index for shape in problem.shapes if _tier_of(problem, shape) in closed}
        self._moving = pinned is not None
        # Of shapes that come and go one by one, those of earlier bands first.
        self._rank = dict(sorted(_ranks(problem), key=lambda each: each[1]))
        super().__init__(problem, state, source, pinned or frozenset())
        self._rivals_of: dict[int, list[int]] = {}
        self._whereabouts = Whereabouts()
        self._waits: list[int] | None = None  # shapes of which replicas wait, where that is known
        for node in self.hosts:
            self._enter(node)

    @property
    def over(self) -> bool:
        """Whether there is nothing to place anew, or nothing waits that might come."""
        return not (self.hosts and self._waiting())

    def shake(self, number: int) -> None:
        """As of any ruins; what is lost by it may come back."""
        if number:
            self._closed.clear()
            self._waits = None
        super().shake(number)

    def _anew(self, node: int) -> Iterator[Leaver]:
        leavers = self._leavers.of(node) if self._moving else super()._anew(node)
        return (leaver for leaver in leavers if leaver.shape in self._rank)

    def _enter(self, node: int) -> None:
        super()._enter(node)
        self._whereabouts.enter(node, self._anew(node))
        self._waits = None

    def _waiting(self) -> list[int]:
        """Return the shapes of which replicas wait, those of earlier bands first."""
        if self._waits is None:
            open_to = (shape for shape in self._rank if shape not in self._closed)
            self._waits = [shape for shape in open_to if self._field.wanted(shape) > 0]
        return self._waits

    def _ruin(self, turn: int) -> int | None:
        waits = self._waiting()
        first = [each for each in waits if self._rank[each] == self._rank[waits[0]]]
        shape = self._source.choice(first if self._source.random() < _FIRST else waits)
        before, served = self._field.admitted.copy(), self._field.rates.served()
        off = self._cleared(shape)
        if off is None:
            return None
        extra = self._source.sample(waits, min(len(waits), self._source.choice(_MORE)))
        away = sum(each.moves for each in off)
        for other, leaver in self._ordered([*((each.shape, each) for each in off), *((s, None) for s in extra)]):
            away -= self._recreated(other, leaver)
        changed = {s: self._field.admitted[s] - before[s] for s in {shape, *(each.shape for each in off), *extra}}
        if any(self._loses(s, more) or self._field.gates.ahead(s) for s, more in changed.items()):
            return None
        worth = self._worth(changed, served)
        better = next((more for more in worth if more), 0)
        dear = better > 0 and -sum(worth[worth.index(better) + 1 :]) > _DEAR * better
        if dear and self._source.random() >= _DEARLY:
            return None
        return None if away and better <= 0 else better  # nobody moves for nothing

    def _loses(self, shape: int, more: int) -> bool:
        """Tell whether any are lost who run today, be it that they have moved."""
        return more < 0 and self._field.admitted[shape] < self._problem.running[shape]

    def _recreated(self, shape: int, leaver: Leaver | None) -> bool:
        """Place a replica, one that ran where it did if there is room; tell whether it is there again."""
        if leaver is not None and leaver.place is not None and self._journal.back(leaver.put[0], leaver.place):
            return True
        if self._field.wanted(shape) > 0:
            self._journal.place(shape)
        return False

    def _cleared(self, shape: int) -> list[Leaver] | None:
        """Place one that waits, if need be with others taken off; return these, None where it finds no place."""
        if self._field.gates.room(shape) == 0:
            off = self._below_limit(shape)
            return off if self._journal.place(shape) else None
        if self._source.random() < _MAKES_WAY:
            return self._made_way(shape)
        leavers = self._taken_off()
        self._journal.place(shape)
        return leavers

    def _made_way(self, shape: int) -> list[Leaver] | None:
        """Place one on a node where that takes others off, one by one in any order."""
        may = self._field.hosts(self._problem.shapes[shape])
        drawn = (self._source.choice(self.hosts) for _ in range(_LOOKS))
        node = next((node for node in drawn if may[node]), None)
        if node is None:
            return None
        only = self._journal.outlooks.only([node])
        return self._makes_way(node, lambda: self._journal.place(shape, only))

    def _below_limit(self, shape: int) -> list[Leaver]:
        """Take off others that came anew until limits have room for one; return them."""
        off = list[Leaver]()
        rivals = self._rivals(shape)
        while rivals and len(off) < _RIVALS and self._field.gates.room(shape) == 0:
            rival = self._source.choice(rivals)
            node = self._source.choice(sorted(self._whereabouts.of(rival)))
            found = next((each for each in self._anew(node) if each.shape == rival and not each.moves), None)
            if found is None:
                self._whereabouts.forget(rival, node)
                gone = [each for each in off if each.put[0] == node]
                self._journal.enter(partial(self._whereabouts.enter, node, gone))  # there again, once it is undone
                rivals = [rival for rival in rivals if rival in self._whereabouts]
                continue
            self._journal.leave(found)
            off.append(found)
        return off

    def _rivals(self, shape: int) -> list[int]:
        """Return the others of which replicas that go may leave room for one below a limit, with the like of them."""
        if shape not in self._rivals_of:
            gates, shapes = self._field.gates, self._problem.shapes
            each = {o: max(shapes[o].demand, as_much_as(shapes[shape], shapes[o])) for o in self._rank if o != shape}
            self._rivals_of[shape] = [other for other, count in each.items() if gates.relieves(shape, other, count)]
        return [rival for rival in self._rivals_of[shape] if rival in self._whereabouts]

    def _ordered(self, drawn: Iterable[Drawn]) -> list[Drawn]:
        """Return replicas in an order to place them: earlier bands first, and in a band the larger ones, or any."""
        largest = self._source.random() < _LARGEST

        def key(each: Drawn) -> tuple[int, float]:
            size = max(1, self._problem.shapes[each[0]].request.gpu_milli) if largest else 1
            return self._rank[each[0]], -size * self._source.uniform(*_NOISE)

        return sorted(drawn, key=key)

    def _worth(self, changed: Mapping[int, int], served: Mapping[int, int]) -> Sequence[int]:
        """Return by how much more is worth that is admitted, by band, those first that come first.

        Parameters
        ----------
        changed : how many more replicas there are, by shape.
        served : what services served before that ask for a rate.
        """
        worth: Counter[int] = Counter()
        rates = self._field.rates
        for shape, more in changed.items():
            by_rate = shape in rates.asked
            earned = rates.earned(shape, served) if by_rate else more * self._problem.shapes[shape].role.value
            worth[self._rank[shape]] += earned
        return [worth[rank] for rank in sorted(worth)]


def _ranks(problem: Problem) -> Iterator[tuple[int, int]]:
    """Yield the shapes that may be admitted replica by replica, each with the rank of the tier that counts it."""
    for shape in problem.shapes:
        if stands_alone(shape.workload) and shape.role.value:
            yield shape.index, _rank(problem, shape)


def _tier_of(problem: Problem, shape: Shape) -> str:
    return Admitted(problem.spec.band_of(shape.workload), bool(shape.request.gpu_count)).name


def _rank(problem: Problem, shape: Shape) -> int:
    band = problem.spec.bands.index(problem.spec.band_of(shape.workload))
    return 2 * band + (not shape.request.gpu_count)
