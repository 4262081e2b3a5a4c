"""`dovetail verify PLAN [PATH]`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail.verify import STATE, Verification, lines, to_document
from dovetail_cli import files, library, options, planning, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import plan_text, read_plan
from dovetail_cli.problems import CommandError
from dovetail_cli.render import github, machine
from dovetail_cli.render.github import Annotation
from dovetail_cli.render.words import printable

if TYPE_CHECKING:
    from dovetail.proof.certificate import Certificate

FORMATS = ("table", "json", "yaml", "github")

_Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The plan: a file or REV:path.")]
_Base = Annotated[
    str | None,
    typer.Option("--base", metavar="PLAN", help="The base that the plan was made with: a file or REV:path."),
]


_Certificate = Annotated[
    str | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="The certificate of the plan: a file or REV:path; without it, X.cert.json beside X.yaml.",
    ),
]


def run(
    plan: _Plan,
    path: options.PathArgument = ".",
    base: _Base = None,
    current: options.Current = None,
    certificate: _Certificate = None,
    as_of: options.AsOf = None,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Check a plan.

    Everything in it is computed anew from the documents: capacities, policies, tiers, figures, digest. Of a plan that
    was made with --base or --current, what counts from that state is checked only where the same is given here; the
    result names what was not. Bounds that rest on a certificate are shown anew from it. Never loads a solver.
    Formats: table, json, yaml, github.
    """
    shown = options.output(output, FORMATS)
    wanted = options.renderings(also or (), FORMATS)
    try:
        checked = read_plan(plan)
        proofs = _certificate(checked, plan, certificate)
        before = read_plan(base) if base is not None else None
        question = project.Question(options.as_of(as_of), before, current)
        found = project.load(path, question)
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(found)
    planning.tell_waivers(found)
    verification = library.verify(found.spec, checked, proofs)
    streams.publish(lambda name, screen: _rendered(verification, name), shown, wanted)
    return first_of(_findings(verification, found))


def _certificate(plan: Plan, reference: str, named: str | None) -> Certificate | None:
    """Return the certificate that a plan claims to have: the one named, else the one beside it, if any."""
    if not plan.claims_certificate:
        return None
    if named is not None:
        return library.read_certificate(plan_text(named), named)
    beside = files.certificate_file(reference)
    try:
        text = plan_text(beside)
    except CommandError:
        return None
    return library.read_certificate(text, beside)


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
