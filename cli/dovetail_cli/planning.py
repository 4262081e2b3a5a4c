"""A planning run: documents in, a verified plan out, progress on stderr all the while."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dovetail import __version__
from dovetail.documents.document import is_json
from dovetail.plan import Plan, to_document, write
from dovetail.progress import Limits, Stop
from dovetail_cli import files, interrupts, library, streams
from dovetail_cli.exit_codes import WITHOUT_PLAN, Finding
from dovetail_cli.options import Gaps
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.progress import Display, Timeline
from dovetail_cli.project import Project
from dovetail_cli.render import machine
from dovetail_cli.render.words import percent, printable

if TYPE_CHECKING:
    from dovetail.engine.guarded.guard import SolverProcess
    from dovetail.placement import Places
    from dovetail.verify import Verification


@dataclass(frozen=True, slots=True)
class Task:
    """What to search for.

    Parameters
    ----------
    hint : places to start from.
    gaps : the largest gaps that the run accepts.
    second_opinion : ask an independent engine as well.
    out : the file that the plan goes to, None for none.
    certificate : the file that its certificate goes to; None for one beside `out`, and none is made where there is
        neither.
    """

    project: Project
    limits: Limits
    hint: Places | None = None
    gaps: Gaps = field(default_factory=Gaps)
    second_opinion: bool = False
    out: str | None = None
    certificate: str | None = None

    def certificate_of(self, plan: Plan) -> str | None:
        """Return where a plan's certificate goes; that there is no plan is written only where it is told to."""
        if self.certificate is not None or self.out is None or plan.outcome.status in WITHOUT_PLAN:
            return self.certificate
        return files.certificate_file(self.out)


@dataclass(frozen=True, slots=True)
class Result:
    """A plan, what the verifier says of it (None where there is no plan), and what the run found out."""

    plan: Plan
    verification: Verification | None
    findings: tuple[Finding, ...]


def run(task: Task, timeline: Timeline) -> Result:
    """Search, verify, and write the plan; nothing is written unless there is a plan that verifies."""
    check_gaps(task)
    stop = Stop()
    display = Display(timeline)
    try:
        with interrupts.guarded(stop):
            result = _found(task, timeline, stop, display)
            _write(task, result, timeline)
    finally:
        display.close()
    _tell(result, task)
    interrupted = (Finding.INTERRUPTED,) if stop else ()
    return replace(result, findings=(*interrupted, *result.findings))


def check_gaps(task: Task) -> None:
    """Refuse gaps of tiers that the objective does not have, before any time is spent."""
    if not task.gaps.tiers:
        return
    from dovetail.objectives import tiers_of
    from dovetail.rules import context_of

    known = [tier.name for tier in tiers_of(context_of(task.project.spec))]
    for name in task.gaps.tiers:
        if name not in known:
            raise usage(f"--gap {printable(name)}: there is no such tier", f"tiers here: {', '.join(known)}")


def _found(task: Task, timeline: Timeline, stop: Stop, display: Display) -> Result:
    with library.solver_process(task.limits, display.tick) as solver:
        plan, opinion = _Asked(task, timeline, stop, solver).run()
    if plan.outcome.status in WITHOUT_PLAN:
        return Result(plan, None, (WITHOUT_PLAN[plan.outcome.status], *opinion))
    timeline.phase("verify")
    check = functools.partial(library.verify, task.project.spec, plan, library.evidence_of(plan))
    verification = interrupts.in_background(check, display.tick)
    return Result(plan, verification, (*_findings(task, plan, verification), *opinion))


@dataclass(frozen=True, slots=True)
class _Asked:
    """What solvers are asked for, one thing after the other, in a process of their own."""

    task: Task
    timeline: Timeline
    stop: Stop
    solver: SolverProcess

    def run(self) -> tuple[Plan, tuple[Finding, ...]]:
        """Return the plan with all that was asked for, and what that found out about the run."""
        began = time.monotonic()
        task = self.task
        plan = library.solve(
            task.project.spec,
            task.limits,
            hint=task.hint,
            reporter=self.timeline,
            stop=self.stop,
            solver=self.solver,
        )
        plan = self._certified(plan, began)
        if self.task.second_opinion and plan.outcome.status != "unknown" and not self.stop:
            self.timeline.phase("second opinion")
            return self._asked_again(plan)
        return plan, ()

    def _certified(self, plan: Plan, began: float) -> Plan:
        """Return the plan with its certificate, made in the time that is left; without any where none is kept."""
        if self.task.certificate_of(plan) is None:
            return library.without_certificate(plan)
        if plan.outcome.status in WITHOUT_PLAN or self.stop:
            return plan
        self.timeline.phase("certify")
        limit = self.task.limits.time
        left = None if limit is None else max(0.0, limit - (time.monotonic() - began))
        return library.with_certificate(
            self.task.project.spec, plan, left, reporter=self.timeline, stop=self.stop, solver=self.solver
        )

    def _asked_again(self, plan: Plan) -> tuple[Plan, tuple[Finding, ...]]:
        """Return the plan with a second opinion; one that cannot be had costs the exit code, never the plan."""
        try:
            given = self.task.project.spec, plan, self.task.limits
            told = library.with_second_opinion(*given, reporter=self.timeline, stop=self.stop, solver=self.solver)
            return told, ()
        except CommandError as error:
            self.timeline.warning(error.message)
            return plan, (error.finding,)


def _findings(task: Task, plan: Plan, verification: Verification) -> Iterator[Finding]:
    if not verification.ok or task.project.spec.expired_waivers():
        yield Finding.BROKEN
    if any(result.enforcement == "hard" and result.result == "fail" for result in plan.policies.values()):
        yield Finding.BROKEN
    if plan.second_opinion is not None and not plan.second_opinion.agrees:
        yield Finding.BROKEN
    if too_wide(plan, task.gaps):
        yield Finding.GAP


def too_wide(plan: Plan, gaps: Gaps) -> list[str]:
    """Return the tiers whose gap is larger than accepted, in words; a tier without bound has any gap."""
    found = []
    for tier in plan.tiers:
        largest = gaps.of(tier.name)
        if largest is not None and not tier.within(largest):
            shown = "without bound" if tier.gap is None else percent(tier.gap)
            found.append(f"{tier.name}: gap {shown}, accepted {percent(largest)}")
    return found


def _write(task: Task, result: Result, timeline: Timeline) -> None:
    """Write the plan, with its certificate, times and logs beside it; of an infeasible one the certificate alone."""
    if result.verification is not None and not result.verification.ok:
        return
    timeline.finish()
    plan = result.plan
    texts: dict[str, str] = {}
    certificate = task.certificate_of(plan)
    if certificate is not None and plan.evidence is not None:
        texts[certificate] = plan.evidence
    if task.out is not None and result.verification is not None:
        texts[task.out] = _text(plan, task.out)
        log = {"version": __version__, "plan": plan.name, "inputs": plan.inputs, **timeline.to_document()}
        texts[files.run_file(task.out)] = json.dumps(log, indent=2) + "\n"
    with interrupts.held():
        files.write_all(texts)
        if certificate is not None and task.out is not None and certificate not in texts:
            files.remove_certificate(certificate)


def _text(plan: Plan, file: str) -> str:
    """Return a plan as a file of this name is read: as JSON where it ends in `.json`, else in its canonical form."""
    return machine.rendered(to_document(plan), "json") if is_json(file) else write(plan)


def _tell(result: Result, task: Task) -> None:
    """Say on stderr what ends a run with another code than 0."""
    tell_waivers(task.project)
    if result.verification is not None and not result.verification.ok:
        from dovetail.verify import lines

        streams.say("dovetail: the plan does not verify, so it was not written; this is a defect of dovetail")
        streams.say("\n".join(lines(result.verification)))
    opinion = result.plan.second_opinion
    if opinion is not None and not opinion.agrees:
        streams.say(f"dovetail: {opinion.engine} does not agree; one of the two engines is wrong")
    elif opinion is not None and not opinion.conclusive:
        streams.say(f"dovetail: warning: the second opinion of {opinion.engine} is inconclusive")
    for words in too_wide(result.plan, task.gaps):
        streams.say(f"dovetail: {words}")


def tell_waivers(project: Project) -> None:
    """Name the waivers that have expired (S4.3)."""
    spec = project.spec
    for waiver in spec.expired_waivers():
        streams.say(
            f"dovetail: waiver {waiver.name} of policy {waiver.policy} expired on {waiver.expires} (judged at "
            f"{spec.as_of}); owner {waiver.owner}"
        )
