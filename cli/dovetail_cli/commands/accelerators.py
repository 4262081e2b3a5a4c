"""`dovetail accelerators [NAME] [PATH]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from dovetail.build.acceleratorlist import Listed, listed, named
from dovetail.documents import load_project
from dovetail.faults import Refused
from dovetail_cli import options, refusals, streams
from dovetail_cli.exit_codes import ExitCode
from dovetail_cli.problems import usage
from dovetail_cli.render import accelerators as formats
from dovetail_cli.render.columns import Screen
from dovetail_cli.render.words import printable

_Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="An id or alias; without it, all are listed. A lone file or directory is PATH."
    ),
]
_Path = Annotated[str | None, typer.Argument(metavar="PATH", help="A project whose Accelerator documents count too.")]
_Detail = Annotated[bool, typer.Option("--detail", help="Draw layouts with variants of profiles, such as +me, too.")]


def run(
    name: _Name = None,
    path: _Path = None,
    detail: _Detail = False,
    output: options.Output = "table",
    also: options.Also = None,
) -> ExitCode:
    """Look up accelerators.

    With NAME: memory, slices, profiles and engines, where MIG instances may stand, and every layout that takes no
    further instance, drawn by memory slice. Formats: table, json, yaml (an AcceleratorList).
    """
    shown = options.output(output, formats.FORMATS)
    wanted = options.renderings(also or (), formats.FORMATS)
    name, where = options.told_apart(name, path)
    try:
        documents = load_project(where).of_kind("Accelerator") if where is not None else ()
        found = listed(documents)
    except Refused as refused:
        return refusals.tell(refused, shown)
    chosen = None if name is None else _chosen(name, found)

    def render(form: str, screen: Screen) -> str:
        if chosen is None:
            return formats.of_all(tuple(found.values()), form, screen)
        return formats.of_one(chosen, form, screen, detail=detail)

    streams.publish(render, shown, wanted)
    return ExitCode.DONE


def _chosen(name: str, found: Mapping[str, Listed]) -> Listed:
    one, near = named(name, found)
    if one is None:
        hint = f"did you mean {near}?" if near else "dovetail accelerators lists them"
        raise usage(f"there is no accelerator '{printable(name)}'", hint)
    return one
