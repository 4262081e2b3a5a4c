"""Why there is no plan: an irreducible set of hard policies that cannot hold together (S6.6).

A deletion filter (Chinneck and Dravnieks 1991): policies are left out, many at a time while that goes well, and stay
out where the rest cannot hold together either. What remains at last is needed, one by one: a plan without it was
found and judged by the rules' own checks. That those cannot hold together is never one engine's word (S6.4).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from dovetail.engine.budget import DEFAULT_WORK, Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.exact import climb
from dovetail.engine.solvers.answer import Verdict
from dovetail.model.legal import legalise
from dovetail.model.part import PartModel
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.problem.steps import EXACT_VARIABLES
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.spec import Spec

_CHECK_WORK = 5.0
_CONFIRM_SECONDS = 120.0
_SINGLY = 8  # so many policies are left out one by one from the start


@dataclass(frozen=True, slots=True)
class Conflict:
    """What is known of the hard policies of a Spec.

    Parameters
    ----------
    status : whether they cannot hold together, can, or neither is shown.
    policies : names, sorted, of policies that cannot hold together, whatever all others say.
    open : those of them without which no plan was found, and no proof that there is none.
    proof : what it rests on that they cannot.
    """

    status: Literal["infeasible", "feasible", "undecided"]
    policies: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    proof: Literal["certificate", "two-engines"] | None = None

    @property
    def irreducible(self) -> bool:
        """Tell whether there is a plan without any one of the policies."""
        return self.status == "infeasible" and not self.open


def conflict(spec: Spec, limits: Limits | None = None, *, stop: Stop | None = None) -> Conflict:
    """Return which hard policies of a Spec cannot hold together.

    Parameters
    ----------
    limits : of work and time for all of it.
    """
    limits = limits or Limits()
    deadline = None if limits.time is None else time.monotonic() + limits.time
    asking = _Asking(spec, Budget(limits.work or DEFAULT_WORK, deadline), Stop() if stop is None else stop)
    names = [policy.name for policy in spec.policies if policy.enforcement.kind == "hard"]
    verdict = asking.check(names)
    if verdict is Verdict.FEASIBLE:
        return Conflict("feasible")
    return asking.narrowed(names) if verdict is Verdict.INFEASIBLE else Conflict("undecided")


def irreducible(spec: Spec, budget: Budget, stop: Stop, reporter: Reporter) -> tuple[str, ...]:
    """Return the hard policies that cannot hold together, where each of them is shown to be needed (S6.6)."""
    reporter.phase("conflict")
    found = narrowed(spec, budget, stop)
    if not found.irreducible:
        known = f" among {', '.join(found.policies)}" if found.policies else ""
        reporter.warning(f"the conflict{known} could not be narrowed down within the limits")
    return found.policies if found.irreducible else ()


def narrowed(spec: Spec, budget: Budget, stop: Stop) -> Conflict:
    """Return which hard policies of a Spec that has no plan cannot hold together, within what is left of a search."""
    names = [policy.name for policy in spec.policies if policy.enforcement.kind == "hard"]
    return _Asking(spec, budget, stop).narrowed(names)


@dataclass(slots=True)
class _Asking:
    """Questions whether some of the hard policies can hold together, within a budget."""

    spec: Spec
    budget: Budget
    stop: Stop
    open: list[str] = field(default_factory=list)

    def narrowed(self, names: Sequence[str]) -> Conflict:
        """Return a conflict among policies that cannot hold together."""
        left = self._left_by_deletion(names)
        proof = self._proof(left)
        if proof is None:
            return Conflict("undecided")
        return Conflict("infeasible", tuple(sorted(left)), tuple(sorted(self.open)), proof)

    def _left_by_deletion(self, names: Sequence[str]) -> list[str]:
        left = list(names)
        waiting = [[name] for name in reversed(names)] if len(names) <= _SINGLY else list(_halves(names))
        while waiting:
            chunk = waiting.pop()
            rest = [name for name in left if name not in chunk]
            verdict = self.check(rest)
            if verdict is Verdict.INFEASIBLE:
                left = rest
            elif len(chunk) > 1:
                waiting += _halves(chunk)
            elif verdict is Verdict.UNKNOWN:
                self.open += chunk
        return left

    def check(self, names: Collection[str]) -> Verdict:
        """Tell whether there is a plan that keeps these hard policies, as far as one engine can tell."""
        if self.stop or self.budget.spent():
            return Verdict.UNKNOWN
        problem = self._problem(names)
        first = legalise(problem, construct(problem, today_state(problem), self.stop))
        if _holds(problem, first):
            self.budget.work -= 0.01
            return Verdict.FEASIBLE
        if problem.counts > EXACT_VARIABLES:
            return Verdict.UNKNOWN
        part = PartModel(problem, range(len(problem.nodes)), State())
        share = self.budget.part(min(_CHECK_WORK, self.budget.work))
        found = climb(part, (), None, None, share, self.stop)
        self.budget.work -= max(found.work, 0.01)
        if found.verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE):
            return Verdict.FEASIBLE if _holds(problem, found.state) else Verdict.UNKNOWN
        return found.verdict

    def _problem(self, names: Collection[str]) -> Problem:
        """Return the problem with these policies alone: soft and audited ones forbid nothing."""
        policies = tuple(policy for policy in self.spec.policies if policy.name in names)
        return compile_problem(context_of(replace(self.spec, policies=policies)))

    def _proof(self, names: Collection[str]) -> Literal["certificate", "two-engines"] | None:
        """Return what shows that these policies cannot hold together, beside the word of the engine that said so."""
        from dovetail.engine.proving.certify import refutation
        from dovetail.engine.second_opinion import confirm_infeasible

        problem, left = self._problem(names), self.budget.seconds()
        seconds = _CONFIRM_SECONDS if left is None else min(max(left, 1.0), _CONFIRM_SECONDS)
        if refutation(problem, seconds=seconds, stop=self.stop) is not None:
            return "certificate"
        return "two-engines" if confirm_infeasible(problem, seconds=seconds, stop=self.stop) is not None else None


def _halves(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return both halves of some names, the first one last."""
    middle = len(names) // 2
    return list(names[middle:]), list(names[:middle])


def _holds(problem: Problem, state: State) -> bool:
    """Tell whether a state is a plan: what runs is kept as it must be, and every hard policy holds (S4.5, S5.3)."""
    view = view_of(problem, state)
    return sound(problem, view) and not debt(problem, view, hard_policies(problem))
