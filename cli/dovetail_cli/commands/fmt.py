"""`dovetail fmt [PATH...]`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dovetail.documents import load_project
from dovetail.documents.format import format_text, kinds_in
from dovetail.plan import Plan, read, write
from dovetail.plan.canonical import flow, text
from dovetail.plan.plain import place_row
from dovetail_cli import files, streams
from dovetail_cli.exit_codes import ExitCode, Finding, first_of
from dovetail_cli.plans import file_text
from dovetail_cli.render.words import printable

_Paths = Annotated[list[str] | None, typer.Argument(metavar="PATH", help="Files, or directories of projects.")]
_Check = Annotated[
    bool, typer.Option("--check", help="Write nothing; name the files, and end with 2 if there are any.")
]
_Expand = Annotated[bool, typer.Option("--expand", help="Give every replica of a plan a row of its own.")]
_NO_PLACES = "  placements: {}"


def run(paths: _Paths = None, check: _Check = False, expand: _Expand = False) -> ExitCode:
    """Format files.

    Documents keep their comments and their meaning: white space and the order of apiVersion, kind, metadata and spec
    are put right. Plans are written anew. JSON files are left alone. PATH names files here, never
    revisions.
    """
    changed = {}
    for file in dict.fromkeys(_files(paths or ["."])):
        before = file_text(file)
        after = _formatted(before, file, expand=expand)
        if after != before:
            changed[file] = after
    if not check:
        files.write_all(changed)
    streams.answer(printable("\n".join(changed), keep="\n"))
    return first_of([Finding.CHANGED] if check and changed else [])


def _files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the files to format: those named, and those that hold documents of the projects named."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for document in load_project(path).documents:
            if Path(document.file).is_file() and not document.file.endswith(".json"):
                yield document.file


def _formatted(before: str, file: str, *, expand: bool) -> str:
    if "Plan" not in kinds_in(before, file):
        return format_text(before, file)
    plan = read(before, file)
    return expanded(plan) if expand else write(plan)


def expanded(plan: Plan) -> str:
    """Return a plan's text with a row for every replica, sorted by bytes."""
    if not plan.placements:
        return write(plan)
    rows = sorted((str(replica), place) for replica, place in plan.placements.items())
    lines = ["  placements:"]
    for key, place in rows:
        row = place_row(place)
        lines.append(f"    {text(key)}: {flow(row)}")
    return write(replace(plan, placements={})).replace(_NO_PLACES, "\n".join(lines), 1)
