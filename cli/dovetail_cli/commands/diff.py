"""`dovetail diff A B [PATH]`."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.diff import PlanDiff, comparable, diff
from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail_cli import options, project, refusals, streams
from dovetail_cli.exit_codes import WITHOUT_PLAN, ExitCode, Finding, first_of
from dovetail_cli.plans import read_plan
from dovetail_cli.render import formats
from dovetail_cli.render.review import Review

_A = Annotated[str, typer.Argument(metavar="A", help="The plan before: a file or REV:path.")]
_B = Annotated[str, typer.Argument(metavar="B", help="The plan after: a file or REV:path.")]


def run(
    a: _A,
    b: _B,
    path: options.OptionalPath = None,
    exit_code: options.TellChanges = False,
    detail: options.Detail = False,
    output: options.Output = "table",
    as_of: options.AsOf = None,
    also: options.Also = None,
) -> ExitCode:
    """Compare two plans.

    With PATH, the documents of B, it also knows accelerators, work lost, and where policies are written. Never loads
    a solver. Where B is no plan it ends as its search did, with 5 or 7. Formats: table, json, yaml, md.
    """
    shown = options.output(output, formats.DIFF)
    wanted = options.renderings(also or (), formats.DIFF)
    day = options.as_of_documents(as_of, path)
    try:
        before, after = read_plan(a), read_plan(b)
        found = project.load(path, project.Question(day, before)) if path is not None else None
    except Refused as refused:
        return refusals.tell(refused, shown)
    if found is not None:
        project.tell_of_another(after, b, found)
    spec = found.spec if found else None
    change = diff(before, after, spec) if comparable(before, after) else None
    apart = before if change is None else None
    review = Review(after, change, a, spec, project.Places(found.documents if found else None), detail, apart)
    streams.publish(lambda name, screen: formats.of_diff(review, name, screen), shown, wanted)
    changed = [Finding.CHANGED] if exit_code and _changes(before, after, change) else []
    none = WITHOUT_PLAN.get(after.outcome.status)  # of the first side, which may be what it replaces, nothing is said
    return first_of([*([none] if none else []), *changed])


def _changes(before: Plan, after: Plan, change: PlanDiff | None) -> bool:
    return before.outcome.status != after.outcome.status if change is None else bool(change)
