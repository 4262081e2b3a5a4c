"""`dovetail test [PATH]`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from dovetail.documents import DocumentSet, load_project
from dovetail.faults import Refused, nearest
from dovetail.plan import Plan
from dovetail.progress import Limits
from dovetail.testing import CaseResult, ScenarioTrial, Trial, prepare
from dovetail.testing import run as run_all
from dovetail_cli import options, planner, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import usage
from dovetail_cli.render import testing as formats
from dovetail_cli.render.words import printable

_Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Run this PolicyTest or Scenario and no other; repeatable."),
]
_Detail = Annotated[bool, typer.Option("--detail", help="Show what passes too, with every expectation.")]
_Base = Annotated[
    str | None,
    typer.Option("--base", metavar="PLAN", help="The plan that scenarios start from, instead of planning the base."),
]


def run(
    path: options.PathArgument = ".",
    only: _Only = None,
    base: _Base = None,
    time_limit: options.EachTimeLimit = None,
    work: options.EachWork = None,
    jobs: options.Jobs = None,
    memory: options.Memory = None,
    as_of: options.AsOf = None,
    detail: _Detail = False,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Test.

    Runs every case of every PolicyTest, and every Scenario that expects anything. A case with placements is judged
    as it is, and no solver is loaded for it; any other is planned. Ends with 6 where an expectation is missed, with 7
    where a search has no answer. Formats: table, json, yaml, md, junit, github, gitlab, sarif.
    """
    shown = options.output(output, formats.FORMATS)
    wanted = options.renderings(also or (), formats.FORMATS)
    limits = options.limits(time_limit, units=work, jobs=jobs, most=memory)
    try:
        before = read_plan(base) if base is not None else None
        documents = load_project(path)
        trials = prepare(documents, as_of=options.as_of(as_of), only=_only(documents, only or ()))
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(documents.warnings)
    if not trials:
        streams.warn("there is no PolicyTest, and no Scenario that expects anything")
    done = _run([_started(trial, before) for trial in trials], limits)
    found = formats.Run(_name(documents), done.results, done.seconds, detail)
    streams.publish(lambda name, screen: formats.rendered(found, name, screen), shown, wanted)
    return first_of(done.findings)


def _only(documents: DocumentSet, names: Sequence[str]) -> frozenset[str]:
    """Return the names asked for, each of which a PolicyTest or a Scenario has."""
    known = {document.identity for kind in ("PolicyTest", "Scenario") for document in documents.of_kind(kind)}
    for name in names:
        if name not in known:
            near = nearest(name, known)
            hint = f"did you mean {near}?" if near else None
            raise usage(f"--only {printable(name)}: there is no PolicyTest or Scenario of this name", hint)
    return frozenset(names)


def _name(documents: DocumentSet) -> str:
    """Return what the run is called: as the project, else as the cluster, else as the first test."""
    for kind in ("Project", "Cluster", "PolicyTest", "Scenario"):
        if found := documents.of_kind(kind):
            return found[0].name
    return "nothing"


def _started(trial: Trial, base: Plan | None) -> Trial:
    return replace(trial, base=base) if isinstance(trial, ScenarioTrial) else trial


@dataclass(frozen=True, slots=True)
class _Done:
    """What came of the cases that were run, the seconds each took, and what the run found out."""

    results: tuple[CaseResult, ...]
    seconds: dict[int, float]
    findings: tuple[Finding, ...]


def _run(trials: Sequence[Trial], limits: Limits) -> _Done:
    """Run cases one after the other; what an interrupt cuts off has no result."""
    results: list[CaseResult] = []
    seconds: dict[int, float] = {}
    with planner.running(limits) as plan:
        began = time.monotonic()
        for result in run_all(_unless(plan, trials), plan):
            if plan.stop:
                break
            results.append(result)
            now = time.monotonic()
            seconds[len(results) - 1], began = now - began, now
        interrupted = bool(plan.stop)
    plan.complain()
    if interrupted:
        streams.say(f"dovetail: {len(results):,} of {len(trials):,} cases were run")
    return _Done(tuple(results), seconds, tuple(_findings(results, interrupted, bool(plan.broken))))


def _unless(plan: planner.Planner, trials: Sequence[Trial]) -> Iterator[Trial]:
    """Yield trials, telling which one is run, until the user interrupts."""
    for number, trial in enumerate(trials):
        if plan.stop:
            return
        plan.timeline.phase("test", f"{number + 1:,} of {len(trials):,}: {trial.name.test}")
        yield trial


def _findings(results: Sequence[CaseResult], interrupted: bool, broken: bool) -> Iterator[Finding]:
    if interrupted:
        yield Finding.INTERRUPTED
    if any(result.verdict == "undecided" for result in results):
        yield Finding.NO_PLAN
    if broken:
        yield Finding.BROKEN
    if any(result.verdict == "fail" for result in results):
        yield Finding.MISSED
