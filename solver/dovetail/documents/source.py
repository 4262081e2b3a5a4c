"""The text of a file, and how places in it are named."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from dovetail.faults import Fault, FaultLog, Position, Severity

LARGEST_FILE: Final = 64 * 2**20
"""Bytes a document file may have."""

DEEPEST: Final = 64
"""How deep values may be nested."""

MOST_FAULTS: Final = 100
"""Faults reported per file; those after them are usually consequences."""

_LINE_BREAK: Final = re.compile(r"\r\n|\r|\n")
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# What YAML 1.2 does not allow, and the separators that only some editors count as line breaks.
_CONTROL: Final = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


class TooManyFaults(Exception):
    """Reading of this file is given up."""


class Source:
    """The decoded text of one file.

    Parameters
    ----------
    file
        The name shown to people.
    text
        Decoded, without byte order mark.
    """

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self._last_line: tuple[int, str] = (0, "")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_BREAK.finditer(self.text))]

    def position(self, offset: int) -> Position:
        """Return the line and column of a character."""
        line = bisect_right(self._line_starts, offset)
        return Position(self.file, line, offset - self._line_starts[line - 1] + 1)

    def line_text(self, line: int) -> str:
        """Return the text of a line, counted from 1, without its line break."""
        if not 1 <= line <= len(self._line_starts):
            return ""
        # Many faults of one very long line share one copy of it.
        if self._last_line[0] != line:
            start = self._line_starts[line - 1]
            end = self._line_starts[line] if line < len(self._line_starts) else len(self.text)
            self._last_line = (line, self.text[start:end].rstrip("\r\n"))
        return self._last_line[1]

    def fault(
        self, code: str, message: str, offset: int, hint: str | None = None, severity: Severity = "error"
    ) -> Fault:
        """Return a fault at a character, with the text of its line."""
        position = self.position(min(max(offset, 0), len(self.text)))
        return Fault(code, message, position, hint, severity, self.line_text(position.line))


class SourceLog:
    """Adds faults of one source to a log, up to a limit."""

    def __init__(self, source: Source, log: FaultLog) -> None:
        self.source = source
        self._log = log
        self._left = MOST_FAULTS

    def add(self, code: str, message: str, offset: int, hint: str | None = None) -> None:
        """Add a fault; raise :class:`TooManyFaults` at the limit."""
        if self._left == 0:
            self._log.append(self.source.fault("DT1115", "this file has more faults than are shown", offset))
            raise TooManyFaults
        self._left -= 1
        self._log.append(self.source.fault(code, message, offset, hint))


def decode(data: bytes, file: str, log: FaultLog) -> Source | None:
    """Return the text of a file, or None after adding a fault."""
    if len(data) > LARGEST_FILE:
        log.add("DT1002", f"the file is larger than {LARGEST_FILE // 2**20} MB", Position(file, 1, 1))
        return None
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        good = data[: error.start].decode("utf-8")
        source = Source(file, good)
        hint = "it is UTF-16; save it as UTF-8" if data.startswith(_UTF16) else None
        log.append(source.fault("DT1003", f"byte 0x{data[error.start]:02x} is not UTF-8 text", len(good), hint))
        return None
    return checked(Source(file, text), log)


def checked(source: Source, log: FaultLog) -> Source | None:
    """Return the source, or None after adding a fault when it holds characters that are not text."""
    found = _CONTROL.search(source.text)
    if found is None:
        return source
    message = f"character U+{ord(found.group()):04X} is not allowed in a document"
    log.append(source.fault("DT1003", message, found.start(), "write it as an escape in a quoted text"))
    return None
