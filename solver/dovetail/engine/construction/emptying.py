"""Nodes emptied of what runs, where what nodes cost comes before who moves: as many as pay for it.

The nodes of which the price is least worth what they hold come first. All that one holds finds a place on others in
use, or it stays: a node that loses half of it costs as much as before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver, Leavers
from dovetail.engine.construction.placing import Outlooks
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop


def emptied(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with fewer nodes in use, with no more moves than hard policies let there be.

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
        self._used = np.zeros(len(problem.nodes), dtype=bool)
        self._used[[node for node, fill in state.fills.items() if fill.slots]] = True

    def worst_first(self) -> list[int]:
        """Return the nodes in use that cost something and that all may leave, those first that pay most per move."""
        paying = {node: self._price(node) for node in np.flatnonzero(self._used).tolist() if self._price(node)}
        moves = {node: sum(leaver.moves for leaver in there) for node in paying if (there := self._all_on(node))}
        return sorted(moves, key=lambda node: (-paying[node] / (1 + moves[node]), node))

    def empty(self, node: int) -> bool:
        """Let all that a node holds go to others in use, if these have room for all of it; tell whether they have."""
        leavers = self._all_on(node)
        moves = sum(leaver.moves for leaver in leavers)
        if not leavers or moves > self._left:
            return False
        for leaver in leavers:
            self._journal.leave(leaver)
        self._used[node] = False
        placed = all(self._journal.place(leaver.shape, self._used) for leaver in self._ordered(leavers))
        if placed and not any(self._field.gates.ahead(shape) for shape in {leaver.shape for leaver in leavers}):
            self._journal.keep()
            self._left -= moves
            return True
        self._used[node] = True
        self._journal.undo()
        return False

    def state(self) -> State:
        """Return what nodes hold now."""
        return self._field.state()

    def _price(self, node: int) -> int:
        return self._problem.nodes[node].price

    def _all_on(self, node: int) -> list[Leaver]:
        """Return all that a node holds, nobody where any of it has to stay."""
        leavers = self._leavers.of(node)
        return leavers if len(leavers) == self._field.fills[node].slots.total() else []

    def _ordered(self, leavers: list[Leaver]) -> list[Leaver]:
        """Return who leaves, the largest first."""
        asked = {leaver.shape: self._problem.shapes[leaver.shape].request for leaver in leavers}
        return sorted(leavers, key=lambda each: (-asked[each.shape].gpu_milli, -asked[each.shape].cpu, each.shape))
