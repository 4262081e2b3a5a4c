"""`dovetail plan [PATH]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from dovetail.build import declares_current
from dovetail.diff import comparable, diff, since_today
from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail.progress import Limits
from dovetail.spec import Options
from dovetail_cli import files, models, options, planning, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import read_plan
from dovetail_cli.progress import Timeline
from dovetail_cli.render import formats
from dovetail_cli.render.review import Review

_Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="PLAN",
        help="The plan to start from, a file or REV:path: left side of the difference, a hint for the search, and "
        "what runs today unless --current or a Placement document says that.",
    ),
]
_Out = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write the plan here, whole or not at all.")]
_TimeLimit = Annotated[
    str | None,
    typer.Option("--time-limit", metavar="60s", help="A ceiling; what it cuts off may differ between runs."),
]
_Work = Annotated[
    float | None,
    typer.Option("--work", metavar="UNITS", help="Deterministic work; a unit is 1-2 s of a core; default 60."),
]
_Gap = Annotated[
    list[str] | None,
    typer.Option("--gap", metavar="G", help="Accept this gap in the admitted tiers; TIER=G in one tier; repeatable."),
]
_Fast = Annotated[bool, typer.Option("--fast", help="Search in parallel: quicker, but not reproducible.")]
_Certificate = Annotated[
    str | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="Write the certificate of the bounds here; without it, as X.cert.json beside --out X.yaml.",
    ),
]
_Second = Annotated[bool, typer.Option("--second-opinion", help="Ask an independent engine as well.")]

_WriteModel = Annotated[
    str | None,
    typer.Option("--write-model", metavar="FILE", help="First write the exact model: FILE.pb, FILE.mps or FILE.lp."),
]


def run(
    path: options.PathArgument = ".",
    base: _Base = None,
    current: options.Current = None,
    out: _Out = None,
    time_limit: _TimeLimit = None,
    work: _Work = None,
    gap: _Gap = None,
    max_moves: options.MaxMoves = None,
    pin: options.Pin = None,
    fast: _Fast = False,
    jobs: options.Jobs = None,
    memory: options.Memory = None,
    second_opinion: _Second = False,
    write_model: _WriteModel = None,
    certificate: _Certificate = None,
    as_of: options.AsOf = None,
    exit_code: options.TellChanges = False,
    detail: options.Detail = False,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Solve.

    The plan goes to --out and nowhere else; stdout shows the difference to the base (without one: to what runs
    today), or the plan with -o json|yaml.
    A plan says that a bound rests on a certificate only where that is kept: with --out or --certificate.
    Formats: table, json, yaml, md, github, gitlab, sarif. --max-moves and --pin are limits of this plan, which
    tells them.
    """
    shown = options.output(output, formats.PLAN)
    wanted = options.renderings(also or (), formats.PLAN)
    _check_out(out)
    if write_model is not None:
        models.check_file(write_model)
    _check_out(certificate)
    files.check_distinct(_outputs(wanted, out, certificate, write_model))
    accepted = options.gaps(gap or ())
    ends = options.seconds(time_limit), options.work(work), accepted.admitted or 0.0
    limits = Limits(*ends, fast, jobs, options.memory(memory))
    timeline = Timeline.starting("load")
    try:
        before = read_plan(base) if base is not None else None
        question = project.Question(options.as_of(as_of), before, current, Options(max_moves, tuple(pin or ())))
        found = project.judged(project.load(path, question))
    except Refused as refused:
        return refusals.tell(refused, shown)
    project.tell_warnings(found.warnings)
    project.tell_of_another(before, base, found)
    hint = before.placements if before else None
    if write_model is not None:
        timeline.phase("write model")
        models.write(found.spec, write_model)
    task = planning.Task(found, limits, hint, accepted, second_opinion, out, certificate)
    result = planning.run(task, timeline)
    review = _review(result.plan, before, base or "", found, detail=detail)
    streams.publish(lambda name, screen: formats.of_plan(review, name, screen), shown, wanted)
    return first_of([*result.findings, *([Finding.CHANGED] if exit_code and _changes(review) else [])])


def _outputs(
    wanted: Iterable[tuple[str, str]], out: str | None, certificate: str | None, model: str | None
) -> Iterator[str]:
    """Yield every file that the run may write."""
    yield from (file for _, file in wanted)
    if out is not None:
        yield from (out, files.run_file(out), certificate or files.certificate_file(out))
    elif certificate is not None:
        yield certificate
    if model is not None:
        yield model


def _check_out(out: str | None) -> None:
    if out is not None:
        files.check_replaceable(out)


def _review(plan: Plan, before: Plan | None, base: str, found: project.Project, *, detail: bool) -> Review:
    """Return what a reviewer is told: the difference to the base, else to what runs today, else no difference."""
    change, apart = None, None
    if before is not None and not comparable(before, plan):
        apart = before
    elif before is not None:
        change = diff(before, plan, found.spec, stated=declares_current(found.documents))
    elif found.spec.current.replicas and plan.outcome.status in ("optimal", "feasible"):
        change = since_today(plan, found.spec)
    return Review(plan, change, base, found.spec, project.Places(found.documents), detail, apart)


def _changes(review: Review) -> bool:
    return bool(review.plan.placements) if review.diff is None else bool(review.diff)
