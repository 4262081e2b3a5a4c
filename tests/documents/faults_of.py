"""The faults of a file of documents, and those that its header expects."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

from dovetail.build import build, contradictions
from dovetail.documents import load_project
from dovetail.faults import Fault, Refused
from dovetail.testing import check_tests

AS_OF = dt.date(2026, 6, 1)
EXPECTED = re.compile(r"^# expect: (DT\d{4}) (?:(\d+):(\d+)|-)$", re.MULTILINE)


def faults_of(path: Path) -> tuple[Fault, ...]:
    """Return the faults of a file, in order of place: everything that refuses it on its way to a Spec.

    Files without a cluster only show a document by itself.
    """
    try:
        documents = load_project(path)
        if documents.of_kind("Cluster"):
            told = contradictions(documents, build(documents, as_of=AS_OF))
            if any(fault.severity == "error" for fault in told):
                return tuple(fault for fault in told if fault.severity == "error")
        check_tests(documents, as_of=AS_OF)
    except Refused as refused:
        return refused.faults
    return ()


def found(path: Path) -> list[tuple[str, int, int]]:
    """Return code, line and column of each fault; 0:0 where a fault has no place."""
    places = [(fault.code, fault.position) for fault in faults_of(path)]
    return [(code, place.line, place.column) if place else (code, 0, 0) for code, place in places]


def expected(path: Path) -> list[tuple[str, int, int]]:
    """Return what the header of a file expects: lines such as `# expect: DT1103 4:7`, or `-` for no place."""
    header = path.read_bytes().decode("utf-8", errors="replace")
    return [(code, int(line or 0), int(column or 0)) for code, line, column in EXPECTED.findall(header)]
