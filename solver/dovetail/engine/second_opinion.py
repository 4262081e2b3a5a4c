"""The same problem through another engine: HiGHS solves the whole exact model tier by tier, on its own.

It shares the rows of the exact model with the first engine and nothing of its search; whether the rows mean what the
documents say is for the verifier to judge.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from dovetail.engine.solvers.answer import Answer, BackendTooLarge, Verdict
from dovetail.engine.solvers.pyomo_backend import NODES, solve_pyomo
from dovetail.linear import Linear
from dovetail.model.part import PartModel
from dovetail.model.state import today_state
from dovetail.objectives import Tier
from dovetail.plan.model import Plan, SecondOpinion, TierResult
from dovetail.plan.opinion import confirmed, opinion_of
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import Context

LARGEST = 20_000
"""The most variables of an exact model that Pyomo and HiGHS are asked about."""

SECONDS = 300.0
"""A ceiling of wall clock for callers that set none: on models near the largest size, nodes alone may take hours."""


def with_second_opinion(
    case: Problem | Context, plan: Plan, *, seconds: float = SECONDS, stop: Stop | None = None
) -> Plan:
    """Return a plan with HiGHS' opinion; tiers that both engines prove are told so.

    Raises
    ------
    BackendTooLarge
        Where the exact model is too large to ask.
    """
    infeasible = plan.outcome.status == "infeasible"
    return confirmed(plan, second_opinion(case, plan.tiers, seconds=seconds, stop=stop, infeasible=infeasible))


def second_opinion(
    case: Problem | Context,
    tiers: Sequence[TierResult],
    *,
    seconds: float = SECONDS,
    stop: Stop | None = None,
    nodes: int = NODES,
    largest: int = LARGEST,
    infeasible: bool = False,
) -> SecondOpinion:
    """Solve a problem with HiGHS and compare with a plan's tiers.

    Every tier is optimised with the earlier ones held at HiGHS' own optima, as long as those are the plan's values:
    after that both would answer different questions. The opinion contradicts the plan only where HiGHS' optimum of a
    tier lies outside the plan's value and bound, or where only one of both says that there is no plan. A tier that
    HiGHS did not finish, or was not asked about, is None.

    Parameters
    ----------
    tiers : the plan's tiers, all of them; none for an infeasible plan.
    seconds : a ceiling of wall clock for all tiers together.
    nodes : the most branch-and-bound nodes to look at per tier.
    infeasible : whether the plan says that there is none.

    Raises
    ------
    BackendTooLarge
        Where the exact model has more variables than `largest`.
    """
    problem = case if isinstance(case, Problem) else compile_problem(case)
    names = [tier.name for tier in problem.tiers]
    asking = _Asking(_whole(problem, largest), time.monotonic() + seconds, stop, nodes)
    if infeasible:
        none = asking.without_plan()
        return SecondOpinion(_engine(), none is not False, dict.fromkeys(names), conclusive=none is not None)
    if [tier.name for tier in tiers] != names:
        raise ValueError(f"the tiers are not those of the problem: {', '.join(names)}")
    optima = asking.optima(problem.tiers, tiers)
    if optima is None:
        return SecondOpinion(_engine(), False, dict.fromkeys(names))
    return opinion_of(_engine(), tiers, optima)


@dataclass(frozen=True, slots=True)
class _Asking:
    """Questions to HiGHS about one model, until a moment of the monotonic clock."""

    part: PartModel
    deadline: float
    stop: Stop | None
    nodes: int

    def solve(self, expression: Linear, sense: str) -> Answer:
        """Optimise an expression over the model."""
        left = self.deadline - time.monotonic()
        if left <= 0 or self.stop:
            return Answer(Verdict.UNKNOWN)
        return solve_pyomo(self.part.model, expression, sense, left, self.stop, nodes=self.nodes)

    def without_plan(self) -> bool | None:
        """Tell whether the model has no solution: True, False where there is one, None where neither is known."""
        return {Verdict.INFEASIBLE: True, Verdict.UNKNOWN: None}.get(self.solve(Linear(), "max").verdict, False)

    def optima(self, tiers: Sequence[Tier], told: Sequence[TierResult]) -> Mapping[str, int] | None:
        """Return the optima of the first tiers, up to one that is unfinished or is not the plan's value.

        None where HiGHS proves that there is no plan.
        """
        if not tiers:
            return None if self.without_plan() else {}
        found: dict[str, int] = {}
        for tier, plan in zip(tiers, told, strict=True):
            expression = tier.encode(self.part)
            answer = self.solve(expression, tier.sense)
            if answer.verdict is Verdict.INFEASIBLE and not found:
                return None
            if answer.verdict is not Verdict.OPTIMAL or answer.bound is None:
                break
            found[tier.name] = answer.bound
            if answer.bound != plan.value:
                break
            self.part.model.require(expression, lower=answer.bound, upper=answer.bound)
        return found


def confirm_infeasible(
    problem: Problem,
    *,
    seconds: float = SECONDS,
    stop: Stop | None = None,
    nodes: int = NODES,
    largest: int = LARGEST,
) -> SecondOpinion | None:
    """Return HiGHS' opinion where it proves that a problem has no plan, None where it does not, or is not asked.

    It is not asked about a model that is too large for it.
    """
    try:
        found = second_opinion(problem, (), seconds=seconds, stop=stop, nodes=nodes, largest=largest, infeasible=True)
    except BackendTooLarge:
        return None
    return found if found.agrees and found.conclusive else None


def _whole(problem: Problem, largest: int) -> PartModel:
    """Return the exact model of the whole problem, where it is small enough."""
    least = problem.counts
    if least > largest:
        raise BackendTooLarge(least, largest)
    part = PartModel(problem, range(len(problem.nodes)), today_state(problem))
    if len(part.model.lower) > largest:
        raise BackendTooLarge(len(part.model.lower), largest)
    return part


def _engine() -> str:
    return f"HiGHS {version('highspy')} through Pyomo {version('pyomo')}"
