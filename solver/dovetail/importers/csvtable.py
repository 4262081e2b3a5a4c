"""Tables in CSV files, read so that every cell keeps its place and all faults are told together."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dovetail.faults import FaultLog, Position, nearest

MAX_BYTES = 64_000_000
"""Size of a file; the limit of a document file."""

MAX_FAULTS = 100
"""Faults told of one file: a wrong column would otherwise tell one per row."""

LARGEST = 999_999_999
"""Largest number that a cell may hold unless a column's own limit is lower."""

_GUESSABLE = 100
"""Columns among which a misspelt one is looked for; no table of any trace has more."""

_INTEGER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its cells, stripped, by column name, and where it stands."""

    table: Table
    line: int
    text: str
    cells: dict[str, str]
    columns: dict[str, int]

    def fault(self, code: str, column: str, message: str, hint: str | None = None) -> None:
        """Log a fault at a cell."""
        self.table.fault(code, message, self.line, self.columns[column], self.text, hint)

    def integer(self, column: str, largest: int = LARGEST) -> int | None:
        """Return a cell as a whole number from 0 to `largest`; else log a fault and return None."""
        cell = self.cells[column]
        if _INTEGER.fullmatch(cell) and int(cell) <= largest:
            return int(cell)
        message = f"{column} is {_shown(cell)}, and must be a whole number from 0 to {largest}"
        self.fault("DT1952", column, message)
        return None


class Table:
    """A CSV file with a heading.

    Parameters
    ----------
    path
        The file; as given here it appears in faults.
    required
        Columns that must be there; others are allowed.
    log
        Takes the faults.
    """

    def __init__(self, path: Path, required: Sequence[str], log: FaultLog) -> None:
        self._file = str(path)
        self._log = log
        self._faults = 0
        self.rows: list[Row] = []
        lines = self._lines(path)
        if lines is not None:
            self._read(lines, required)

    def fault(self, code: str, message: str, line: int, column: int, text: str, hint: str | None = None) -> None:
        """Log a fault at a place; beyond `MAX_FAULTS` only that there are more."""
        self._faults += 1
        if self._faults <= MAX_FAULTS:
            self._log.add(code, message, Position(self._file, line, column), hint, source_line=text)
        elif self._faults == MAX_FAULTS + 1:
            message = f"more than {MAX_FAULTS} faults in this file; the rest are not shown"
            self._log.add("DT1115", message, Position(self._file, line, column), source_line=text)

    def _lines(self, path: Path) -> list[str] | None:
        try:
            with path.open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._log.add("DT1001", f"cannot read {self._file}: {reason}")
            return None
        if len(data) > MAX_BYTES:
            self._log.add("DT1002", f"{self._file} is larger than {MAX_BYTES // 10**6} MB")
            return None
        try:
            return [line.removesuffix("\r") for line in data.decode("utf-8-sig").split("\n")]
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - data.rfind(b"\n", 0, error.start)
            self._log.add("DT1003", "this byte is not UTF-8 text", Position(self._file, line, column))
            return None

    def _read(self, lines: list[str], required: Sequence[str]) -> None:
        heading = self._cells(lines[0], 1) if lines[0].strip() else []
        if heading is None or not self._heading_is_good(heading, required, lines[0]):
            return
        for number, text in enumerate(lines[1:], start=2):
            if text.strip():
                self._row(heading, text, number)
        if not self.rows and not self._faults:
            self.fault("DT1954", "the table has no rows", 1, 1, lines[0])

    def _heading_is_good(self, heading: list[str], required: Sequence[str], text: str) -> bool:
        if not heading:
            self.fault("DT1954", "the file is empty; its first line names the columns", 1, 1, text)
            return False
        missing = [column for column in required if column not in heading]
        for column in missing:
            near = nearest(column, set(heading[:_GUESSABLE]) - set(required))
            hint = f"is {_shown(near)} meant to be it?" if near else None
            self.fault("DT1951", f"the column {column} is missing", 1, 1, text, hint)
        twice = [column for column in required if heading.count(column) > 1]
        for column in twice:
            self.fault("DT1951", f"the column {column} is there more than once", 1, 1, text)
        return not missing and not twice

    def _row(self, heading: list[str], text: str, number: int) -> None:
        cells = self._cells(text, number)
        if cells is None:
            return
        if len(cells) != len(heading):
            message = f"the row has {len(cells)} cells, and the heading names {len(heading)} columns"
            self.fault("DT1956", message, number, 1, text)
            return
        columns = dict(zip(heading, _offsets(text, len(cells)), strict=True))
        self.rows.append(Row(self, number, text, dict(zip(heading, cells, strict=True)), columns))

    def _cells(self, text: str, number: int) -> list[str] | None:
        try:
            (cells,) = csv.reader([text], strict=True)
        except (csv.Error, ValueError) as error:
            self.fault("DT1956", f"the line is not CSV: {error}", number, 1, text)
            return None
        return [cell.strip() for cell in cells]


def _offsets(text: str, cells: int) -> list[int]:
    """Return the column, from 1, where each cell starts; 1 for all where quotes make it unsure."""
    if '"' in text:
        return [1] * cells
    starts = [1]
    for cell in text.split(",")[:-1]:
        starts.append(starts[-1] + len(cell) + 1)
    return starts


def _shown(cell: str) -> str:
    return repr(cell if len(cell) <= 40 else cell[:40] + "...") if cell else "empty"
