"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated

import typer

from dovetail.progress import Limits
from dovetail.quantities import QuantityError, parse_date, parse_duration, parse_memory
from dovetail_cli import files
from dovetail_cli.problems import usage
from dovetail_cli.render.words import printable

PathArgument = Annotated[str, typer.Argument(metavar="PATH", help="Directory or file of the project.")]
OptionalPath = Annotated[
    str | None,
    typer.Argument(metavar="PATH", help="Directory or file of the project, for what only documents know."),
]
LastPath = Annotated[
    str | None, typer.Argument(metavar="PATH", help="Directory or file of the project; default `.`.")
]
AsOf = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="DATE",
        help="Date that waivers, deadlines and windows of moves are judged at (YYYY-MM-DD); default today, UTC.",
    ),
]
Base = Annotated[
    str | None,
    typer.Option("--base", metavar="PLAN", help="The plan that says what runs today: a file or REV:path."),
]
Current = Annotated[
    str | None,
    typer.Option("--current", metavar="FILE", help="What runs today: a Placement document or a plan."),
]
Certificate = Annotated[
    str | None,
    typer.Option(
        "--certificate",
        metavar="FILE",
        help="The certificate of the plan: a file or REV:path; without it, X.cert.json beside X.yaml.",
    ),
]
MaxMoves = Annotated[
    int | None,
    typer.Option("--max-moves", min=0, metavar="N", help="Move at most N running replicas."),
]
Pin = Annotated[
    list[str] | None,
    typer.Option("--pin", metavar="WORKLOAD", help="Move no replica of this workload; repeatable."),
]
Detail = Annotated[bool, typer.Option("--detail", help="Show every replica and everything unchanged.")]
TellChanges = Annotated[bool, typer.Option("--exit-code", help="End with 2 where there are changes.")]
Also = Annotated[
    list[str] | None,
    typer.Option("--also", metavar="FORMAT=FILE", help="Write another rendering of the same run; repeatable."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        max=1024,
        metavar="N",
        help="Solve parts in N processes side by side, which changes the time and not the plan; default 1, "
        "with --time-limit or --fast one per processor.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="8Gi",
        help="What each process of the search may take; default four fifths of the machine's memory.",
    ),
]
EachTimeLimit = Annotated[
    str | None,
    typer.Option("--time-limit", metavar="60s", help="A ceiling for each plan; what it cuts off may differ."),
]
EachWork = Annotated[
    float | None,
    typer.Option("--work", metavar="UNITS", help="Deterministic work for each plan; a unit is 1-2 s of a core."),
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="FORMAT", help="How to print the result.")]


@dataclass(frozen=True, slots=True)
class Gaps:
    """The largest gaps that a run accepts: of the admitted tiers, and of tiers by name."""

    admitted: float | None = None
    tiers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, tier: str) -> float | None:
        """Return the largest gap of a tier, None where any will do."""
        if tier in self.tiers:
            return self.tiers[tier]
        return self.admitted if tier.startswith(("admitted[", "admitted-cpu[")) else None


def gaps(given: Iterable[str]) -> Gaps:
    """Read the values of `--gap`: `0.01` for the admitted tiers, `TIER=G` for one tier."""
    admitted: float | None = None
    tiers: dict[str, float] = {}
    for text in given:
        tier, equals, number = text.rpartition("=")
        value = _ratio(number, text)
        if tier in tiers or (not equals and admitted is not None):
            raise usage(
                f"--gap {printable(text)}: a gap of {printable(tier) or 'the admitted tiers'} is given already"
            )
        if equals:
            tiers[tier] = value
        else:
            admitted = value
    return Gaps(admitted, tiers)


def _ratio(number: str, text: str) -> float:
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise usage(
            f"--gap {printable(text)}: expected a number from 0 to 1", "0.01 is one per cent; TIER=G is one tier's"
        )
    return value


def seconds(text: str | None) -> float | None:
    """Read a time limit such as `60s` or `5m`; a plain number is seconds."""
    if text is None:
        return None
    try:
        milliseconds = parse_duration(f"{text}s" if text.replace(".", "", 1).isdigit() else text)
    except QuantityError as error:
        raise usage(f"--time-limit: {error}", "write it as 60s, 5m or 1h30m") from None
    if milliseconds <= 0:
        raise usage("--time-limit must be more than nothing", "write it as 60s, 5m or 1h30m")
    return milliseconds / 1000


def memory(text: str | None) -> int | None:
    """Read an amount of memory such as `8Gi`, in bytes."""
    if text is None:
        return None
    try:
        mebibytes = parse_memory(text, "down")
    except QuantityError as error:
        raise usage(f"--memory: {error}", error.hint or "write it as 8Gi or 500Mi") from None
    if mebibytes <= 0:
        raise usage(
            f"--memory {printable(text)} is less than one MiB: a plain number is bytes", "write it as 8Gi or 500Mi"
        )
    return mebibytes * 2**20


def as_of(text: str | None) -> dt.date:
    """Read the date that a plan is made for; by default today, UTC."""
    if text is None:
        return dt.datetime.now(dt.UTC).date()
    try:
        return parse_date(text)
    except QuantityError as error:
        raise usage(f"--as-of: {error}", "write it as 2026-12-31") from None


def as_of_documents(text: str | None, path: str | None) -> dt.date:
    """Read the date that documents are judged at, where these may be left out."""
    if text is not None and path is None:
        raise usage("--as-of needs the documents: give PATH", "a plan alone was judged when it was made")
    return as_of(text)


def work(units: float | None) -> float | None:
    """Return the deterministic work asked for."""
    if units is not None and not units > 0:
        raise usage("--work must be more than nothing")
    return units


def limits(time_limit: str | None, *, units: float | None, jobs: int | None, most: str | None) -> Limits:
    """Read the limits of each search of a command that makes several: a ceiling, work, processes, memory."""
    return Limits(seconds(time_limit), work(units), jobs=jobs, memory=memory(most))


def told_apart(word: str | None, path: str | None) -> tuple[str | None, str | None]:
    """Return two optional words, of which a lone one that is a file or a directory is PATH."""
    return (None, word) if path is None and word is not None and os.path.exists(word) else (word, path)


def output(given: str, allowed: tuple[str, ...]) -> str:
    """Return the format asked for."""
    if given not in allowed:
        hint = (
            "-o names a format; files are named by --out, where a command has it" if {".", "/"} & {*given} else None
        )
        raise usage(f"-o {printable(given)}: this command prints {', '.join(allowed)}", hint)
    return given


def renderings(given: Iterable[str], allowed: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Read the values of `--also` into pairs of format and file, which can be written."""
    found = []
    for text in given:
        name, equals, file = text.partition("=")
        if not equals or not file or name not in allowed:
            raise usage(f"--also {printable(text)}: expected FORMAT=FILE, FORMAT one of {', '.join(allowed)}")
        files.check_writable(file)
        found.append((name, file))
    files.check_distinct(file for _, file in found)
    return tuple(found)
