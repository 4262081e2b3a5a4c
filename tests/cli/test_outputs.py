"""What a result may be written over: never over a document that people write."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell

from dovetail.plan import Outcome


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--out", "policy.yaml"),
        ("plan", "--out", "dovetail.yaml"),
        ("plan", "--certificate", "policy.yaml"),
        ("plan", "--also", "md=policy.yaml"),
        ("validate", "--also", "sarif=workloads/batch.yaml"),
    ],
)
def test_no_result_replaces_a_document_of_the_project(
    dovetail: Shell, project: Path, engine: Engine, command: tuple[str, ...]
) -> None:
    policy = project / "policy.yaml"
    policy.write_text("# kind: of rules that we agreed on\n" + policy.read_text(encoding="utf-8"), encoding="utf-8")
    before = {path: path.read_bytes() for path in project.rglob("*.yaml")}
    assert dovetail(*command) == 64
    assert "which no result replaces" in dovetail.err
    assert {path: path.read_bytes() for path in project.rglob("*") if path.is_file()} == before


def test_files_that_a_project_misses_are_told_beside_what_lacks_for_that(dovetail: Shell, project: Path) -> None:
    file = project / "dovetail.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").partition("---")[0].replace("*.yaml", "c.yaml", 1), encoding="utf-8"
    )
    assert dovetail("validate") == 3
    assert "dovetail.yaml:" in dovetail.err + dovetail.out
    assert "hint: no file matches c.yaml" in dovetail.out
    assert "warning DT1901" in dovetail.out


def test_a_document_as_json_is_not_replaced_either(dovetail: Shell, project: Path) -> None:
    file = project / "w.json"
    file.write_text('{"apiVersion":"dovetail/v1alpha1","kind":"Workload","metadata":{"name":"w"}}', encoding="utf-8")
    assert dovetail("plan", "--out", "w.json") == 64
    assert "holds a Workload document" in dovetail.err


def test_an_older_plan_and_what_is_no_document_are_replaced(dovetail: Shell, project: Path, engine: Engine) -> None:
    (project / "plan.txt").write_text("kind: Cluster of mine\n", encoding="utf-8")
    for _ in range(2):
        assert dovetail("plan", "--out", "plan.txt") == 0
        assert "kind: Plan" in (project / "plan.txt").read_text(encoding="utf-8")


def test_a_search_without_a_plan_leaves_an_older_one_alone(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    before = (project / "plan.yaml").read_bytes()
    engine.outcome = Outcome("unknown", "interrupt")
    assert dovetail("plan", "--out", "plan.yaml") == 7
    assert (project / "plan.yaml").read_bytes() == before
