"""Sixty things that people get wrong about policies, each told with its place and with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents.faults_of import faults_of

ABOUT_POLICIES = [
    path
    for path in sorted((Path(__file__).resolve().parent / "refused").glob("*.yaml"))
    if 300 <= int(path.name.partition("-")[0]) < 400
]


def test_there_are_sixty() -> None:
    assert len(ABOUT_POLICIES) >= 60


@pytest.mark.parametrize("path", ABOUT_POLICIES, ids=lambda path: path.stem)
def test_a_policy_fault_has_a_place_and_a_hint(path: Path) -> None:
    for fault in faults_of(path):
        assert fault.position is not None
        assert fault.hint, fault.message


CONFLICTS = [path for path in ABOUT_POLICIES if "# expect: DT162" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", CONFLICTS, ids=lambda path: path.stem)
def test_a_conflict_names_the_place_of_every_policy_in_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    for fault in faults_of(path):
        assert fault.position is not None
        assert fault.message.count(f"{path}:") >= 1  # the other policy; this one is where the fault is
        assert lines[fault.position.line - 1].lstrip().startswith("rule:")
