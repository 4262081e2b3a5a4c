"""The parts of dovetail that are loaded only when a command needs them; the one seam that tests replace.

The engine loads a solver, which takes a second and much memory: nothing but `plan` and `whatif` may come here for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dovetail.rules import context_of
from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError

if TYPE_CHECKING:
    from dovetail.placement import Places
    from dovetail.plan import Plan, SecondOpinion, TierResult
    from dovetail.progress import Limits, Reporter, Stop
    from dovetail.spec import Spec
    from dovetail.verify import Verification


def solve(spec: Spec, limits: Limits, *, hint: Places | None, reporter: Reporter, stop: Stop) -> Plan:
    """Return the best plan within the limits."""
    try:
        from dovetail.engine import solve
    except ImportError as error:
        raise _unavailable(error) from error
    return solve(spec, limits, hint=hint, reporter=reporter, stop=stop)


def with_second_opinion(spec: Spec, plan: Plan, limits: Limits, stop: Stop) -> Plan:
    """Return the plan with what an independent engine says of the same problem.

    Where both engines prove the same value of a tier, its proof rests on both (S5.2).
    """
    try:
        from dovetail.engine.second_opinion import BackendTooLarge, second_opinion
    except ImportError as error:
        raise _unavailable(error) from error
    infeasible = plan.outcome.status == "infeasible"
    try:
        opinion = second_opinion(context_of(spec), plan.tiers, seconds=limits.time, stop=stop, infeasible=infeasible)
    except BackendTooLarge as error:
        raise CommandError(Finding.UNAVAILABLE, f"no second opinion: {error}") from error
    tiers = tuple(_proved_twice(tier, opinion) for tier in plan.tiers)
    return replace(plan, tiers=tiers, second_opinion=opinion)


def _proved_twice(tier: TierResult, opinion: SecondOpinion) -> TierResult:
    agreed = opinion.agrees and tier.proved and opinion.tiers.get(tier.name) == tier.value
    return replace(tier, proof="two-engines") if agreed and tier.proof == "solver" else tier


def verify(spec: Spec, plan: Plan) -> Verification:
    """Return what the verifier finds."""
    from dovetail.verify import verify

    return verify(spec, plan)


def _unavailable(error: ImportError) -> CommandError:
    name = error.name or "a solver"
    return CommandError(
        Finding.UNAVAILABLE, f"{name} cannot be loaded: {error}", "reinstall dovetail with its solvers"
    )
