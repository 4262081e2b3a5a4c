"""`dovetail verify PLAN [PATH]`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Annotated

import typer

from dovetail.faults import Position, Refused
from dovetail.verify import Verification
from dovetail_cli import library, options, planning, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import certificate_of, places_in, plan_text, read_plan
from dovetail_cli.render import verification as formats

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
    certificate: options.Certificate = None,
    as_of: options.AsOf = None,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Check a plan.

    Everything in it is computed anew from the documents: capacities, policies, tiers, figures, digest. Of a plan that
    was made with --base or --current, what counts from that state is checked only where the same is given here; the
    result names what was not. Bounds that rest on a certificate are shown anew from it. Never loads a solver.
    Formats: table, json, yaml, junit, github, gitlab, sarif.
    """
    shown = options.output(output, formats.FORMATS)
    wanted = options.renderings(also or (), formats.FORMATS)
    try:
        checked = read_plan(plan)
        proofs = certificate_of(checked, plan, certificate)
        before = read_plan(base) if base is not None else None
        question = project.Question(options.as_of(as_of), before, current)
        found = project.load(path, question)
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(found.warnings)
    project.tell_of_another(checked, plan, found)
    planning.tell_waivers(found)
    verification = library.verify(found.spec, checked, proofs)
    where = _positions(plan)
    streams.publish(lambda name, screen: formats.rendered(verification, name, where, screen), shown, wanted)
    return first_of(_findings(verification, found))


def _positions(reference: str) -> Callable[[str], Position]:
    """Return what tells where the plan speaks of a subject; the file is read again when first asked, as few runs ask.

    It is kept for one run only: the next one in the same process may find another plan under the same name.
    """

    @functools.cache
    def places() -> Callable[[str], Position]:
        return places_in(plan_text(reference), reference)

    return lambda subject: places()(subject)


def _findings(verification: Verification, found: project.Project) -> Iterator[Finding]:
    if verification.broken or found.spec.expired_waivers():
        yield Finding.BROKEN
    if verification.stale:
        yield Finding.STALE
