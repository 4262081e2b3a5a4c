"""`dovetail test`: what it prints in every format, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from tests.cli.shell import Engine, Shell

from dovetail.plan import Outcome
from dovetail.progress import Stop

Golden = Callable[[str, str], None]
TESTS = """\
apiVersion: dovetail/v1alpha1
kind: PolicyTest
metadata: {name: tenants}
spec:
  policies: [one-tenant-per-node]
  documents:
  - kind: Cluster
    metadata: {name: tiny}
    spec: {nodeGroups: [{name: n, count: 2, accelerator: H100-80GB, gpus: 2, cpu: 8, memory: 64Gi}]}
  - {kind: Workload, metadata: {name: a, namespace: red}, spec: {type: job, request: {gpus: 1}}}
  - {kind: Workload, metadata: {name: b, namespace: blue}, spec: {type: job, request: {gpus: 1}}}
  cases:
  - name: two tenants on one node are noticed
    placements: {red/a#0: {node: n-000, gpus: [0]}, blue/b#0: {node: n-000, gpus: [1]}}
    expect:
    - {policy: one-tenant-per-node, result: fail, subjects: {n-000: 1}}
  - name: a node each is fine
    placements: {red/a#0: {node: n-000, gpus: [0]}, blue/b#0: {node: n-001, gpus: [1]}}
    expect:
    - {policy: one-tenant-per-node, result: pass}
"""
MISSED = """\
---
apiVersion: dovetail/v1alpha1
kind: PolicyTest
metadata: {name: wrong}
spec:
  cases:
  - name: everything | <fits>
    expect:
    - {workload: research/train, admitted: full}
    - {summary: gpusAllocated, atMost: 3}
    - {policy: one-tenant-per-node, result: pass}
"""
SCENARIO = """\
---
apiVersion: dovetail/v1alpha1
kind: Scenario
metadata: {name: lose-a-rack}
spec:
  patches: [{fail: {rack: h100-rack1}}]
  expect: [{summary: evictedWorkloads, atLeast: 9}]
---
apiVersion: dovetail/v1alpha1
kind: Scenario
metadata: {name: expects-nothing}
spec: {patches: [{fail: {rack: h100-rack1}}]}
"""
SUFFIX = {"table": "txt", "junit": "xml", "github": "github.txt", "gitlab": "gitlab.json", "sarif": "sarif.json"}


@pytest.fixture
def tests(project: Path) -> Path:
    path = project / "tests.yaml"
    path.write_text(TESTS, encoding="utf-8")
    return path


@pytest.fixture
def missing(tests: Path) -> Path:
    tests.write_text(TESTS + MISSED + SCENARIO, encoding="utf-8")
    return tests


def test_where_all_holds_it_ends_with_0(dovetail: Shell, engine: Engine, tests: Path) -> None:
    engine.error = AssertionError("nothing is to be planned")
    assert dovetail("test") == 0
    assert dovetail.out == "dovetail test: demo   2 cases pass\n\n  +  PolicyTest  tenants  2 cases pass\n"
    assert dovetail("test", "--detail") == 0
    assert "tenants: a node each is fine" in dovetail.out


@pytest.mark.parametrize("name", ["table", "json", "yaml", "md", "junit", "github", "gitlab", "sarif"])
def test_what_is_missed_is_told_in_every_format(
    dovetail: Shell, engine: Engine, golden: Golden, missing: Path, name: str
) -> None:
    assert dovetail("test", "-o", name) == 6
    golden(f"test.{SUFFIX.get(name, name)}", re.sub(r'time="[0-9.]+"', 'time="0.000"', dovetail.out))


def test_formats_agree_on_what_is_missed(dovetail: Shell, engine: Engine, missing: Path) -> None:
    also = [f"--also={name}={name}.out" for name in ("yaml", "junit", "gitlab", "sarif")]
    assert dovetail("test", "-o", "json", *also) == 6
    found = json.loads(dovetail.out)["spec"]
    assert yaml.safe_load(Path("yaml.out").read_text(encoding="utf-8"))["spec"] == found
    missed = [
        (row["file"], row["line"], row["column"])
        for case in found["cases"]
        for row in case["expectations"]
        if not row["ok"]
    ]
    assert (found["passed"], found["failed"], len(missed)) == (2, 2, 3)
    results = json.loads(Path("sarif.out").read_text(encoding="utf-8"))["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert [
        (place["artifactLocation"]["uri"], place["region"]["startLine"], place["region"]["startColumn"])
        for place in places
    ] == missed
    issues = json.loads(Path("gitlab.out").read_text(encoding="utf-8"))
    assert [(each["location"]["path"], each["location"]["lines"]["begin"]) for each in issues] == [
        m[:2] for m in missed
    ]
    root = ElementTree.parse("junit.out").getroot()
    assert (root.attrib["tests"], root.attrib["failures"]) == ("4", "2")


def test_only_those_named_are_run(dovetail: Shell, engine: Engine, missing: Path) -> None:
    assert dovetail("test", "--only", "tenants") == 0
    assert dovetail("test", "--only", "tenant") == 64
    assert "did you mean tenants?" in dovetail.err


def test_a_project_without_tests_says_so(dovetail: Shell, engine: Engine, project: Path) -> None:
    assert dovetail("test") == 0
    assert dovetail.out == "dovetail test: demo   nothing is tested\n"
    assert "warning: there is no PolicyTest" in dovetail.err


def test_without_an_answer_it_ends_with_7(dovetail: Shell, engine: Engine, missing: Path) -> None:
    engine.outcome = Outcome("unknown", "work")
    assert dovetail("test", "--only", "wrong") == 7
    assert "0 of 1 case passes, 1 undecided" in dovetail.out
    assert dovetail("test", "--only", "wrong", "-o", "junit") == 7
    assert ElementTree.fromstring(dovetail.out).attrib["errors"] == "1"


def test_an_infeasible_case_is_missed_and_nothing_else(dovetail: Shell, engine: Engine, missing: Path) -> None:
    engine.outcome = Outcome("infeasible", proof="two-engines")
    assert dovetail("test", "--only", "wrong") == 6
    assert "found     there is no plan\n" in dovetail.out


def test_an_interrupt_keeps_what_was_run(dovetail: Shell, engine: Engine, missing: Path) -> None:
    def interrupt(stop: Stop) -> None:
        stop.set()

    engine.meanwhile = interrupt
    assert dovetail("test") == 130
    assert "2 cases pass" in dovetail.out
    assert "2 of 4 cases were run" in dovetail.err


@pytest.mark.parametrize("name", ["json", "sarif", "gitlab", "junit", "github"])
def test_refused_documents_are_told_in_the_format_asked_for(
    dovetail: Shell, engine: Engine, tests: Path, name: str
) -> None:
    tests.write_text(TESTS.replace("n-001", "nowhere"), encoding="utf-8")
    assert dovetail("test", "-o", name) == 3
    assert "DT1813" in dovetail.out
    assert dovetail("validate", "-o", name) == 3
    assert "DT1813" in dovetail.out


def test_a_base_plan_is_where_scenarios_start(dovetail: Shell, engine: Engine, missing: Path) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    planned: list[object] = []
    engine.meanwhile = planned.append
    assert dovetail("test", "--only", "lose-a-rack", "--base", "plan.yaml") == 6
    assert len(planned) == 1
