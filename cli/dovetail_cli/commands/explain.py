"""`dovetail explain CODE`."""

from __future__ import annotations

import textwrap

import typer

from dovetail.faults import CODES, nearest
from dovetail_cli import streams
from dovetail_cli.exit_codes import ExitCode
from dovetail_cli.problems import usage


def run(code: str = typer.Argument(..., metavar="CODE", help="A code such as DT1103.")) -> ExitCode:
    """Say what a code means."""
    found = CODES.get(code.upper())
    if found is None:
        near = nearest(code.upper(), CODES)
        raise usage(f"there is no code '{code}'", f"did you mean {near}?" if near else "codes look like DT1103")
    streams.answer(f"{code.upper()}: {found.title}\n\n{textwrap.fill(found.explanation, 100)}")
    return ExitCode.DONE
