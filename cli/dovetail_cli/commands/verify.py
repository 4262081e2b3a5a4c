"""`dovetail verify PLAN [PATH]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail.verify import Verification, lines, to_document
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
    max_moves: options.MaxMoves = None,
    pin: options.Pin = None,
    as_of: options.AsOf = None,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Check a plan.

    Everything in it is computed anew from the documents: capacities, policies, tiers, figures, digest. A plan that
    was made with --base, --current, --max-moves or --pin needs the same here, or it is stale. Never loads a solver.
    Formats: table, json, yaml, github.
    """
    shown = options.output(output, FORMATS)
    wanted = options.renderings(also or (), FORMATS)
    try:
        checked = read_plan(plan)
        before = read_plan(base) if base is not None else None
        question = project.Question(options.as_of(as_of), before, current, max_moves, tuple(pin or ()))
        found = project.load(path, question)
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(found)
    planning.tell_waivers(found)
    verification = library.verify(found.spec, checked)
    hints = list(stale_hints(checked, question)) if verification.stale else []
    streams.publish(lambda name, screen: _rendered(verification, hints, name), shown, wanted)
    return first_of(_findings(verification, found))


def _findings(verification: Verification, found: project.Project) -> Iterator[Finding]:
    if verification.broken or found.spec.expired_waivers():
        yield Finding.BROKEN
    if verification.stale:
        yield Finding.STALE


def stale_hints(plan: Plan, question: project.Question) -> Iterator[str]:
    """Yield what on the command line, rather than in the documents, may make a plan look stale (S6.2)."""
    if project.MAX_MOVES in plan.policies and question.max_moves is None:
        yield "the plan was made with --max-moves; give verify the same"
    if project.PINS in plan.policies and not question.pins:
        yield "the plan was made with --pin; give verify the same"
    for name, given in ((project.MAX_MOVES, question.max_moves), (project.PINS, question.pins or None)):
        if given is not None and name not in plan.policies:
            yield f"the plan was made without {'--max-moves' if name == project.MAX_MOVES else '--pin'}"
    from_today = any(tier.name.startswith("disruption.") for tier in plan.tiers)
    if from_today and question.base is None and question.current is None:
        yield "the plan was made from a running state; if that came from --base or --current, give verify the same"


def _rendered(verification: Verification, hints: list[str], name: str) -> str:
    if name in ("json", "yaml"):
        return machine.rendered(to_document(verification), name)
    if name == "github":
        return github.rendered(_annotations(verification, hints))
    said = [*lines(verification), *(f"  hint: {hint}" for hint in hints)]
    return printable("\n".join(said), keep="\n") + "\n"


def _annotations(verification: Verification, hints: list[str]) -> Iterator[Annotation]:
    if verification.stale:
        message = f"plan {verification.name} was made for other documents"
        yield Annotation("error", "stale plan", "\n".join([message, *hints]))
        return
    for check in verification.broken:
        for finding in check.findings:
            yield Annotation("error", f"{check.code} {check.name}", f"{finding.subject}: {finding.detail}")
