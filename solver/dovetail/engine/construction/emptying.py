"""Nodes emptied of what runs, where what nodes cost comes before who moves: as many as pay for it.

Those come first that save most for each replica that moves. All that a node holds finds a place on others in use, or
on a cheaper one, or it stays: a node that loses half of it costs as much as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver, Leavers
from dovetail.engine.construction.node_costs import NodeCosts, cheaper_idle, prices_of
from dovetail.engine.construction.placing import Outlooks
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop


def emptied(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state that costs less by fewer or cheaper nodes in use.

    No more replicas move than hard policies let (`allowance`), and none is lost.

    Parameters
    ----------
    over : tells when time has run out.
    """
    emptying = Emptying(problem, state)
    for node in emptying.worst_first():
        if stop or over():
            break
        emptying.empty(node)
    return emptying.state()


class Emptying:
    """The nodes in use of a state, to be emptied one after the other."""

    def __init__(self, problem: Problem, state: State) -> None:
        self._problem = problem
        self._left, pinned = allowance(problem, state)
        self._field = Field(problem, state)
        self._journal = Journal(Outlooks(self._field))
        self._leavers = Leavers(self._field, pinned)
        self._prices = prices_of(problem)
        self._used = self._journal.outlooks.only(node for node, fill in state.fills.items() if fill.slots)
        self._costs = NodeCosts(self._field)

    def worst_first(self) -> list[int]:
        """Return the nodes in use that cost something and that all may leave, those first that save most per move."""
        paid = (node for node in np.flatnonzero(self._used).tolist() if self._prices[node])
        moves = {node: sum(leaver.moves for leaver in there) for node in paid if (there := self._all_on(node))}
        return sorted(moves, key=lambda node: (-self._prices[node] / (1 + moves[node]), node))

    def empty(self, node: int) -> bool:
        """Let all that a node holds go to others in use, or to a cheaper one; tell whether that costs less."""
        leavers = self._all_on(node)
        moves = sum(leaver.moves for leaver in leavers)
        if not leavers or moves > self._left:
            return False
        turn = self._field.turn
        for leaver in leavers:
            self._journal.leave(leaver)
        self._used[node] = False
        mark = self._journal.mark()
        shapes = {leaver.shape for leaver in leavers}
        for more in (None, *cheaper_idle(self._field, node, self._used, self._prices, shapes)):
            used = self._used.copy()
            if more is not None:
                used[more] = True
            if self._placed(leavers, used) and self._costs.saved(now := self._costs.since(turn)) > 0:
                self._journal.keep()
                self._used, self._left = used, self._left - moves
                for changed in now:
                    self._costs.keep(changed)
                return True
            self._journal.undo(mark)
        self._used[node] = True
        self._journal.undo()
        return False

    def state(self) -> State:
        """Return what nodes hold now."""
        return self._field.state()

    def _all_on(self, node: int) -> list[Leaver]:
        """Return all that a node holds, the largest first; nobody where any of it has to stay."""
        leavers = self._leavers.of(node)
        if len(leavers) != self._field.fills[node].slots.total():
            return []
        asked = {leaver.shape: self._problem.shapes[leaver.shape].request for leaver in leavers}
        return sorted(leavers, key=lambda each: (-asked[each.shape].gpu_milli, -asked[each.shape].cpu, each.shape))

    def _placed(self, leavers: Sequence[Leaver], used: Bools) -> bool:
        """Place who left on some nodes, as evenly as rules want it; tell whether all have a place."""
        placed = all(self._journal.place(leaver.shape, used) for leaver in leavers)
        return placed and not any(self._field.gates.ahead(shape) for shape in {leaver.shape for leaver in leavers})
