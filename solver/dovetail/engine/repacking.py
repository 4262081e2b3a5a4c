"""Shares of the nodes planned anew with all that runs on them, for one search.

Where much waits beside what runs, as after the loss of a zone, no chain of a few moves makes room for it. A share of
the alike nodes after the other is mixed anew (`Released`), those first on which most is idle: so many as are needed
move, and the patterns of few nodes are mixed in a part of the time.

Where cost comes before who moves, nodes are emptied one by one, which takes few moves; then all of them are mixed
anew for the least cost, and shares as long as that is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dovetail.engine.bounds import MUCH
from dovetail.engine.budget import Budget
from dovetail.engine.construction.emptying import emptied
from dovetail.engine.construction.tier_order import costs_before_moves
from dovetail.engine.contents.patterns import MANY_NODES, Pattern
from dovetail.engine.generation.released import Released, movable_of
from dovetail.engine.generation.thrift import NARROW
from dovetail.engine.parts.jobs import Jobs
from dovetail.engine.record import Record
from dovetail.engine.recreating import Recreating
from dovetail.model.legal import legalise
from dovetail.model.state import State
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Stop

_SHARE = 0.8  # of the work and the time
_OF_NODES = 0.3, 0.8  # that are mixed anew at a time, also of many: few times are left where filling them takes long
_TURN = 0.5  # of what is left of both, for each time
_VAIN = 3  # times in a row that nothing better was found
_MOST = 12  # times in all: filling nodes is no work that counts
_SAVING_SHARE = 0.6  # of the work and the time, to mix all nodes for the least cost
_ANEW = 1.0, 0.5  # of the nodes that are mixed for it at first, and then
_EMPTYING_TIME = 0.25  # of what is left


@dataclass(slots=True)
class _Path:
    """Where turns go on from: a state, and the patterns of the one before, with nodes that may take them."""

    at: State
    known: list[tuple[Sequence[int], Pattern]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Repacking:
    """Nodes planned anew with all that runs on them, from the best state of a search on."""

    best: Record
    jobs: Jobs
    stop: Stop
    anew: Recreating

    @property
    def due(self) -> bool:
        """Whether much waits beside what runs, as far as bounds tell, in a fleet too large for the exact model."""
        problem = self.best.problem
        large = bool(problem.present) and problem.counts > EXACT_VARIABLES and not self.best.unpaid
        return large and bool(self.best.admitted) and not self.best.full_but_for(MUCH)

    def run(self, budget: Budget, construction: float) -> None:
        """Plan shares of the nodes anew until hardly anything waits, or several led no further.

        Nothing is done where a hard policy limits how many may move in all.

        Parameters
        ----------
        construction : seconds that it takes.
        """
        given = budget.part(_SHARE * budget.work, _SHARE)
        before, turn, vain, path = given.work, 0, 0, _Path(self.best.state)
        while self.due and vain < _VAIN and turn < _MOST and not (given.spent() or self.stop):
            better = self._turn(given, construction, turn, path)
            if better is None:
                break
            turn, vain = turn + 1, 0 if better else vain + 1
        budget.work -= before - given.work
        if self.anew.nearly(path.at):
            self.anew.made_up(path.at, budget)

    def _turn(self, budget: Budget, construction: float, number: int, path: _Path) -> bool | None:
        """Plan one share of the nodes anew; tell whether that is better, None where it may not be done.

        What lacks a little of a band, and has more of a later one, is gone on from: the next share has room for it.
        """
        given = budget.part(_TURN * budget.work, _TURN)
        before = given.work
        share = _OF_NODES[len(self.best.problem.nodes) > MANY_NODES]
        released = self._released(path.at, share, number)
        if released is None:
            return None
        better, close = False, None
        for candidate in (
            legalise(self.best.problem, found) for found in released.run(given, path.known, construction)
        ):
            if self.best.offer(candidate):
                better, close = True, None
            elif self.anew.nearly(candidate):
                close = candidate
        path.at = self.best.state if close is None else self.anew.made_up(close, budget)
        better |= close is not None and path.at is self.best.state
        path.known = released.known
        budget.work -= before - given.work
        return better

    def _released(self, state: State, share: float, number: int, *, frugal: bool = False) -> Released | None:
        """Return a run over a share of the nodes of a state, None where a hard policy limits how many may move."""
        best = self.best
        movable = movable_of(best.problem, state)
        if movable is None:
            return None
        return Released(
            best.problem,
            state,
            best.bounds.fleet.rows,
            self.stop,
            best.state,
            self.jobs,
            full=frugal,
            movable=movable,
            share=share,
            turn=number,
            frugal=frugal,
        )

    @property
    def saves(self) -> bool:
        """Whether cost comes before who moves, and is left to decide."""
        best = self.best
        return costs_before_moves(best.problem) and not best.unpaid and best.full_but_for(NARROW)

    def saving(self, budget: Budget, construction: float) -> Iterator[bool]:
        """Use fewer and cheaper nodes where cost comes before who moves; yield whether that is better.

        Parameters
        ----------
        construction : seconds that it takes.
        """
        if not self.saves:
            return
        yield self._empty(self.best.state, budget)
        took = 0.0  # for all nodes
        for number in range(_MOST if self.best.problem.counts > EXACT_VARIABLES else 0):
            share = _ANEW[number > 0]
            released = self._released(self.best.state, share, number, frugal=True)
            enough = budget.units() > took * share  # what is cut short is dearer, and may admit a little more
            if released is None or not enough or budget.spent() or self.stop or self.best.close_enough():
                return
            given, began = budget.part(_SAVING_SHARE * budget.work, _SAVING_SHARE), budget.units()
            before = given.work
            found = [self._empty(candidate, given) for candidate in released.run(given, (), construction)]
            budget.work -= before - given.work
            took = (began - budget.units()) / share
            yield any(found)

    def _empty(self, candidate: State, budget: Budget) -> bool:
        """Empty nodes of a state; tell whether that is better."""
        over = budget.part(0.0, _EMPTYING_TIME).out_of_time
        return self.best.offer(emptied(self.best.problem, candidate, self.stop, over))
