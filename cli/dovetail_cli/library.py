"""The parts of dovetail that are loaded only when a command needs them; the one seam that tests replace.

The engine loads a solver, which takes a second and much memory: nothing but `plan` and `whatif` may come here for it,
and there it stays in a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError

if TYPE_CHECKING:
    from dovetail.engine.guarded.guard import SolverProcess
    from dovetail.placement import Places
    from dovetail.plan import Plan
    from dovetail.progress import Limits, Reporter, Stop
    from dovetail.proof.certificate import Certificate
    from dovetail.spec import Spec
    from dovetail.verify import Verification


def solver_process(limits: Limits, tick: Callable[[], None]) -> SolverProcess:
    """Return a process for solvers, which starts when it is first needed; `tick` is called while it works."""
    try:
        from dovetail.engine.guarded.guard import SolverProcess
    except ImportError as error:
        raise _unavailable(error) from error
    return SolverProcess(limits.memory, tick)


def solve(
    spec: Spec, limits: Limits, *, hint: Places | None, reporter: Reporter, stop: Stop, solver: SolverProcess
) -> Plan:
    """Return the best plan within the limits."""
    try:
        return solver.solve(spec, limits, hint=hint, reporter=reporter, stop=stop)
    except ImportError as error:
        raise _unavailable(error) from error


def with_second_opinion(
    spec: Spec, plan: Plan, limits: Limits, *, reporter: Reporter, stop: Stop, solver: SolverProcess
) -> Plan:
    """Return the plan with what an independent engine says of the same problem.

    It takes as long as the time limit of the search, and as its own default at most where there is none.
    """
    from dovetail.engine.solvers.answer import BackendTooLarge

    try:
        return solver.second_opinion(spec, plan, limits.time, reporter, stop)
    except ImportError as error:
        raise _unavailable(error) from error
    except BackendTooLarge as error:
        raise CommandError(Finding.UNAVAILABLE, f"no second opinion: {error}") from error


def with_certificate(
    spec: Spec, plan: Plan, seconds: float | None, *, reporter: Reporter, stop: Stop, solver: SolverProcess
) -> Plan:
    """Return the plan with proofs of its bounds, as far as they are found in time."""
    return solver.certified(spec, plan, seconds, reporter, stop)


def without_certificate(plan: Plan) -> Plan:
    """Return a plan that claims no certificate, because none is kept."""
    from dovetail.proof.attach import detached

    return detached(plan)


def evidence_of(plan: Plan) -> Certificate | None:
    """Return the certificate that a plan carries in memory."""
    from dovetail.proof.attach import evidence_of

    return evidence_of(plan)


def read_certificate(text: str, file: str) -> Certificate:
    """Return the certificate in a text, or raise `Refused`."""
    from dovetail.proof.reading import read

    return read(text, file)


def verify(spec: Spec, plan: Plan, certificate: Certificate | None = None) -> Verification:
    """Return what the verifier finds, with the check of the certificate where the plan claims to have one."""
    from dovetail.verify import verify

    found = verify(spec, plan)
    if not plan.claims_certificate:
        return found
    from dovetail.proof.check import with_certificate

    return with_certificate(found, spec, plan, certificate)


def _unavailable(error: ImportError) -> CommandError:
    name = error.name or "a solver"
    said = " ".join(str(error).split())[:200]
    hint = "reinstall dovetail with its solvers"
    return CommandError(Finding.UNAVAILABLE, f"{name} cannot be loaded: {said}", hint)
