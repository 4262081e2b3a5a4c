"""The two streams: stdout holds the asked-for document and nothing else, everything said about it goes to stderr."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import TextIO

from dovetail_cli import files
from dovetail_cli.render.columns import PLAIN, Screen
from dovetail_cli.render.words import printable


def prepare() -> None:
    """Make both streams take any text, whatever the encoding of the terminal; a closed one leads nowhere."""
    for number in range(3):
        _reserve(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _reserve(number: int) -> None:
    """Lead a descriptor that is closed nowhere, before a file of ours gets its number."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free


def answer(text: str) -> None:
    """Write the asked-for document to stdout.

    A reader that has gone away (`| head`) is no failure: the run ends with the code that it would have had.
    """
    try:
        sys.stdout.write(text if text.endswith("\n") or not text else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
    except OSError as error:
        _discard(sys.stdout)
        raise files.unwritable("stdout", error) from error


def publish(render: Callable[[str, Screen], str], shown: str, also: Iterable[tuple[str, str]] = ()) -> None:
    """Write renderings of one result: files first, then the asked-for one to stdout.

    Parameters
    ----------
    render : from the name of a format, and what it is printed on, to its text.
    also : pairs of format and file.
    """
    for name, file in also:
        files.write(file, render(name, PLAIN))
    answer(render(shown, Screen(width(sys.stdout), colours(sys.stdout))))


def say(text: str) -> None:
    """Write one message for people to stderr; control characters are made visible."""
    try:
        sys.stderr.write(printable(text, keep="\n") + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        _discard(sys.stderr)


def warn(text: str) -> None:
    """Write a warning to stderr."""
    say(f"dovetail: warning: {text}")


def _discard(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that the interpreter does not complain at its end."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


def is_live(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that understands a carriage return."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def colours(stream: TextIO) -> bool:
    """Tell whether to colour what goes to a stream: terminals only, unless `NO_COLOR` is set and not empty."""
    return is_live(stream) and not os.environ.get("NO_COLOR")


def width(stream: TextIO) -> int | None:
    """Return how many columns to fill, None for no limit: `COLUMNS`, else the terminal's; pipes have no limit."""
    if not stream.isatty():
        return None
    return max(40, shutil.get_terminal_size().columns)
