"""Ruin and recreate where some have moved: one of them stays where it runs today, once what came anew goes elsewhere.

Who comes first takes the place that is best for it alone, though another one had no other; room for that one is then
made by what runs. Here what came to the node that was left finds other places, or those of others that came anew,
which find places in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from dovetail.engine.construction.leavers import Leaver, running_at
from dovetail.engine.construction.mending import Excess
from dovetail.engine.construction.node_costs import NodeCosts
from dovetail.engine.generation.ruins import Ruins, Whereabouts
from dovetail.model.state import State, away
from dovetail.problem import Present, Problem

_OTHERS = 2  # nodes that lose what came anew, beside the one that somebody stays on
_IN_TURN = 0.7  # of the times, that who was on that node finds a place first


class HomeRuins(Ruins):
    """Lets who moved stay where it runs, by what came anew; what is admitted stays so, and what is mended (S5.3).

    Parameters
    ----------
    frugal : whether nobody stays for whom nodes cost more (S5.6), all together, and no others are taken into use.
    """

    def __init__(self, problem: Problem, state: State, source: Random, *, frugal: bool = False) -> None:
        self._problem = problem
        self._whereabouts = Whereabouts()
        super().__init__(problem, state, source)
        self._costs = NodeCosts(self._field) if frugal else None
        self._excess = Excess(self._field)
        for node in self.hosts:
            self._enter(node)
        left = ((node, place) for node, place, count in away(problem, state) for _ in range(count))
        self._homes = [(node, place) for node, place in left if place.shape in self._whereabouts]
        self._drawn_home = 0  # its position

    @property
    def over(self) -> bool:
        """Whether nobody who moved might stay."""
        return not self._homes

    def _enter(self, node: int) -> None:
        super()._enter(node)
        self._whereabouts.enter(node, self._anew(node))
        if self._costs is not None:
            self._costs.keep(node)

    def _is_better(self, more: int) -> bool:
        del self._homes[self._drawn_home]
        return super()._is_better(more)

    def _ruin(self, turn: int) -> int | None:
        self._drawn_home = self._source.randrange(len(self._homes))
        node, place = self._homes[self._drawn_home]
        moved = self._whereabouts.one_of(place.shape, self._source, self._anew)
        if moved is None:
            return None
        self._journal.leave(moved)
        first = self._come_home(node, place)
        if first is None:
            return None
        then = self._makes_way_in_turn(first, node) if first else []
        if self._source.random() >= _IN_TURN:
            self._source.shuffle(first := first + then)
            then = []
        placed = all(self._placed(each.shape) for each in [*first, *then])
        ahead = any(map(self._field.gates.ahead, {place.shape, *(each.shape for each in [*first, *then])}))
        return 1 if placed and not ahead and not self._dearer(turn) else None

    def _dearer(self, turn: int) -> bool:
        """Tell whether nodes cost more than before a turn, where they must not."""
        return self._costs is not None and self._costs.saved(self._costs.since(turn)) < 0

    def _come_home(self, node: int, place: Present) -> list[Leaver] | None:
        """Put one that waits back in its place; return who was taken off for it.

        None without room, or where a hard policy that today breaks would not have it there.
        """
        off = self._makes_way(node, lambda: self._journal.back(node, place))
        return None if off is None or self._excess.any_of(running_at(node, place)) else off

    def _makes_way_in_turn(self, off: Sequence[Leaver], home: int) -> list[Leaver]:
        """Take off what came anew to a few nodes that one of those taken off might be on; return it."""
        may = self._field.hosts(self._problem.shapes[self._source.choice(off).shape])
        nodes = [node for node in self.hosts if may[node] and node != home]
        chosen = self._source.sample(nodes, min(len(nodes), self._source.randint(0, _OTHERS)))
        return self._off(leaver for node in chosen for leaver in self._anew(node))

    def _placed(self, shape: int) -> bool:
        """Place one where it breaks nothing; tell whether there is such a place."""
        self._journal.outlooks.reopen(shape)
        puts = self._journal.outlooks.place(shape, 1, nodes=None if self._costs is None else self._costs.used)
        self._journal.placed(puts)
        return bool(puts) and all(self._excess.of(Leaver(put, None)) <= 0 for put in puts)
