"""The parts of dovetail that are loaded only when a command needs them; the one seam that tests replace.

The engine loads a solver, which takes a second and much memory: nothing but `plan` and `whatif` may come here for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.rules import context_of
from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError

if TYPE_CHECKING:
    from dovetail.placement import Places
    from dovetail.plan import Plan
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

    It takes as long as the time limit of the search, and as its own default at most where there is none.
    """
    try:
        from dovetail.engine.second_opinion import SECONDS, BackendTooLarge, with_second_opinion
    except ImportError as error:
        raise _unavailable(error) from error
    seconds = SECONDS if limits.time is None else limits.time
    try:
        return with_second_opinion(context_of(spec), plan, seconds=seconds, stop=stop)
    except BackendTooLarge as error:
        raise CommandError(Finding.UNAVAILABLE, f"no second opinion: {error}") from error


def verify(spec: Spec, plan: Plan) -> Verification:
    """Return what the verifier finds."""
    from dovetail.verify import verify

    return verify(spec, plan)


def _unavailable(error: ImportError) -> CommandError:
    name = error.name or "a solver"
    return CommandError(
        Finding.UNAVAILABLE, f"{name} cannot be loaded: {error}", "reinstall dovetail with its solvers"
    )
