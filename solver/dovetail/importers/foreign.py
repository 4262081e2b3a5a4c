"""Documents of other programs in YAML or JSON, read so that every value keeps its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dovetail.documents.document import Document
from dovetail.documents.reading import read_source
from dovetail.documents.source import decode
from dovetail.faults import Fault, FaultLog, Position
from dovetail.importers.sources import text_of

MOST_FAULTS: Final = 100
PathPart = str | int


class Foreign:
    """One document of another program.

    Parameters
    ----------
    document : as read; nothing is known of its form.
    log : takes the faults, up to a limit.
    """

    def __init__(self, document: Document, log: FaultLog) -> None:
        self._document = document
        self._log = log
        self._left = MOST_FAULTS

    @property
    def value(self) -> dict[str, Any]:
        """The whole document."""
        return self._document.value

    def fault(self, code: str, message: str, *path: PathPart, hint: str | None = None, of_key: bool = False) -> None:
        """Log a fault at the value at a path, or at its key."""
        self._left -= 1
        if self._left >= 0:
            self._log.append(self._document.fault(code, message, *path, hint=hint, of_key=of_key))
        elif self._left == -1:
            self._log.append(self._document.fault("DT1115", "this file has more faults than are shown", *path))

    def warning(self, code: str, message: str, *path: PathPart, hint: str | None = None) -> None:
        """Log what does not refuse the file, at the value at a path."""
        self._log.append(self._document.fault(code, message, *path, hint=hint, severity="warning"))


def read(path: Path, log: FaultLog) -> Iterator[Foreign]:
    """Yield the documents of a file; faults of reading it go to the log."""
    source = text_of(path, log)
    if source is not None:
        for document in read_source(source, log):
            yield Foreign(document, log)


def single(path: Path, log: FaultLog, what: str) -> Foreign | None:
    """Return the one document of a file; a fault and None where it holds none or several."""
    before = len(log.errors)
    found = list(read(path, log))
    if len(found) == 1:
        return found[0]
    if len(log.errors) == before:
        number = "several documents" if found else "nothing"
        hint = f"give a file with {what} alone"
        log.add("DT1957", f"{path} holds {number}, and {what} was expected", Position(str(path), 1, 1), hint)
    return None


def read_list(path: Path, log: FaultLog, name: str) -> Foreign | None:
    """Return a file that holds a list as a document with that list under a name, None after a fault of reading it."""
    whole = text_of(path, log)
    if whole is None:
        return None
    items = _START.sub(r"\1", whole.text)
    first = _CONTENT.search(items)
    if first is not None and not first[1].startswith("-"):
        line = items.count("\n", 0, first.start(1)) + 1
        message = f"{path} must be a list, an entry a line with '-'"
        log.add("DT1957", message, Position(str(path), line, 1), "as topology.yaml(5) of Slurm says")
        return None
    below = _LineAbove(log)
    source = decode(f"{name}:\n{items}".encode(), str(path), below)
    documents = read_source(source, below) if source is not None else []
    return Foreign(documents[0], below) if documents else None


_START: Final = re.compile(r"\A((?:[ \t]*(?:#[^\n]*)?\n)*)---[^\n]*")


_CONTENT: Final = re.compile(r"^[ \t]*(?![ \t#]|$)(.+)", re.MULTILINE)


class _LineAbove(FaultLog):
    """Hands faults on to another log, as of a file with a line less at its beginning."""

    def __init__(self, log: FaultLog) -> None:
        super().__init__()
        self._log = log

    def append(self, fault: Fault) -> None:
        """Add one fault."""
        place = fault.position
        above = None if place is None else replace(place, line=max(1, place.line - 1))
        self._log.append(replace(fault, position=above))
