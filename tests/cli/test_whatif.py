"""`dovetail whatif`: both sides, the difference, the expectations, and how it ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.shell import Engine, Shell

from dovetail.plan import Outcome, Plan
from dovetail.progress import Stop

Golden = Callable[[str, str], None]
SCENARIO = """\
apiVersion: dovetail/v1alpha1
kind: Scenario
metadata: {name: lose-a-rack}
spec:
  patches:
  - {fail: {rack: h100-rack1}}
  - {scale: {workload: search/web, replicas: 3}}
  expect:
  - {workload: search/web, atLeast: 1}
  - {summary: evictedWorkloads, atMost: 0}
"""


@pytest.fixture(autouse=True)
def scenario(project: Path) -> Path:
    path = project / "lose-a-rack.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def infeasible(name: str = "demo") -> Plan:
    return Plan(name, "sha256:" + "0" * 64, Outcome("infeasible"), conflict=("one-tenant-per-node",))


def after_the_base(engine: Engine, monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    """Make every search after the first one end with a plan."""
    from dovetail_cli import library

    first: list[Plan] = []

    def solve(*given: object, **named: object) -> Plan:
        if first:
            return plan
        first.append(engine.solve(*given, **named))  # type: ignore[arg-type]
        return first[0]

    monkeypatch.setattr(library, "solve", solve)


@pytest.mark.parametrize("name", ["lose-a-rack", "lose-a-rack.yaml"])
def test_a_missed_expectation_ends_with_6(dovetail: Shell, engine: Engine, name: str) -> None:
    assert dovetail("whatif", "--scenario", name) == 6
    assert "MISSED (1)  lose-a-rack.yaml:10" in dovetail.out


@pytest.mark.parametrize(("output", "file"), [("table", "whatif.txt"), ("md", "whatif.md"), ("json", "whatif.json")])
def test_both_sides_are_shown(dovetail: Shell, engine: Engine, golden: Golden, output: str, file: str) -> None:
    assert dovetail("whatif", "--scenario", "lose-a-rack", "-o", output) == 6
    golden(file, dovetail.out)


def test_every_replica_is_shown_where_asked_for(dovetail: Shell, engine: Engine, golden: Golden) -> None:
    assert dovetail("whatif", "--drop", "research/train", "--detail") == 0
    golden("whatif-detail.txt", dovetail.out)


def test_yaml_and_json_say_the_same(dovetail: Shell, engine: Engine) -> None:
    dovetail("whatif", "--fail", "rack=h100-rack0", "-o", "json")
    said = json.loads(dovetail.out)
    dovetail("whatif", "--fail", "rack=h100-rack0", "-o", "yaml")
    assert yaml.safe_load(dovetail.out) == said


def test_a_failure_without_expectations_ends_with_0(dovetail: Shell, engine: Engine) -> None:
    assert dovetail("whatif", "--fail", "rack=h100-rack0") == 0


def test_options_make_the_same_patches_as_a_document(dovetail: Shell, engine: Engine) -> None:
    line = "--cordon node=h100-002 --fail rack=h100-rack2 --scale web=1 --scale search/web=5 --drop research/batch"
    dovetail("whatif", *line.replace("--scale web=1 ", "").split(), "--drop-policy", "one-tenant-per-node",
             "--add", "h100=+2", "-o", "json")  # fmt: skip
    assert json.loads(dovetail.out)["spec"]["patches"] == [
        {"add": {"group": "h100", "nodes": 2}},
        {"drop": {"policy": "one-tenant-per-node"}},
        {"drop": {"workload": "research/batch"}},
        {"scale": {"workload": "search/web", "replicas": 5}},
        {"fail": {"rack": "h100-rack2"}},
        {"cordon": {"node": "h100-002"}},
    ]


def test_options_come_after_the_scenario(dovetail: Shell, engine: Engine) -> None:
    dovetail("whatif", "--scenario", "lose-a-rack", "--add", "h100=1", "-o", "json")
    spec = json.loads(dovetail.out)["spec"]
    assert [list(patch) for patch in spec["patches"]] == [["fail"], ["scale"], ["add"]]
    assert (spec["scenario"], len(spec["expectations"])) == ("lose-a-rack", 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "nothing is asked"),
        ("--fail rack=h100-rack7", "--fail rack=h100-rack7: there is no rack 'h100-rack7'"),
        ("--fail h100-rack1", "--fail h100-rack1: expected LEVEL=DOMAIN"),
        ("--add h100=0", "--add h100=0: expected a number from 1"),
        ("--add h100=+many", "--add h100=+many: expected a number from 1"),
        ("--scale search/web=0000000005000000000", "expected a number from 0 to 1,000,000"),
        ("--add h200=+1", "did you mean h100?"),
        ("--scale search/web.head=2", "'search/web' has no roles"),
        ("--drop search/wob", "did you mean search/web?"),
        ("--drop-policy no", "there is no policy 'no'"),
        ("--scenario lose-a-rak", "did you mean lose-a-rack?"),
        ("--scenario policy.yaml", "policy.yaml holds 0 documents of kind Scenario"),
        ("--fail rack=h100-rack1 --work 0", "--work must be more than nothing"),
        ("--fail rack=h100-rack1 -o github", "this command prints table, json, yaml, md"),
        ("--fail rack=h100-rack1 -o new.yaml", "hint: -o names a format; files are named by --out"),
        ("--fail rack=h100-rack1 --base none.yaml", "there is no plan none.yaml"),
    ],
)
def test_a_question_without_meaning_ends_with_64(dovetail: Shell, engine: Engine, line: str, said: str) -> None:
    assert dovetail("whatif", *line.split()) == 64
    assert dovetail.out == ""
    assert said in dovetail.err


def test_a_scenario_that_does_not_fit_ends_with_3(dovetail: Shell, engine: Engine, scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("h100-rack1", "h100-rak1"), encoding="utf-8")
    assert dovetail("whatif", "--scenario", "lose-a-rack") == 3
    assert "lose-a-rack.yaml:6:19: error DT1802: there is no rack 'h100-rak1'" in dovetail.err


def test_validate_holds_the_scenarios_of_a_project_to_it(dovetail: Shell, scenario: Path) -> None:
    assert dovetail("validate") == 0
    scenario.write_text(SCENARIO.replace("search/web, rep", "search/wob, rep"), encoding="utf-8")
    assert dovetail("validate") == 3
    assert "lose-a-rack.yaml:7:24: error DT1806: there is no workload 'search/wob'" in dovetail.out


def test_a_base_plan_of_other_documents_ends_with_8(dovetail: Shell, engine: Engine, project: Path) -> None:
    assert dovetail("plan", "--out", "base.yaml") == 0
    (project / "policy.yaml").write_text("", encoding="utf-8")
    assert dovetail("whatif", "--base", "base.yaml", "--cordon", "node=h100-000") == 8
    assert dovetail.out == ""
    assert "made for other documents" in dovetail.err


def test_a_base_plan_that_does_not_verify_ends_with_4(dovetail: Shell, engine: Engine, project: Path) -> None:
    assert dovetail("plan", "--out", "base.yaml") == 0
    plan = (project / "base.yaml").read_text(encoding="utf-8")
    (project / "base.yaml").write_text(plan.replace("h100-000", "h100-900"), encoding="utf-8")
    assert dovetail("whatif", "--base", "base.yaml", "--cordon", "node=h100-000") == 4
    assert dovetail.out == ""


def test_a_base_plan_may_start_from_a_state_that_is_not_known_here(
    dovetail: Shell, engine: Engine, project: Path
) -> None:
    assert dovetail("plan", "--out", "first.yaml") == 0
    assert dovetail("plan", "--base", "first.yaml", "--max-moves", "3", "--out", "base.yaml") == 0
    assert dovetail("whatif", "--base", "base.yaml", "--cordon", "node=h100-000") == 0


def test_a_base_plan_is_not_planned_again(dovetail: Shell, engine: Engine, project: Path) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    searches: list[Stop] = []
    engine.meanwhile = searches.append
    assert dovetail("whatif", "--base", "plan.yaml", "--fail", "rack=h100-rack0") == 0
    assert len(searches) == 1
    assert "base plan.yaml@" in dovetail.out


def test_a_scenario_without_any_plan_ends_with_5(
    dovetail: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_the_base(engine, monkeypatch, infeasible())
    assert dovetail("whatif", "--scenario", "lose-a-rack") == 5
    assert "a side has no plan, so there is no difference" in dovetail.out
    assert "INFEASIBLE (proved): one-tenant-per-node cannot hold" in dovetail.out
    assert dovetail("whatif", "--scenario", "lose-a-rack", "-o", "md") == 5
    assert "cannot hold. A side has no plan, so there is no difference.\n" in dovetail.out


def test_a_scenario_beside_a_base_without_a_plan_tells_its_own_tiers(
    dovetail: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail_cli import library

    sides = [infeasible()]
    monkeypatch.setattr(library, "solve", lambda *a, **b: sides.pop() if sides else engine.solve(*a, **b))
    assert dovetail("whatif", "--drop-policy", "one-tenant-per-node") == 0
    assert "a side has no plan, so there is no difference" in dovetail.out
    assert re.search(r"^  admitted\[\d+\] +- +\S+ +\S+ +- +GPU$", dovetail.out, re.MULTILINE)


def test_without_any_plan_there_are_no_figures(
    dovetail: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dovetail_cli import library

    monkeypatch.setattr(library, "solve", lambda *_, **__: infeasible())
    for output in ("table", "md"):
        assert dovetail("whatif", "--scenario", "lose-a-rack", "-o", output) == 5
        assert "measure" not in dovetail.out


def test_a_scenario_that_is_expected_to_have_no_plan_ends_with_0(
    dovetail: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch, scenario: Path
) -> None:
    text = SCENARIO.partition("  expect:\n")[0] + "  expect:\n  - {status: infeasible}\n"
    scenario.write_text(text, encoding="utf-8")
    after_the_base(engine, monkeypatch, infeasible())
    assert dovetail("whatif", "--scenario", "lose-a-rack") == 0


@pytest.mark.parametrize("side", ["base", "scenario"])
def test_a_side_without_plan_in_time_ends_with_7(
    dovetail: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch, side: str
) -> None:
    if side == "base":
        engine.outcome = Outcome("unknown", "time")
    else:
        after_the_base(engine, monkeypatch, Plan("demo", "sha256:" + "0" * 64, Outcome("unknown", "time")))
    assert dovetail("whatif", "--scenario", "lose-a-rack") == 7


def test_an_interrupted_what_if_shows_what_it_has(dovetail: Shell, engine: Engine) -> None:
    engine.meanwhile = lambda stop: stop.set()
    assert dovetail("whatif", "--fail", "rack=h100-rack0") == 130
    assert "dovetail whatif" in dovetail.out


def test_an_expired_waiver_ends_with_4_and_is_named(dovetail: Shell, engine: Engine, project: Path) -> None:
    (project / "waiver.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Waiver\nmetadata: {name: old}\nspec: {policy: one-tenant-per-node, "
        "match: {workloads: {}}, reason: r, owner: o, expires: 2020-01-01}\n",
        encoding="utf-8",
    )
    assert dovetail("whatif", "--scenario", "lose-a-rack", "--as-of", "2026-01-01") == 4
    assert "waiver old of policy one-tenant-per-node expired" in dovetail.err
    assert dovetail("whatif", "--drop-policy", "one-tenant-per-node", "--as-of", "2026-01-01") == 0


def test_other_renderings_go_to_files(dovetail: Shell, engine: Engine, project: Path) -> None:
    dovetail("whatif", "--fail", "rack=h100-rack0", "--also", "md=review.md", "--also", "json=result.json")
    assert (project / "review.md").read_text(encoding="utf-8").startswith("<!-- dovetail:whatif whatif -->")
    assert json.loads((project / "result.json").read_text(encoding="utf-8"))["kind"] == "WhatIfResult"


def test_names_of_documents_cannot_steer_a_terminal(dovetail: Shell, engine: Engine) -> None:
    assert dovetail("whatif", "--fail", "rack=\x1b[31mred") == 64
    assert "\x1b" not in dovetail.err
