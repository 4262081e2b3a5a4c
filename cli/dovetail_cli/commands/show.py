"""`dovetail show PLAN [PATH]`."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.faults import Refused
from dovetail.plan import Plan
from dovetail.spec import Spec
from dovetail_cli import options, project, refusals, streams
from dovetail_cli.exit_codes import ExitCode
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import usage
from dovetail_cli.render import formats, gangs, grouping, text
from dovetail_cli.render.columns import PLAIN, Screen
from dovetail_cli.render.review import Review

FORMATS = ("table", "json", "yaml", "md")

_Plan = Annotated[str, typer.Argument(metavar="PLAN", help="The plan: a file or REV:path.")]
_GROUPINGS = "Group the rows, or show gangs by rank or by domain; topology, tenant and LEVEL need PATH."
_By = Annotated[str | None, typer.Option("--by", metavar="node|workload|gang|topology|tenant|LEVEL", help=_GROUPINGS)]


def run(
    plan: _Plan,
    path: options.OptionalPath = None,
    by: _By = None,
    detail: options.Detail = False,
    output: options.Output = "table",
    as_of: options.AsOf = None,
    also: options.Also = None,
) -> ExitCode:
    """Read a plan.

    Shows how good it is (every tier with its bound and what the bound rests on), what runs where, and what is left
    out. Reads the plan alone unless PATH is given. Formats: table, json, yaml, md.
    """
    shown = options.output(output, FORMATS)
    wanted = options.renderings(also or (), FORMATS)
    if by is not None and "table" not in (shown, *(name for name, _ in wanted)):
        raise usage(f"--by groups the rows of the table, and -o {shown} has none", "leave one of them out")
    day = options.as_of_documents(as_of, path)
    try:
        found = read_plan(plan)
        documents = project.load(path, project.Question(day)) if path is not None else None
    except Refused as refused:
        return refusals.tell(refused, shown)
    if documents is not None:
        project.tell_of_another(found, plan, documents)
    spec = documents.spec if documents else None
    review = Review(
        found, spec=spec, places=project.Places(documents.documents if documents else None), detail=detail
    )
    body(found, spec, by, PLAIN)  # a group that is not known is told before anything is printed

    def render(name: str, screen: Screen) -> str:
        if name == "table":
            return text.rendered(review, screen, "show", body(found, spec, by, screen))
        return formats.of_plan(review, name, screen)

    streams.publish(render, shown, wanted)
    return ExitCode.DONE


def body(plan: Plan, spec: Spec | None, by: str | None, screen: Screen) -> list[str] | None:
    """Return the lines that `--by` asks for, None where it is not given; a level goes before a view of its name."""
    if by is None:
        return None
    if by in gangs.VIEWS and not (spec and by in spec.cluster.levels):
        return gangs.lines(plan, spec, by, screen)
    return text.group_lines(grouping.groups(plan, spec, by), screen)
