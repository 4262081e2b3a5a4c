"""Tiers in order on one exact model: optimise, fix as "at least as good", go on to the next (S5.1, S5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.engine.budget import Budget
from dovetail.engine.solvers.answer import Answer, Verdict
from dovetail.engine.solvers.cpsat import CpSat
from dovetail.linear import Linear
from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.objectives import Tier, sign_of
from dovetail.progress import Stop


@dataclass(frozen=True, slots=True)
class TierAnswer:
    """What an exact search says of one tier: its own bound is in the tier's units, None where it found none."""

    tier: Tier
    value: int
    bound: int | None
    proved: bool


@dataclass(frozen=True, slots=True)
class Climb:
    """What came of climbing the tiers: the best state, an answer per tier reached, and the work it took.

    `contradiction` tells where the solver denied what a solution at hand shows; nothing it proved is used then.
    """

    verdict: Verdict
    state: State
    tiers: tuple[TierAnswer, ...]
    work: float
    contradiction: str | None = None


def climb(
    part: PartModel,
    tiers: Sequence[Tier],
    start: State | None,
    reached: Sequence[int] | None,
    budget: Budget,
    stop: Stop,
    workers: int = 1,
    bounds: Sequence[int | None] = (),
) -> Climb:
    """Optimise every tier of a part in order.

    Parameters
    ----------
    start : a valid state to start from and to fall back on, None where none is known.
    reached : the tiers' values in `start`, negated where less is better; no tier falls below them.
    bounds : of the first tiers, what is proved elsewhere of whatever has as much of the tiers before as `start`.

    Returns
    -------
    Climb
        `verdict` is infeasible only where nothing is known to fit; a tier without proof lets later ones go on from
        the best value found, as S5.2 says, and what was found and proved stays where a later tier finds nothing.
    """
    return _Climber(part, tiers, start, reached, budget, stop, workers, bounds).run()


class _Climber:
    """The best solution at hand, and what is proved so far."""

    def __init__(
        self,
        part: PartModel,
        tiers: Sequence[Tier],
        start: State | None,
        reached: Sequence[int] | None,
        budget: Budget,
        stop: Stop,
        workers: int,
        bounds: Sequence[int | None],
    ) -> None:
        self._part, self._tiers, self._budget, self._stop, self._workers = part, tiers, budget, stop, workers
        self._bounds = bounds
        self._engine = CpSat(part.model)
        self._start = start
        self._best = start
        self._level = None if start is None else reached
        self._hint: Mapping[int, int] | None = None if start is None else part.variables.hint(start)
        self._answers: list[TierAnswer] = []
        self._work = 0.0

    def run(self) -> Climb:
        """Climb until a tier yields nothing or the limits end it."""
        if not self._tiers:
            return self._feasibility()
        expressions = [tier.encode(self._part) for tier in self._tiers]
        for position, (tier, expression) in enumerate(zip(self._tiers, expressions, strict=True)):
            if self._at_limit(position, tier, expression):
                continue
            answer = self._solve(expression, tier.sense, len(expressions) - position)
            if answer.values is None:
                return self._nothing(answer, position)
            self._take(position, tier, expression, answer, answer.values)
            if self._stop or self._budget.out_of_time():
                break
        return Climb(_overall(self._answers, self._tiers), self._best or State(), tuple(self._answers), self._work)

    def _feasibility(self) -> Climb:
        """Look for any solution where there is nothing to optimise."""
        answer = self._solve(Linear(), "max", 1)
        if answer.values is None:
            return self._nothing(answer, 0)
        found = (self._start or State()).with_fills(self._part.variables.fills(answer.values))
        return Climb(Verdict.OPTIMAL, self._best or found, (), self._work)

    def _at_limit(self, position: int, tier: Tier, expression: Linear) -> bool:
        """Tell whether the solution at hand already has all that there can be; if so, note and keep it."""
        sign = sign_of(tier.sense)
        limit = tier.limit(self._part.context)
        told = None
        if self._level is not None:
            known = sign * self._level[position]
            told = self._bounds[position] if position < len(self._bounds) else None
            _hold(self._part, expression, tier.sense, known, told)
        elif self._hint is not None and self._best is not None:
            known = expression.value(self._hint)
        else:
            return False
        if known not in (limit, told):
            return False
        self._answers.append(TierAnswer(tier, known, limit if known == limit else None, True))
        _hold(self._part, expression, tier.sense, known, known)
        return True

    def _solve(self, expression: Linear, sense: str, left: int) -> Answer:
        effort = self._budget.effort(max(1.0 / left, 0.5), self._workers)
        answer = self._engine.solve(expression, sense, effort, self._hint, self._stop)
        self._work += answer.work
        self._budget.work -= answer.work
        return answer

    def _take(self, position: int, tier: Tier, expression: Linear, answer: Answer, values: list[int]) -> None:
        value = expression.value(values)
        sign = sign_of(tier.sense)
        if self._level is None or sign * value > self._level[position]:
            # Otherwise the start is as good here, and it alone is known to reach the later tiers' levels.
            self._best = (self._start or State()).with_fills(self._part.variables.fills(values))
            self._hint = dict(enumerate(values))
            self._level = None
        self._answers.append(TierAnswer(tier, value, answer.bound, answer.verdict is Verdict.OPTIMAL))
        _hold(self._part, expression, tier.sense, value, answer.bound)

    def _nothing(self, answer: Answer, position: int) -> Climb:
        """End where a tier yielded no solution: with what is at hand, else with the solver's word."""
        if self._best is None:
            return Climb(answer.verdict, State(), (), self._work)
        if answer.verdict is Verdict.INFEASIBLE:
            denied = f"the solver denies that a solution at hand is one, at tier {position + 1}"
            return Climb(Verdict.FEASIBLE, self._best, (), self._work, denied)
        return Climb(Verdict.FEASIBLE, self._best, tuple(self._answers), self._work)


def _hold(part: PartModel, expression: Linear, sense: str, value: int, bound: int | None) -> None:
    """Keep a tier at least as good as found while later ones are optimised, and tell them what is proved of it.

    Without the bound as a row of its own the solver would prove it again in every later tier.
    """
    lower, upper = (value, bound) if sense == "max" else (bound, value)
    part.model.require(expression, lower, upper)


def _overall(answers: Sequence[TierAnswer], tiers: Sequence[Tier]) -> Verdict:
    proved = len(answers) == len(tiers) and all(answer.proved for answer in answers)
    return Verdict.OPTIMAL if proved else Verdict.FEASIBLE
