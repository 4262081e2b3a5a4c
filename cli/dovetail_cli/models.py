"""`--write-model`: the exact model of a project as a file for other solvers."""

from __future__ import annotations

from pathlib import PurePath

from dovetail.spec import Spec
from dovetail_cli import files
from dovetail_cli.exit_codes import Finding
from dovetail_cli.problems import CommandError, usage
from dovetail_cli.render.words import printable

SUFFIXES = (".pb", ".mps", ".lp")
"""The endings that say which format a model is written in."""


def check_file(file: str) -> None:
    """Refuse a file of an unknown format, or that can never be written, before any work is done for it."""
    if _suffix(file) not in SUFFIXES:
        raise usage(
            f"--write-model {printable(file)}: the ending says the format, one of {', '.join(SUFFIXES)}",
            "CP-SAT reads .pb, nearly every other solver .mps; .lp is for people too",
        )
    files.check_writable(file)


def write(spec: Spec, file: str) -> None:
    """Write the exact model of a Spec, whole or not at all; one that is too large is refused before it is built."""
    try:
        from dovetail.engine.write_model import TooLargeToWrite, write_model
    except ImportError as error:
        raise CommandError(Finding.UNAVAILABLE, f"a solver cannot be loaded: {error}", "dovetail doctor") from error
    try:
        content = write_model(spec, _suffix(file))
    except TooLargeToWrite as error:
        hint = "dovetail doctor --model says what it is made of"
        raise CommandError(Finding.UNAVAILABLE, f"no model is written: {error}", hint) from error
    files.write(file, content)


def _suffix(file: str) -> str:
    return PurePath(file).suffix.lower()
