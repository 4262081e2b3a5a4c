"""Certificates for finished plans: each bound that an engine has found, shown again without trust in it."""

from __future__ import annotations

import time
from collections.abc import Callable

from dovetail.engine.proving.prove import Work, prove
from dovetail.objectives import sign_of
from dovetail.plan import Plan, TierResult
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof.attach import attached, evidence_of
from dovetail.proof.certificate import Proof
from dovetail.proof.models import Earlier, ExactModels
from dovetail.proof.tree import Question, check_tree
from dovetail.rules import Context

LARGEST = 3_000
"""The most counts of a problem whose exact model proofs are looked for."""

WORK = 100_000_000
"""Work for all tiers of a plan; 60 million take about a second of a core."""

WORK_PER_TIER = 40_000_000
"""Work for one tier, or for showing that there is no plan."""


def with_certificate(
    case: Problem | Context, plan: Plan, *, seconds: float | None = None, stop: Stop | None = None
) -> Plan:
    """Return a plan with proofs of the bounds that engines found, as far as they are found within a fixed work.

    Tiers that have a proof already keep it. Tiers whose bound cannot be shown within the work stay as they are.

    Parameters
    ----------
    seconds : a ceiling of wall clock; where it strikes, two runs may differ.
    """
    if plan.outcome.status not in ("optimal", "feasible"):
        return plan
    problem = case if isinstance(case, Problem) else compile_problem(case)
    if problem.counts > LARGEST:
        return plan
    return _Certifying(problem, plan, _until(seconds, stop)).run()


def refutation(problem: Problem, *, seconds: float | None = None, stop: Stop | None = None) -> Proof | None:
    """Return a proof that there is no plan, checked on rows made anew; None where none is found."""
    if problem.counts > LARGEST:
        return None
    found = prove(_any_plan(problem), Work(WORK_PER_TIER), _until(seconds, stop))
    if found is None:
        return None
    check_tree(_any_plan(problem), *found)
    return Proof("", -1, found[0], cuts=found[1])


def _any_plan(problem: Problem) -> Question:
    """Return the question whether there is any plan."""
    return ExactModels(problem).of_none().question(-1)


class _Certifying:
    """One plan's tiers in order, each proof resting on those before it."""

    def __init__(self, problem: Problem, plan: Plan, over: Callable[[], bool]) -> None:
        self._problem, self._plan, self._over = problem, plan, over
        before = evidence_of(plan)
        self._known = {proof.tier: proof for proof in before.tiers} if before else {}
        self._models = ExactModels(problem)
        self._work = WORK
        self._share = WORK_PER_TIER

    def run(self) -> Plan:
        """Return the plan with all proofs, old and new."""
        proofs: list[Proof] = []
        earlier: dict[str, Earlier] = {}
        for position, tier in enumerate(self._plan.tiers):
            proof = self._known.get(tier.name) or self._proof(position, tier, earlier)
            if proof is not None:
                proofs.append(proof)
            shown = proof is not None or tier.proof == "trivial"
            earlier[tier.name] = Earlier(tier.value, tier.bound if shown else None)
        return attached(self._plan, proofs)

    def _proof(self, position: int, tier: TierResult, earlier: dict[str, Earlier]) -> Proof | None:
        if tier.bound is None or tier.proof not in ("solver", "two-engines") or self._over():
            return None
        if dict(tier.given) != {name: known.value for name, known in earlier.items()}:
            return None
        question = self._models.of_tier(position, earlier).question(sign_of(tier.sense) * tier.bound)
        work = Work(min(self._work, self._share))
        self._work -= work.left
        found = prove(question, work, self._over)
        self._work += work.left
        if found is None:
            self._share //= 4  # what follows a tier without proof is rarely easier
            return None
        return Proof(tier.name, tier.bound, found[0], given=tier.given, cuts=found[1])


def _until(seconds: float | None, stop: Stop | None) -> Callable[[], bool]:
    """Return what tells whether time is up, or the user wants to stop."""
    deadline = None if seconds is None else time.monotonic() + seconds
    return lambda: bool(stop) or (deadline is not None and time.monotonic() >= deadline)
