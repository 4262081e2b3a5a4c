"""Documents of other programs in YAML or JSON, read so that every value keeps its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dovetail.documents.document import Document
from dovetail.documents.reading import read_source
from dovetail.documents.source import decode
from dovetail.faults import FaultLog, Position

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


def read(path: Path, log: FaultLog) -> Iterator[Foreign]:
    """Yield the documents of a file; faults of reading it go to the log."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        log.add("DT1001", f"cannot read {path}: {reason}")
        return
    source = decode(data, str(path), log)
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
        log.add("DT1957", f"{path} holds {number}, and {what} was expected", Position(str(path), 1, 1))
    return None
