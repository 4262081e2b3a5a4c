"""Text files of other programs, read whole."""

from __future__ import annotations

from pathlib import Path

from dovetail.documents.source import Source, decode
from dovetail.faults import FaultLog


def text_of(path: Path, log: FaultLog) -> Source | None:
    """Return the text of a file, or None after a fault: it cannot be read, is too large, or is not UTF-8."""
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        log.add("DT1001", f"cannot read {path}: {reason}")
        return None
    return decode(data, str(path), log)
