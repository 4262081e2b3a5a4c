"""The same problem through another engine: HiGHS solves the whole exact model tier by tier, on its own (E5).

It shares the rows of the exact model with the first engine and nothing of its search; whether the rows mean what the
documents say is for the verifier to judge.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version

from dovetail.engine.answer import Verdict
from dovetail.engine.part import PartModel
from dovetail.engine.pyomo_backend import NODES, solve_pyomo
from dovetail.engine.state import today_state
from dovetail.linear import Linear
from dovetail.objectives import Tier
from dovetail.plan.model import SecondOpinion, TierResult
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import Context

LARGEST = 20_000
"""The most variables of an exact model that Pyomo and HiGHS are asked about."""

SECONDS = 300.0
"""A ceiling for callers that set none: on models near the largest size, nodes alone may take hours."""


class BackendTooLarge(Exception):
    """A model has more variables than a backend is asked about; `variables` may be a lower bound on their number."""

    def __init__(self, variables: int, largest: int) -> None:
        super().__init__(
            f"the exact model has at least {variables:,} variables; a second opinion is given up to {largest:,}"
        )
        self.variables = variables
        self.largest = largest


def second_opinion(
    case: Problem | Context,
    tiers: Sequence[TierResult],
    *,
    seconds: float | None = SECONDS,
    stop: Stop | None = None,
    nodes: int = NODES,
    largest: int = LARGEST,
    infeasible: bool = False,
) -> SecondOpinion:
    """Solve a problem with HiGHS and compare with a plan's tiers.

    Every tier is optimised with the earlier ones held at HiGHS' own optima. The opinion agrees where every proved
    tier has HiGHS' optimum, and HiGHS' optimum of every other tier lies between the plan's value and its bound. A
    tier that HiGHS did not finish is None, as are those after it; it agrees with no proof. A tier after one where
    HiGHS is better than the plan answers another question than the plan's proof, hence agrees only by equality.

    Parameters
    ----------
    tiers : the plan's tiers, all of them; ignored for an infeasible plan.
    seconds : a ceiling of wall clock for all tiers together.
    nodes : the most branch-and-bound nodes to look at per tier.
    infeasible : whether the plan says that there is none; HiGHS then agrees where it proves the same.

    Raises
    ------
    BackendTooLarge
        Where the exact model has more variables than `largest`.
    """
    problem = case if isinstance(case, Problem) else compile_problem(case)
    optima = _optima(problem, seconds, stop, nodes, largest)
    names = [tier.name for tier in problem.tiers]
    if infeasible or optima is None:
        agrees = infeasible and optima is None
        return SecondOpinion(_engine(), agrees, {name: (optima or {}).get(name) for name in names})
    agrees = [tier.name for tier in tiers] == names and all(_agrees(tier, optima.get(tier.name)) for tier in tiers)
    return SecondOpinion(_engine(), agrees, {name: optima.get(name) for name in names})


def confirm_infeasible(
    problem: Problem,
    *,
    seconds: float | None = SECONDS,
    stop: Stop | None = None,
    nodes: int = NODES,
    largest: int = LARGEST,
) -> bool | None:
    """Tell whether HiGHS proves that a problem has no plan: True, False where it found one, None where neither.

    A model that is too large for it is None.
    """
    try:
        part = _whole(problem, largest)
    except BackendTooLarge:
        return None
    answer = solve_pyomo(part.model, Linear(), "max", seconds, stop, nodes=nodes)
    return {Verdict.INFEASIBLE: True, Verdict.UNKNOWN: None}.get(answer.verdict, False)


def _optima(
    problem: Problem, seconds: float | None, stop: Stop | None, nodes: int, largest: int
) -> Mapping[str, int] | None:
    """Return the optima of the tiers that HiGHS finished, in order; None where it proves that there is no plan."""
    part = _whole(problem, largest)
    deadline = None if seconds is None else time.monotonic() + seconds
    found: dict[str, int] = {}
    goals: Sequence[Tier | None] = problem.tiers or (None,)
    for tier in goals:
        expression = Linear() if tier is None else tier.encode(part)
        sense = "max" if tier is None else tier.sense
        left = None if deadline is None else deadline - time.monotonic()
        answer = solve_pyomo(part.model, expression, sense, left, stop, nodes=nodes)
        if answer.verdict is Verdict.INFEASIBLE and not found:
            return None
        if answer.verdict is not Verdict.OPTIMAL or answer.bound is None:
            break
        if tier is not None:
            found[tier.name] = answer.bound
            part.model.require(expression, lower=answer.bound, upper=answer.bound)
    return found


def _agrees(tier: TierResult, optimum: int | None) -> bool:
    if optimum is None:
        return not tier.proved
    if tier.proved:
        return optimum == tier.value
    least, most = (tier.value, tier.bound) if tier.sense == "max" else (tier.bound, tier.value)
    return (least is None or optimum >= least) and (most is None or optimum <= most)


def _whole(problem: Problem, largest: int) -> PartModel:
    """Return the exact model of the whole problem, where it is small enough."""
    least = _least_variables(problem)
    if least > largest:
        raise BackendTooLarge(least, largest)
    part = PartModel(problem, range(len(problem.nodes)), today_state(problem))
    if len(part.model.lower) > largest:
        raise BackendTooLarge(len(part.model.lower), largest)
    return part


def _least_variables(problem: Problem) -> int:
    """Return how many counts the exact model has at the least, before it is built."""
    total = 0
    for node_class in problem.classes:
        shapes = [problem.shapes[shape] for shape in problem.hosted[node_class.index]]
        for index in node_class.nodes:
            gpus = len(problem.nodes[index].healthy_gpus())
            total += sum(gpus if shape.request.share else 1 for shape in shapes)
    return total


def _engine() -> str:
    return f"HiGHS {version('highspy')} through Pyomo {version('pyomo')}"
