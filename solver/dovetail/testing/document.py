"""What a run of tests found, as a document of kind TestResult."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from dovetail.documents import API_VERSION, as_json
from dovetail.faults import Position
from dovetail.testing.model import CaseResult
from dovetail.whatif import Check


def to_document(results: Sequence[CaseResult], name: str) -> dict[str, Any]:
    """Return results as plain data, ready for JSON."""
    counts = Counter(result.verdict for result in results)
    return {
        "apiVersion": API_VERSION,
        "kind": "TestResult",
        "metadata": {"name": name},
        "spec": {
            "ok": counts["pass"] == len(results),
            "passed": counts["pass"],
            "failed": counts["fail"],
            "undecided": counts["undecided"],
            "cases": [_case(result) for result in results],
        },
    }


def _case(result: CaseResult) -> dict[str, Any]:
    name = result.name
    row: dict[str, Any] = {"kind": name.kind, "test": name.test, "case": name.case, "verdict": result.verdict}
    if result.status is not None:
        row["status"] = result.status
    if result.conflict:
        row["conflict"] = list(result.conflict)
    return {**row, **_place(name.position), "expectations": [_check(check) for check in result.checks]}


def _check(check: Check) -> dict[str, Any]:
    row = {"expect": as_json(check.expectation.row), "ok": check.ok, "actual": as_json(check.actual)}
    return {**row, **_place(check.expectation.spot.position)}


def _place(position: Position | None) -> dict[str, Any]:
    return {} if position is None else {"file": position.file, "line": position.line, "column": position.column}
