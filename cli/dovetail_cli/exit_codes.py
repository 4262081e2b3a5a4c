"""Exit codes, and which one a run ends with when several would apply."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum


class ExitCode(IntEnum):
    """What a process ends with."""

    DONE = 0
    INTERNAL = 1
    CHANGES = 2
    REFUSED = 3
    BROKEN = 4
    INFEASIBLE = 5
    MISSED = 6
    LIMIT = 7
    STALE = 8
    USAGE = 64
    UNAVAILABLE = 69
    INTERRUPTED = 130


class Finding(Enum):
    """Something that a run found out about itself; the first that applies, in this order, decides its exit code."""

    INTERRUPTED = "the user interrupted the run"
    USAGE = "the command line makes no sense"
    REFUSED = "the documents are refused"
    UNAVAILABLE = "a backend is not installed"
    INTERNAL = "a defect of dovetail"
    INFEASIBLE = "proved that there is no plan"
    NO_PLAN = "no plan within the limit"
    BROKEN = "a policy or a check is broken, or a waiver expired"
    STALE = "the plan was made for other documents"
    MISSED = "an expectation is missed"
    GAP = "the gap is larger than allowed"
    CHANGED = "there are changes, and the caller wants to know"


CODES: dict[Finding, ExitCode] = {
    Finding.INTERRUPTED: ExitCode.INTERRUPTED,
    Finding.USAGE: ExitCode.USAGE,
    Finding.REFUSED: ExitCode.REFUSED,
    Finding.UNAVAILABLE: ExitCode.UNAVAILABLE,
    Finding.INTERNAL: ExitCode.INTERNAL,
    Finding.INFEASIBLE: ExitCode.INFEASIBLE,
    Finding.NO_PLAN: ExitCode.LIMIT,
    Finding.BROKEN: ExitCode.BROKEN,
    Finding.STALE: ExitCode.STALE,
    Finding.MISSED: ExitCode.MISSED,
    Finding.GAP: ExitCode.LIMIT,
    Finding.CHANGED: ExitCode.CHANGES,
}


WITHOUT_PLAN: dict[str, Finding] = {"infeasible": Finding.INFEASIBLE, "unknown": Finding.NO_PLAN}
"""What a run finds out whose outcome comes without a plan."""


def first_of(findings: Iterable[Finding]) -> ExitCode:
    """Return the one exit code of several findings; `DONE` when there are none."""
    found = set(findings)
    return next((CODES[finding] for finding in Finding if finding in found), ExitCode.DONE)
