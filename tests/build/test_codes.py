"""Every fault of the build is told by some refused document, and every code in use is explained."""

from __future__ import annotations

import re
from pathlib import Path

from dovetail.faults import CODES
from dovetail.faults.build_codes import CLUSTER, CURRENT_STATE, POLICIES, REFERENCES, WARNINGS, WORKLOADS

TESTS = Path(__file__).resolve().parent.parent
REFUSED = (TESTS / "documents" / "refused").glob("*.yaml")
PACKAGES = [TESTS.parent / "solver" / "dovetail" / name for name in ("build", "conflicts")]
SOURCES = [path for package in PACKAGES for path in package.glob("*.py")]
TOLD_ELSEWHERE = {
    "DT1420",  # too large for a file that people read
}


def test_every_code_has_a_refused_document() -> None:
    texts = [path.read_text("utf-8", "replace") for path in REFUSED]
    told = {code for text in texts for code in re.findall(r"# expect: (DT\d{4})", text)}
    wanted = {*REFERENCES, *CLUSTER, *WORKLOADS, *POLICIES, *CURRENT_STATE}
    assert wanted - told == TOLD_ELSEWHERE


def test_every_code_in_use_is_explained_and_every_explained_one_is_in_use() -> None:
    used = {code for path in SOURCES for code in re.findall(r'"(DT\d{4})"', path.read_text("utf-8"))}
    assert used <= CODES.keys()
    assert {*REFERENCES, *CLUSTER, *WORKLOADS, *POLICIES, *CURRENT_STATE, *WARNINGS} <= used
