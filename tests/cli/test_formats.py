"""`validate` and `verify` for build servers: every format tells the same things at the same places."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.cli.shell import Engine, Shell

Place = tuple[str, int]


def sarif_places(text: str) -> list[Place]:
    results = json.loads(text)["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    return [(place["artifactLocation"]["uri"], place["region"]["startLine"]) for place in places]


def gitlab_places(text: str) -> list[Place]:
    return [(each["location"]["path"], each["location"]["lines"]["begin"]) for each in json.loads(text)]


def junit_places(text: str) -> list[Place]:
    failed = [case for case in ElementTree.fromstring(text).iter("testcase") if case.find("failure") is not None]
    return [(case.attrib["file"], int(case.attrib["line"])) for case in failed]


READERS = {"sarif": sarif_places, "gitlab": gitlab_places, "junit": junit_places}


def line_of(path: Path, text: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", READERS)
def test_a_fault_of_a_document_has_its_place(dovetail: Shell, project: Path, name: str) -> None:
    file = project / "workloads" / "web.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("replicas", "replica"), encoding="utf-8")
    assert dovetail("validate", "-o", name) == 3
    assert READERS[name](dovetail.out) == [("workloads/web.yaml", 4)]


@pytest.mark.parametrize("name", READERS)
def test_documents_without_fault_have_none(dovetail: Shell, project: Path, name: str) -> None:
    assert dovetail("validate", "-o", name) == 0
    assert READERS[name](dovetail.out) == []


def test_each_file_is_a_case(dovetail: Shell, project: Path) -> None:
    assert dovetail("validate", "-o", "junit") == 0
    cases = [case.attrib["name"] for case in ElementTree.fromstring(dovetail.out).iter("testcase")]
    assert cases == ["dovetail.yaml", "policy.yaml", *(f"workloads/{w}.yaml" for w in ("batch", "train", "web"))]


@pytest.mark.parametrize("name", READERS)
def test_what_breaks_a_plan_has_its_row(dovetail: Shell, project: Path, engine: Engine, name: str) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    path = project / "plan.yaml"
    row = line_of(path, "search/web#")
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[row - 1] = lines[row - 1].replace("node: h100-", "node: gone-")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert dovetail("verify", "plan.yaml", "-o", name) == 4
    assert ("plan.yaml", row) in READERS[name](dovetail.out)


@pytest.mark.parametrize("name", READERS)
def test_a_stale_plan_points_to_its_digest(dovetail: Shell, project: Path, engine: Engine, name: str) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    (project / "policy.yaml").write_text("", encoding="utf-8")
    assert dovetail("verify", "plan.yaml", "-o", name) == 8
    assert READERS[name](dovetail.out)[0] == ("plan.yaml", line_of(project / "plan.yaml", "  inputs:"))


def test_each_check_is_a_case_and_what_did_not_run_is_skipped(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "base.yaml") == 0
    assert dovetail("plan", "--base", "base.yaml", "--out", "plan.yaml") == 0
    assert dovetail("verify", "plan.yaml", "-o", "junit") == 0
    root = ElementTree.fromstring(dovetail.out)
    kinds = {case.attrib["name"]: [below.tag for below in case] for case in root.iter("testcase")}
    assert kinds["cpu"] == []
    assert kinds["protected"] == ["skipped"]
    assert int(root[0].attrib["tests"]) == len(kinds)
    assert int(root[0].attrib["skipped"]) == sum(found == ["skipped"] for found in kinds.values())
