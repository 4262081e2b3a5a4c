"""`dovetail whatif [PATH]`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import typer

from dovetail.documents import load_project
from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail.progress import Limits
from dovetail.verify import verify
from dovetail.whatif import Question, Scenario, WhatIfResult, prepare
from dovetail.whatif import run as compare
from dovetail_cli import options, planner, planning, project, refusals, scenarios, sound, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import usage
from dovetail_cli.render import whatif as formats
from dovetail_cli.render.comparison import Comparison


def _several(name: str, metavar: str, help: str) -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=f"{help}; repeatable.")
    return found


_Scenario = Annotated[
    str | None,
    typer.Option("--scenario", metavar="FILE|NAME", help="A Scenario document: a file, or one of the project."),
]
_Fail = Annotated[list[str] | None, _several("--fail", "LEVEL=DOMAIN", "A domain fails, such as rack=r3")]
_Cordon = Annotated[list[str] | None, _several("--cordon", "LEVEL=DOMAIN", "A domain takes nothing new")]
_Add = Annotated[list[str] | None, _several("--add", "GROUP=+N", "More nodes of a group, such as h100=+4")]
_Scale = Annotated[list[str] | None, _several("--scale", "WORKLOAD=N", "Other replicas; WORKLOAD.ROLE=N of a role")]
_Drop = Annotated[list[str] | None, _several("--drop", "WORKLOAD", "Without this workload")]
_DropPolicy = Annotated[list[str] | None, _several("--drop-policy", "NAME", "Without this policy")]
_Base = Annotated[
    str | None,
    typer.Option("--base", metavar="PLAN", help="The base's plan, a file or REV:path, instead of planning it."),
]


def run(
    path: options.PathArgument = ".",
    scenario: _Scenario = None,
    fail: _Fail = None,
    cordon: _Cordon = None,
    add: _Add = None,
    scale: _Scale = None,
    drop: _Drop = None,
    drop_policy: _DropPolicy = None,
    base: _Base = None,
    time_limit: options.EachTimeLimit = None,
    work: options.EachWork = None,
    jobs: options.Jobs = None,
    memory: options.Memory = None,
    as_of: options.AsOf = None,
    detail: options.Detail = False,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Compare.

    The base is planned first, unless --base gives its plan; the scenario starts from there, so that a failure shows
    what it evicts and moves. Changes by option come after those of --scenario. Ends with 6 where an expectation of
    the scenario is missed. Formats: table, json, yaml, md.
    """
    shown = options.output(output, formats.FORMATS)
    wanted = options.renderings(also or (), formats.FORMATS)
    limits = options.limits(time_limit, units=work, jobs=jobs, most=memory)
    changes = _changes(scenario, (add, drop_policy, drop, scale, fail, cordon))
    try:
        found = _found(_Asked(path, scenario, changes, base, options.as_of(as_of)))
    except Refused as refused:
        if error := scenarios.usage_of(refused):
            raise error from None
        return refusals.tell(refused, shown)
    result, findings = _compared(found, limits)
    comparison = Comparison(result, base or "", project.Places(found.project.documents), detail)
    streams.publish(lambda name, screen: formats.rendered(comparison, name, screen), shown, wanted)
    return first_of(findings)


def _changes(scenario: str | None, given: Iterable[Iterable[str] | None]) -> Mapping[str, Iterable[str] | None]:
    """Return the values of the options that change something, by option in the order of `scenarios.OPTIONS`."""
    changes = dict(zip(scenarios.OPTIONS, given, strict=True))
    if scenario is None and not any(changes.values()):
        raise usage("nothing is asked", "give --scenario, or a change such as --fail rack=r3 or --add h100=+4")
    return changes


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line names."""

    path: str
    scenario: str | None
    changes: Mapping[str, Iterable[str] | None]
    base: str | None
    as_of: dt.date


@dataclass(frozen=True, slots=True)
class _Found:
    """What that is: the base's plan where it is given, both sides to plan, and the project as the scenario has it."""

    before: Plan | None
    question: Question
    project: project.Project


def _found(asked: _Asked) -> _Found:
    before = read_plan(asked.base) if asked.base is not None else None
    documents = load_project(asked.path)
    named = Scenario() if asked.scenario is None else scenarios.find(documents, asked.scenario)
    question = prepare(documents, scenarios.with_options(named, asked.changes), as_of=asked.as_of)
    if before is not None:
        sound.check(verify(question.base, before), "leave --base out to plan the base")
    return _Found(before, question, project.Project(documents, question.changed, question.warnings))


def _compared(found: _Found, limits: Limits) -> tuple[WhatIfResult, tuple[Finding, ...]]:
    """Return both sides compared, and what the run found out; say on stderr what is odd."""
    project.tell_warnings(found.project.warnings)
    with planner.running(limits) as plan:
        result = compare(found.question, plan, base=found.before)
    plan.complain()
    planning.tell_waivers(found.project)
    return result, tuple(_findings(result, plan))


def _findings(result: WhatIfResult, plan: planner.Planner) -> Iterator[Finding]:
    """Yield what the run found out; it is the scenario's side that counts, once the base could be searched."""
    if plan.stop:
        yield Finding.INTERRUPTED
    if "unknown" in (result.base.outcome.status, result.result.outcome.status):
        yield Finding.NO_PLAN
    if result.result.outcome.status == "infeasible" and not _was_expected(result):
        yield Finding.INFEASIBLE
    failing = (p for p in result.result.policies.values() if p.enforcement == "hard" and p.result == "fail")
    if plan.broken or result.spec.expired_waivers() or any(failing):
        yield Finding.BROKEN
    if result.missed:
        yield Finding.MISSED


def _was_expected(result: WhatIfResult) -> bool:
    """Tell whether the scenario itself says that there is no plan: what was asked for is no failure."""
    return any(check.ok and "status" in check.expectation.row for check in result.checks)
