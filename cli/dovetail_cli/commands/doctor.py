"""`dovetail doctor [PATH]`."""

from __future__ import annotations

from typing import Annotated

import typer

from dovetail.faults import Refused
from dovetail.model.report import report_on
from dovetail.problem import compile_problem
from dovetail.rules import context_of
from dovetail_cli import options, project, refusals, streams
from dovetail_cli.environment import environment
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import read_plan
from dovetail_cli.problems import usage
from dovetail_cli.render import doctor

_Model = Annotated[bool, typer.Option("--model", help="Report on the model of the project in PATH instead.")]
_Path = Annotated[
    str | None, typer.Argument(metavar="PATH", help="With --model: directory or file of the project; default `.`.")
]
_Detail = Annotated[bool, typer.Option("--detail", help="With --model: show every class and every shape.")]
_Base = Annotated[
    str | None,
    typer.Option("--base", metavar="PLAN", help="With --model: the plan to start from, a file or REV:path."),
]


def run(
    path: _Path = None,
    model: _Model = False,
    base: _Base = None,
    current: options.Current = None,
    as_of: options.AsOf = None,
    detail: _Detail = False,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Look at the installation, or at a model.

    Without --model: versions, whether every solver can be loaded, cores and memory; ends with 69 where no plan can be
    made here. With --model: classes of nodes, shapes of replicas, which attribute or rule splits them, the size of
    the exact model, and the steps of a search; nothing is solved and no solver is loaded.
    Formats: table, json, yaml.
    """
    shown = options.output(output, doctor.FORMATS)
    wanted = options.renderings(also or (), doctor.FORMATS)
    if model:
        try:
            before = read_plan(base) if base is not None else None
            found = project.load(path or ".", project.Question(options.as_of(as_of), before, current))
        except Refused as refused:
            return refusals.tell(refused, shown)
        project.tell_warnings(found.warnings)
        report = report_on(compile_problem(context_of(found.spec)))
        streams.publish(lambda name, screen: doctor.of_model(report, name, screen, detail=detail), shown, wanted)
        return ExitCode.DONE
    if detail or any(given is not None for given in (path, base, current, as_of)):
        raise usage("without --model there is no project to look at", "dovetail doctor --model PATH")
    here = environment()
    streams.publish(lambda name, screen: doctor.of_environment(here, name, screen), shown, wanted)
    return first_of([] if here.ok else [Finding.UNAVAILABLE])
