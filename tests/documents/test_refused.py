"""Each refused file carries its expected faults, with line and column, in its header."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.documents.faults_of import expected, faults_of, found

from dovetail.documents import load_project
from dovetail.faults import CODES, render_faults

HERE = Path(__file__).resolve().parent
REFUSED = sorted((HERE / "refused").glob("*.yaml"))
ACCEPTED = sorted(path for path in (HERE / "accepted").iterdir() if path.suffix in (".yaml", ".json"))


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_a_refused_file_has_exactly_its_faults(path: Path) -> None:
    assert found(path) == expected(path)
    assert expected(path)


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_faults_have_known_codes_and_render(path: Path) -> None:
    faults = faults_of(path)
    assert {fault.code for fault in faults} <= CODES.keys()
    assert all(fault.code in render_faults([fault]) for fault in faults)


@pytest.mark.parametrize("path", ACCEPTED, ids=lambda path: path.name)
def test_an_accepted_file_has_none(path: Path) -> None:
    assert not faults_of(path)
    assert load_project(path).documents


def test_numbers_of_refused_files_are_unique() -> None:
    numbers = [path.name.partition("-")[0] for path in REFUSED]
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("name", ["318-tenants-but-none", "609-test-without-expectation"])
def test_one_is_told_as_one(name: str) -> None:
    messages = [fault.message for fault in faults_of(HERE / "refused" / f"{name}.yaml") if fault.code == "DT1107"]
    assert messages == ["expected at least 1 entry, got 0"]
