"""Slurm's configuration files: lines of `Key=Value` pairs, comments, continued lines.

As Slurm reads them (`parse_config.c`): a comment ends with its line, whatever it ends in, and a line that ends in a
backslash goes on with the next, with nothing between them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail import hostlist
from dovetail.faults import FaultLog, Position
from dovetail.importers.sources import text_of

MOST_NAMES: Final = 100_000
_INCLUDE: Final = re.compile(r"\s*include\s", re.IGNORECASE)
_PAIR: Final = re.compile(r'([A-Za-z0-9_]+)\s*=\s*("[^"]*"|[^\s"]+)')


@dataclass(frozen=True, slots=True)
class Line:
    """A line: its values by key in lower case, and the column, from 1, where each begins."""

    file: str
    number: int
    text: str
    values: Mapping[str, str]
    columns: Mapping[str, int]

    def fault(self, log: FaultLog, message: str, key: str = "", hint: str | None = None) -> None:
        """Log a fault at a value, or at the line."""
        log.add("DT1957", message, self._at(key), hint, source_line=self.text)

    def warning(self, log: FaultLog, message: str, key: str, hint: str) -> None:
        """Log what is left out of the import, at a value."""
        log.add("DT1959", message, self._at(key), hint, "warning", self.text)

    def _at(self, key: str) -> Position:
        return Position(self.file, self.number, self.columns.get(key, 1))

    def spelt(self, key: str) -> str:
        """Return a key as the line has it."""
        at = self.text.lower().find(key)
        return self.text[at : at + len(key)]

    def names(self, log: FaultLog, key: str) -> list[str]:
        """Return the names that a value stands for, none after a fault."""
        try:
            return hostlist.expand(self.values[key], limit=MOST_NAMES)
        except hostlist.HostlistError as error:
            self.fault(log, f"a list of {key}: {error}", key, "such as gpu[01-16,20]")
            return []

    def integer(self, log: FaultLog, key: str, default: int) -> int:
        """Return a value as a whole number."""
        text = self.values.get(key)
        if text is None:
            return default
        if re.fullmatch(r"[0-9]{1,12}", text, re.ASCII):
            return int(text)
        self.fault(log, f"{key} is {text[:40]!r}, and must be a whole number", key, "such as 96")
        return default


def read_lines(path: Path, log: FaultLog) -> Iterator[Line]:
    """Yield the lines of a file that say anything; what is no pair is a fault."""
    source = text_of(path, log)
    for number, text in _joined(source.text.split("\n") if source else []):
        line = _line(str(path), number, text)
        if line.values:
            yield line
        elif _INCLUDE.match(text):
            line.fault(log, "Include is not followed", hint="put what it includes in its place")
        elif text.split("#")[0].strip():
            line.fault(log, "the line is no list of Key=Value pairs", hint="comments begin with #")


def _joined(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers, those that end in a backslash together with the next."""
    whole, first = "", 0
    for number, text in enumerate(lines, start=1):
        first = first or number
        said = text.split("#")[0].rstrip()
        if (len(said) - len(said.rstrip("\\"))) % 2:
            whole += said[:-1]
            continue
        yield first, whole + text
        whole, first = "", 0
    if whole:
        yield first, whole


def _line(file: str, number: int, text: str) -> Line:
    said = text.split("#")[0]
    found = list(_PAIR.finditer(said))
    rest = _PAIR.sub("", said).strip()
    values = {} if rest else {each[1].lower(): each[2].strip('"') for each in found}
    return Line(file, number, text, values, {each[1].lower(): each.start(2) + 1 for each in found})
