"""Ruin and recreate for one search: what came anew placed anew: more is admitted, or less is useless, or paid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from math import inf
from random import Random

from dovetail.engine.budget import Budget
from dovetail.engine.construction.clearing import allowance
from dovetail.engine.construction.tier_order import costs_before_idle, costs_before_moves, promises_first
from dovetail.engine.generation.cost_ruins import CostRuins
from dovetail.engine.generation.home_ruins import HomeRuins
from dovetail.engine.generation.idle_ruins import IdleRuins
from dovetail.engine.generation.promise_ruins import PromiseRuins
from dovetail.engine.generation.ruins import Ruins
from dovetail.engine.generation.waiting_ruins import WaitingRuins
from dovetail.engine.record import Record
from dovetail.engine.turns import in_turns
from dovetail.model.legal import legalise
from dovetail.model.score import view_of
from dovetail.model.state import State
from dovetail.progress import Stop

_LEAST, _MOST = 50, 1000  # attempts to a step; where a better state was refused, half as many from the best one on
_HOMES = 200  # attempts to a step for those who moved
_LATE = 0.15  # of work and time
_SHAKEN = 3  # attempts taken though they make things worse, where nothing is found any more
_FIRST = 0.15  # of work and time, before anybody who runs is to move
_TOPPING = 0.3  # of work and time, for a state that lacks a little
_NEARLY = 0.005  # of a band, that such a state may lack
_VAIN = 20, 3  # steps in a row in which nothing better was found, and first
_DECIDED = 0.02  # of what is admitted that may be left to decide, where what that costs is looked at
_VISITS = 100  # while more is


@dataclass(frozen=True, slots=True)
class Recreating:
    """The ruins of one search: where its best state is taken up, and what it takes.

    A better state is refused where it has less of an earlier tier: rules that are weighed, and levels that are
    preferred, are not looked at where replicas are placed. For less that is useless, nodes that cost are not taken
    into use.
    """

    best: Record
    stop: Stop

    @property
    def late(self) -> float:
        """The share of work and time that idle GPU is to have after all else, where that is still about cost."""
        return _LATE if self._in_use else 0.0

    @property
    def _closed(self) -> Collection[str]:
        """The names of the tiers of which no plan has more than the best state, as far as bounds tell by now."""
        return {tier.name for tier in self.best.closed}

    @property
    def _place(self) -> int | None:
        """The place of the tier that asks for what is idle, None where none does."""
        tiers = enumerate(self.best.problem.tiers)
        return next((place for place, tier in tiers if tier.asks_idle), None)

    @property
    def _in_use(self) -> bool:
        """Whether nodes cost, and that comes first."""
        return costs_before_idle(self.best.problem)

    def idling(self, budget: Budget) -> Iterator[bool]:
        """Let less be useless, as long as a tier asks for what is idle; yield whether that is better."""
        problem, source, place = self.best.problem, Random(1), self._place
        if place is None:
            return iter(())
        return self._better(
            budget,
            max(_MOST, len(problem.nodes)),
            lambda state: IdleRuins(problem, state, source, in_use=self._in_use),
            lambda: problem.tiers[place] in self.best.closed,
        )

    def saving(self, budget: Budget) -> Iterator[bool]:
        """Let nodes in use cost less, once hardly more may be admitted; yield whether that is better."""
        problem, source = self.best.problem, Random(1)
        tier = next((tier for tier in problem.tiers if tier.counts_nodes), None)
        if tier is None:
            return
        for _ in range(_VISITS):
            if self.best.full_but_for(_DECIDED):
                yield from self._better(
                    budget, _MOST, lambda state: CostRuins(problem, state, source), lambda: tier in self.best.closed
                )
                return
            yield False

    def keeping(self, budget: Budget) -> Iterator[bool]:
        """Let less be missing of promised rates, as long as a tier asks for them; yield whether that is better.

        For no promise nodes cost more, where that comes first.
        """
        problem, source = self.best.problem, Random(1)
        tier = next((tier for tier in problem.tiers if tier.kind == "slo"), None)
        if tier is None:
            return iter(())
        frugal = not promises_first(problem)
        return self._better(
            budget,
            _MOST,
            lambda state: PromiseRuins(problem, state, source, frugal=frugal),
            lambda: tier in self.best.closed,
        )

    def homing(self, budget: Budget) -> Iterator[bool]:
        """Let who moved stay where it runs, in every state that is better; yield whether that is better.

        For nobody who stays nodes cost more, where that comes first.
        """
        problem, source, at = self.best.problem, Random(1), None
        tiers = [tier for tier in problem.tiers if tier.kind == "disruption"] if problem.present else []
        frugal = costs_before_moves(problem)
        for _ in range(_VISITS if tiers else 0):
            if at is not self.best.state:
                yield from self._better(
                    budget,
                    _HOMES,
                    lambda state: HomeRuins(problem, state, source, frugal=frugal),
                    lambda: all(tier in self.best.closed for tier in tiers),
                    _VAIN[1],
                )
                at = self.best.state
            yield False

    def offered(self, state: State, budget: Budget) -> bool:
        """Offer a state, with what it lacks made up for if that is little; tell whether it is better."""
        state = legalise(self.best.problem, state)
        if self.best.offer(state):
            return True
        return self.nearly(state) and self.made_up(state, budget) is self.best.state

    def made_up(self, state: State, budget: Budget) -> State:
        """Return a state with more of what it lacks (`nearly`), the best one where it is better by that.

        Where whole fleets are planned counts are rounded, and not all finds the place that was meant for it.
        """
        best, problem = self.best, self.best.problem
        given = budget.part(_TOPPING * budget.work, _TOPPING)
        most, pinned = allowance(problem, state)
        moving = pinned if problem.present and most == inf else None
        ruins, before = WaitingRuins(problem, state, Random(1), moving), given.work
        while not (ruins.over or given.spent() or self.stop):
            given.work -= ruins.work * _MOST
            if ruins.attempts(_MOST, lambda: bool(self.stop) or given.out_of_time()):
                state = ruins.state()
                if best.offer(state):
                    state = best.state
                    break
        budget.work -= before - given.work
        return state

    def nearly(self, state: State) -> bool:
        """Tell whether a state has hardly less than the best one of a band, and more of a later one."""
        problem = self.best.problem
        views = view_of(problem, state), view_of(problem, self.best.state)
        admitted = (tier for tier in problem.tiers if tier.kind == "admitted")
        pairs = [[tier.measure(view, problem.context) for view in views] for tier in admitted]
        differ = [(own, best) for own, best in pairs if own != best]
        return any(own > best for own, best in differ) and differ[0][0] >= (1 - _NEARLY) * differ[0][1]

    def first(self, budget: Budget) -> None:
        """Let more be admitted beside what runs, before anybody moves for it."""
        if not self.best.problem.present:
            return
        given = budget.part(_FIRST * budget.work, _FIRST)
        before = given.work
        in_turns([self.admitting(given, _VAIN[1])], given)
        budget.work -= before - given.work

    def admitting(self, budget: Budget, patience: int = _VAIN[0]) -> Iterator[bool]:
        """Let more of what waits be admitted, as long as any plan might; yield whether that is better.

        Parameters
        ----------
        patience : steps in a row in which nothing better is found, that end it.
        """
        problem, source = self.best.problem, Random(1)
        return self._better(
            budget,
            _MOST,
            lambda state: WaitingRuins(problem, state, source, closed=self._closed),
            lambda: self.best.full,
            patience,
        )

    def displacing(self, budget: Budget) -> Iterator[bool]:
        """Let more be admitted with what runs making way, unless a hard policy limits how many move in all."""
        problem, source = self.best.problem, Random(1)
        most, pinned = allowance(problem, self.best.state)
        if most < inf or not problem.present:
            return iter(())
        return self._better(
            budget,
            _MOST,
            lambda state: WaitingRuins(problem, state, source, pinned, self._closed),
            lambda: self.best.full,
        )

    def _better(
        self,
        budget: Budget,
        most: int,
        made: Callable[[State], Ruins],
        closed: Callable[[], bool],
        patience: int = _VAIN[0],
    ) -> Iterator[bool]:
        """Place what came anew elsewhere, from the best state on; yield whether that is better.

        Parameters
        ----------
        most : attempts to a step.
        made : returns the ruins of a state.
        closed : tells whether nothing better can be found.
        """
        number, at, vain, shaken = most, None, 0, False  # `at` is the state that the ruins are of
        while vain < patience and not (self.best.unpaid or budget.spent() or self.stop or closed()):
            if at is not self.best.state:
                at = self.best.state
                ruins = made(at)
                ruins.shake(_SHAKEN if shaken else 0)
            if ruins.over:
                return
            found = ruins.attempts(number, lambda: bool(self.stop) or budget.out_of_time())
            budget.work -= ruins.work * number
            taken = False
            if found:
                at = ruins.state()
                taken = self.best.offer(at)
            refused = found and not (taken or shaken)
            number = max(_LEAST, number // 2) if refused else min(most, 2 * number)
            shaken = not (taken or refused or ruins.wanders)
            at = None if shaken else at
            vain = 0 if taken else vain + 1
            yield taken
