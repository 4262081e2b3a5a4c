"""`dovetail verify PLAN [PATH]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dovetail.faults import Refused
from dovetail.verify import STATE, Verification, lines, to_document
from dovetail_cli import library, options, planning, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import read_plan
from dovetail_cli.render import github, machine
from dovetail_cli.render.github import Annotation
from dovetail_cli.render.words import printable

FORMATS = ("table", "json", "yaml", "github")

_Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The plan: a file or REV:path.")]
_Base = Annotated[
    str | None,
    typer.Option("--base", metavar="PLAN", help="The base that the plan was made with: a file or REV:path."),
]


def run(
    plan: _Plan,
    path: options.PathArgument = ".",
    base: _Base = None,
    current: options.Current = None,
    as_of: options.AsOf = None,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Check a plan.

    Everything in it is computed anew from the documents: capacities, policies, tiers, figures, digest. Of a plan that
    was made with --base or --current, what counts from that state is checked only where the same is given here; the
    result names what was not. Never loads a solver.
    Formats: table, json, yaml, github.
    """
    shown = options.output(output, FORMATS)
    wanted = options.renderings(also or (), FORMATS)
    try:
        checked = read_plan(plan)
        before = read_plan(base) if base is not None else None
        question = project.Question(options.as_of(as_of), before, current)
        found = project.load(path, question)
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(found)
    planning.tell_waivers(found)
    verification = library.verify(found.spec, checked)
    streams.publish(lambda name, screen: _rendered(verification, name), shown, wanted)
    return first_of(_findings(verification, found))


def _findings(verification: Verification, found: project.Project) -> Iterator[Finding]:
    if verification.broken or found.spec.expired_waivers():
        yield Finding.BROKEN
    if verification.stale:
        yield Finding.STALE


def _rendered(verification: Verification, name: str) -> str:
    if name in ("json", "yaml"):
        return machine.rendered(to_document(verification), name)
    if name == "github":
        return github.rendered(_annotations(verification))
    return printable("\n".join(lines(verification)), keep="\n") + "\n"


def _annotations(verification: Verification) -> Iterator[Annotation]:
    if verification.stale:
        said = (f"plan {finding.subject} {finding.detail}" for finding in verification.checks[0].findings)
        yield Annotation("error", "stale plan", "\n".join(said))
        return
    for check in verification.broken:
        for finding in check.findings:
            yield Annotation("error", f"{check.code} {check.name}", f"{finding.subject}: {finding.detail}")
    if verification.without_state:
        names = ", ".join(check.name for check in verification.without_state)
        yield Annotation("notice", "not checked", f"needs {STATE}: {names}")
