"""What is told where there is no plan: that none is possible, and why, or that this is not known (S6.4)."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.engine.budget import Budget
from dovetail.engine.conflict import irreducible
from dovetail.plan import finish
from dovetail.plan.model import Outcome, Plan
from dovetail.plan.opinion import confirmed
from dovetail.problem import Problem
from dovetail.progress import Reporter, Stop
from dovetail.proof.attach import attached

_CONFIRM_SECONDS = 120.0
_CONFLICT_WORK = 20.0


def without_plan(
    problem: Problem, fast: bool, stopped_by: Callable[[], str], budget: Budget, stop: Stop, reporter: Reporter
) -> Plan:
    """Report infeasibility only on a certificate, or where a second engine proves it too (S6.4).

    Parameters
    ----------
    stopped_by : tells what ended the search, where neither is found.
    """
    from dovetail.engine.proving.certify import refutation
    from dovetail.engine.second_opinion import confirm_infeasible

    context = problem.context
    proof = refutation(problem, seconds=budget.seconds_within(_CONFIRM_SECONDS), stop=stop)
    opinion = None
    if proof is None:
        opinion = confirm_infeasible(problem, seconds=budget.seconds_within(_CONFIRM_SECONDS), stop=stop)
        if opinion is None:
            return finish(context, {}, (), Outcome("unknown", stopped_by(), fast))
    names = irreducible(problem.spec, budget.part(max(budget.work, _CONFLICT_WORK)), stop, reporter)
    found = finish(context, {}, (), Outcome("infeasible", fast=fast), conflict=names)
    return confirmed(found, opinion) if opinion is not None else attached(found, (), proof)
