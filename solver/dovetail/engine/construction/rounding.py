"""Whole numbers near the solution of an LP, for one objective after the other.

Most values of an LP with few rows beside its columns are whole. Where every count has to be one of the two whole
numbers beside its value, an integer program of thousands of counts is solved in moments (relaxation enforced
neighbourhood; Berthold 2014); from there on others near by are looked at.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from dovetail.engine.fleet.plain_lp import lp_of
from dovetail.engine.solvers.whole import near_best
from dovetail.linear import Linear, Model
from dovetail.progress import Stop
from dovetail.proof.lagrangian import plain_rows

# How far a count may be beyond the numbers beside a value that is not whole, and beside one that is; and the part of
# the next objective, and of others, that the first may cost, where they were solved before.
_STEPS = ((0, 0), (1, 1)), ((1, 0), (5000, 100)), ((1, 1), (5000, 100)), ((1, 1), (100, 10))
_CLOSE = 1e-4  # of what there is of an objective: who lacks less is let be; of the first one all counts
_ALMOST = 1e-6
_LEAST = 0.1  # seconds for an objective
_SHARE = 0.5, 0.3  # of the time that is left, for the first objective, and for the next one


def rounded(
    model: Model,
    objectives: Sequence[Linear],
    target: Mapping[int, float],
    counts: Collection[int],
    stop: Stop,
    seconds: float | None = None,
) -> list[int] | None:
    """Return values that are good for one objective after the other, greater being better, None where none are found.

    Parameters
    ----------
    target : the LP's solution (`relaxed`).
    counts : the variables that keep near it.
    seconds : a ceiling for all of it, None without one; a little more may go by.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    values: list[int] | None = None
    for spreads, lost in _STEPS:
        lower, upper = list(model.lower), list(model.upper)
        for v in counts:
            below, above = beside(target[v])
            more = spreads[above <= below]
            lower[v] = max(lower[v], below - more)
            upper[v] = max(lower[v], min(upper[v], above + more))
        near = replace(model, lower=lower, upper=upper, rows=list(model.rows))
        climb = _Climb(near, objectives, target, lost, stop, deadline)
        if values is not None and lost == _STEPS[-1][1] and not climb.lacks(objectives[0], values, 0.0):
            break  # it is for the first alone
        values = climb.from_(values)
    return values


def beside(value: float) -> tuple[int, int]:
    """Return the whole numbers below and above a value, the same one twice where it is whole."""
    return floor(value + _ALMOST), ceil(value - _ALMOST)


def relaxed(model: Model, objectives: Sequence[Linear], stop: Stop) -> Mapping[int, float]:
    """Return the value of every variable in the LP for one objective after the other, greater being better."""
    rows = plain_rows(model)
    lp, column = lp_of(rows, lambda variable: (float(model.lower[variable]), float(model.upper[variable])))
    known = [{column[v]: float(c) for v, c in objective.terms.items() if v in column} for objective in objectives]
    floors = [lp.row(-float("inf"), float("inf"), terms) for terms in known]
    for terms, row in zip(known, floors, strict=True):
        lp.objective(terms)
        value = lp.solve()
        if stop or not lp.complete:
            break
        lp.bounds(row, value - _ALMOST * max(1.0, abs(value)), float("inf"))
    values = lp.values()
    return {v: values[column[v]] if v in column else float(low) for v, low in enumerate(model.lower)}


@dataclass(frozen=True, slots=True)
class _Climb:
    """An integer program whose objectives are met one after the other, each as well as time lets it.

    Parameters
    ----------
    target : the LP's solution.
    lost : the parts of what later objectives have reached before that the first may cost.
    """

    model: Model
    objectives: Sequence[Linear]
    target: Mapping[int, float]
    lost: tuple[int, int]
    stop: Stop
    deadline: float | None

    def from_(self, values: list[int] | None) -> list[int] | None:
        """Return values, better ones where some are known; None where none are found."""
        for number, objective in enumerate(self.objectives):
            left = None if self.deadline is None else _SHARE[number > 0] * (self.deadline - time.monotonic())
            if self.stop or (left is not None and left <= _LEAST):
                break
            if values is None or self.lacks(objective, values, 0.0 if number == 0 else _CLOSE):
                if values is not None:
                    self._keep(objective, self.objectives[number + 1 :] if number == 0 else (), values)
                found = near_best(self.model, objective, values, self.stop, left, _CLOSE if number else 0.0)
                values = values if found is None else found
            if values is None:
                break
            self.model.require(objective, lower=objective.value(values))
        return values

    def lacks(self, objective: Linear, values: list[int], close: float) -> bool:
        """Tell whether more of an objective than a part of what the LP has is not reached."""
        best = objective.constant + sum(c * self.target[v] for v, c in objective.terms.items())
        return best - objective.value(values) > close * abs(best) + _ALMOST

    def _keep(self, objective: Linear, others: Sequence[Linear], values: list[int]) -> None:
        """Let nothing get worse, but for a little of objectives that come later."""
        self.model.require(objective, lower=objective.value(values))
        for number, other in enumerate(others):
            reached = other.value(values)
            self.model.require(other, lower=reached - abs(reached) // self.lost[number > 0])
