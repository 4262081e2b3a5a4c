"""Tiers in order on one exact model: optimise, fix as "at least as good", go on to the next (S5.1, S5.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.engine.answer import Verdict
from dovetail.engine.budget import Budget
from dovetail.engine.cpsat import CpSat
from dovetail.engine.part import PartModel
from dovetail.engine.state import State
from dovetail.linear import Linear
from dovetail.objectives import Tier
from dovetail.progress import Stop


@dataclass(frozen=True, slots=True)
class TierAnswer:
    """What an exact search says of one tier: the bound is in the tier's own units, None where none was found."""

    tier: Tier
    value: int
    bound: int | None
    proved: bool


@dataclass(frozen=True, slots=True)
class Climb:
    """What came of climbing the tiers: the best state, an answer per tier reached, and the work it took."""

    verdict: Verdict
    state: State
    tiers: tuple[TierAnswer, ...]
    work: float


def climb(
    part: PartModel,
    tiers: Sequence[Tier],
    start: State | None,
    reached: Sequence[int] | None,
    budget: Budget,
    stop: Stop,
    workers: int = 1,
) -> Climb:
    """Optimise every tier of a part in order.

    Parameters
    ----------
    start : a valid state to start from and to fall back on, None where none is known.
    reached : the tiers' values in `start`, negated where less is better; no tier falls below them.

    Returns
    -------
    Climb
        `verdict` is infeasible only for the first tier's model; a tier without proof lets later ones go on from the
        best value found, as S5.2 says.
    """
    engine = CpSat(part.model)
    expressions = [tier.encode(part) for tier in tiers] or [Linear()]
    best = start
    hint = part.variables.hint(start) if start is not None else None
    answers: list[TierAnswer] = []
    level = reached
    spent = 0.0
    for position, expression in enumerate(expressions):
        sense = tiers[position].sense if tiers else "max"
        sign = 1 if sense == "max" else -1
        limit = tiers[position].limit(part.context) if tiers else None
        if level is not None and tiers:
            _hold(part, expression, sense, sign * level[position], None)
        known = _known(expression, sign, position, level, hint)
        if known is not None and known == limit:
            answers.append(TierAnswer(tiers[position], known, known, True))
            _hold(part, expression, sense, known, known)
            continue
        share = 1.0 / (len(expressions) - position)
        answer = engine.solve(expression, sense, budget.effort(max(share, 0.5), workers), hint, stop)
        spent += answer.work
        budget.work -= answer.work
        if answer.values is None:
            verdict = answer.verdict if best is None or position == 0 else Verdict.UNKNOWN
            return Climb(verdict, best or State(), tuple(answers), spent)
        value = expression.value(answer.values)
        if level is None or not tiers or sign * value > level[position]:
            # Otherwise the start is as good here, and it alone is known to reach the later tiers' levels.
            best = (start or State()).with_fills(part.variables.fills(answer.values))
            hint = dict(enumerate(answer.values))
            level = None
        if tiers:
            answers.append(TierAnswer(tiers[position], value, answer.bound, answer.verdict is Verdict.OPTIMAL))
        _hold(part, expression, sense, value, answer.bound)
        if stop or budget.out_of_time():
            break
    return Climb(_overall(answers, tiers), best or State(), tuple(answers), spent)


def _known(
    expression: Linear, sign: int, position: int, level: Sequence[int] | None, values: Mapping[int, int] | None
) -> int | None:
    """Return a tier's value in the best solution at hand, None where that is not known."""
    if level is not None:
        return sign * level[position] if position < len(level) else None
    return None if values is None else expression.value(values)


def _hold(part: PartModel, expression: Linear, sense: str, value: int, bound: int | None) -> None:
    """Keep a tier at least as good as found while later ones are optimised, and tell them what is proved of it.

    Without the bound as a row of its own the solver would prove it again in every later tier.
    """
    lower, upper = (value, bound) if sense == "max" else (bound, value)
    part.model.require(expression, lower, upper)


def _overall(answers: Sequence[TierAnswer], tiers: Sequence[Tier]) -> Verdict:
    proved = len(answers) == len(tiers) and all(answer.proved for answer in answers)
    return Verdict.OPTIMAL if proved else Verdict.FEASIBLE


__all__ = ["Budget", "Climb", "TierAnswer", "climb"]
