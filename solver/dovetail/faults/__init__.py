"""Faults: what is wrong with the input, where, and what to do about it.

Errors carry data; text is made at the edge. A :class:`Refused` holds *all* faults of all documents together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from unicodedata import combining, east_asian_width

from dovetail.faults.codes import CODES, CodeInfo

__all__ = [
    "CODES",
    "CodeInfo",
    "Fault",
    "FaultLog",
    "Position",
    "Refused",
    "Severity",
    "nearest",
    "render_fault",
    "render_faults",
    "sort_key",
    "sorted_faults",
    "to_document",
]

Severity = Literal["error", "warning"]

_LONGEST_GUESSED_WORD: Final = 64
_WIDEST_SOURCE_LINE: Final = 160


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with the input.

    Parameters
    ----------
    code
        A key of :data:`CODES`.
    message
        One sentence in plain English, without a final stop.
    position
        Where; None when no place in a file can be named.
    hint
        What to write instead, when something near is known.
    severity
        ``error`` refuses the input, ``warning`` does not.
    source_line
        The text of the line, for the rendering with a caret.
    """

    code: str
    message: str
    position: Position | None
    hint: str | None = None
    severity: Severity = "error"
    source_line: str | None = None


def sort_key(fault: Fault) -> tuple[object, ...]:
    """Order faults by place; those without a place come last."""
    place = fault.position or Position("", 0, 0)
    return (fault.position is None, place.file, place.line, place.column, fault.code, fault.message)


def sorted_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Return the faults in order of place, each once."""
    return tuple(sorted(dict.fromkeys(faults), key=sort_key))


class Refused(Exception):
    """The input is refused; ``faults`` holds every error found, sorted by place."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = sorted_faults(faults)
        super().__init__(self.faults)

    def __str__(self) -> str:
        return render_faults(self.faults)


@dataclass(slots=True)
class FaultLog:
    """Collects faults, so that all of them are told together."""

    _faults: list[Fault] = field(default_factory=list)

    def add(
        self,
        code: str,
        message: str,
        position: Position | None = None,
        hint: str | None = None,
        severity: Severity = "error",
        source_line: str | None = None,
    ) -> None:
        """Add one fault from its parts."""
        self.append(Fault(code, message, position, hint, severity, source_line))

    def append(self, fault: Fault) -> None:
        """Add one fault."""
        self._faults.append(fault)

    def extend(self, faults: Iterable[Fault]) -> None:
        """Add several faults."""
        for fault in faults:
            self.append(fault)

    @property
    def errors(self) -> tuple[Fault, ...]:
        """The faults that refuse the input, in order of place."""
        return sorted_faults(fault for fault in self._faults if fault.severity == "error")

    @property
    def warnings(self) -> tuple[Fault, ...]:
        """The faults that do not refuse the input, in order of place."""
        return sorted_faults(fault for fault in self._faults if fault.severity == "warning")

    def raise_if_errors(self) -> None:
        """Raise :class:`Refused` with the errors, if there are any."""
        if errors := self.errors:
            raise Refused(errors)


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that was probably meant, or None when none is near."""
    if len(word) > _LONGEST_GUESSED_WORD:
        return None
    by_lower: dict[str, str] = {}
    for choice in sorted(choices):
        by_lower.setdefault(choice.lower(), choice)
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def render_fault(fault: Fault) -> str:
    """Return one fault as text: place, message, the line with a caret, the hint.

    Names of files may hold line ends, which could pass for a line of our own.
    """
    place = f"{fault.position}: " if fault.position else ""
    lines = [f"{place}{fault.severity} {fault.code}: {fault.message}".replace("\n", "?").replace("\r", "?")]
    if fault.position is not None and fault.source_line is not None:
        lines += _with_caret(fault.source_line, fault.position.column)
    if fault.hint:
        lines.append(f"  hint: {fault.hint}")
    return "\n".join(lines)


def render_faults(faults: Iterable[Fault]) -> str:
    """Return several faults as text, one after the other."""
    return "\n".join(render_fault(fault) for fault in faults)


def to_document(faults: Iterable[Fault], name: str = "faults") -> dict[str, Any]:
    """Return the faults as a document of kind Faults."""
    return {
        "apiVersion": "dovetail/v1alpha1",
        "kind": "Faults",
        "metadata": {"name": name},
        "spec": {"faults": [_row(fault) for fault in sorted_faults(faults)]},
    }


def _row(fault: Fault) -> dict[str, Any]:
    row: dict[str, Any] = {"code": fault.code, "severity": fault.severity, "message": fault.message}
    if fault.position is not None:
        row |= {"file": fault.position.file, "line": fault.position.line, "column": fault.position.column}
    if fault.hint is not None:
        row["hint"] = fault.hint
    return row


def _with_caret(line: str, column: int) -> list[str]:
    """Return the line and a caret below the column; a very long line is cut around it."""
    start = 0
    if len(line) > _WIDEST_SOURCE_LINE:
        start = max(0, column - 1 - _WIDEST_SOURCE_LINE // 2)
        line = line[start : start + _WIDEST_SOURCE_LINE]
    line = "".join(char if char.isprintable() else " " for char in line)
    return [f"  | {line}", "  | " + " " * _cells(line[: column - 1 - start]) + "^"]


def _cells(text: str) -> int:
    """Return how many columns of a terminal a text takes: wide characters take two, combining ones none."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
