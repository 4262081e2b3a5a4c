"""`dovetail doctor`: the installation, and what a model is made of."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.shell import Shell
from tests.cli.test_plan import edit, validator

from dovetail_cli import environment as module
from dovetail_cli.environment import PACKAGES, TOGETHER, environment


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation of which one package is not there and one ends the process that loads it."""
    modules = {"dovetail-none": "dovetail_none", "numpy": "os, signal; os.kill(os.getpid(), signal.SIGKILL)"}
    monkeypatch.setattr(module, "PACKAGES", modules)


def test_the_installation_is_told_and_in_order(dovetail: Shell) -> None:
    assert dovetail("doctor") == 0
    lines = dovetail.out.splitlines()
    assert lines[0] == "dovetail doctor: everything can be loaded"
    told = [line.split()[0] for line in lines[2:]]
    assert told == ["python", "dovetail", *PACKAGES, "all", "cores", "memory"]
    assert sum(line.endswith("  loads") for line in lines) == 2 + len(PACKAGES)


def test_what_cannot_be_loaded_is_named_and_ends_with_69(dovetail: Shell, root: Path, broken: None) -> None:
    assert dovetail("doctor", "-o", "json") == 69
    document = json.loads(dovetail.out)
    validator(root, "environment").validate(document)
    assert not document["spec"]["ok"]
    assert document["spec"]["packages"][1:] == [
        {"name": "dovetail-none", "version": None, "loads": False,
         "problem": "ModuleNotFoundError: No module named 'dovetail_none'"},
        {"name": "numpy", "version": module._version("numpy"), "loads": False,
         "problem": "ends the process that loads it: SIGKILL"},
    ]  # fmt: skip
    assert dovetail("doctor") == 69
    assert dovetail.out.startswith("dovetail doctor: NOT EVERYTHING CAN BE LOADED\n")
    assert "Traceback" not in dovetail.out + dovetail.err


def test_packages_that_do_not_go_together_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", {"pip": "json", "numpy": "sys; assert 'json' not in sys.modules"})
    found = environment()
    assert [(package.name, package.problem is None) for package in found.packages[1:]] == [
        ("pip", True), ("numpy", True), (TOGETHER, False),
    ]  # fmt: skip
    assert not found.ok


def test_a_file_in_the_current_directory_is_no_package(dovetail: Shell, project: Path) -> None:
    (project / "numpy.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    assert dovetail("doctor") == 0


@pytest.mark.parametrize("scenario", ["mixed-fleet", "stranded-capacity"])
def test_the_model_of_a_shipped_scenario(
    dovetail: Shell, root: Path, golden: Callable[[str, str], None], scenario: str
) -> None:
    arguments = ("doctor", "--model", root / "scenarios" / scenario, "--as-of", "2025-06-01")
    assert dovetail(*arguments) == 0
    golden(f"doctor-{scenario}.txt", dovetail.out)
    assert dovetail(*arguments, "-o", "json") == 0
    document = json.loads(dovetail.out)
    validator(root, "modelreport").validate(document)
    spec = document["spec"]
    assert sum(row["classes"] for row in spec["kinds"]) == spec["classes"]
    assert 1 + sum(row["adds"] for row in spec["nodeSplits"]) == spec["classes"]
    assert 1 + sum(row["adds"] for row in spec["shapeSplits"]) == len(spec["shapes"])
    assert sum(row["demand"] for row in spec["shapes"]) == spec["replicas"]
    assert dovetail(*arguments, "-o", "yaml") == 0
    assert yaml.safe_load(dovetail.out) == document


@pytest.mark.usefixtures("solvers_here")
def test_a_plan_as_base_is_what_runs(dovetail: Shell, project: Path) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    assert dovetail("doctor", "--model", "--base", "plan.yaml", "-o", "json") == 0
    spec = json.loads(dovetail.out)["spec"]
    assert [row["busy"] for row in spec["kinds"]] == [3]
    assert spec["nodeSplits"][-1] == {"attribute": "running today", "values": 3, "adds": 2, "alone": 2}


@pytest.mark.usefixtures("solvers_here")
def test_the_steps_are_the_phases_that_a_search_goes_through(dovetail: Shell, project: Path) -> None:
    assert dovetail("doctor", "--model", "-o", "json") == 0
    steps = json.loads(dovetail.out)["spec"]["model"]["steps"]
    assert dovetail("plan", "--out", "plan.yaml") == 0
    log = json.loads((project / "plan.run.json").read_text(encoding="utf-8"))
    phases = [phase["name"] for phase in log["phases"] if phase["name"] not in ("load", "certify", "verify")]
    assert phases == ["compile", "construct", "exact", "bound"]
    assert [step for step in dict.fromkeys(steps) if step in phases] == phases


def test_long_lists_are_cut_and_shown_in_full_on_demand(dovetail: Shell, project: Path) -> None:
    edit(project / "dovetail.yaml", "count: 3", "count: 30")
    (project / "racks.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Policy\nmetadata: {name: racks}\nspec: {match: {workloads: {}}, "
        "rule: {spread: {over: rack, maxPerDomain: 2}}, enforcement: hard}\n",
        encoding="utf-8",
    )
    edit(project / "dovetail.yaml", "rack: {size: 2}", "rack: {size: 1}")
    assert dovetail("doctor", "--model") == 0
    assert "30 nodes in 30 classes, 30 if none held anything" in dovetail.out
    assert "    10 more (--detail)\n" in dovetail.out
    assert "+29" in dovetail.out
    assert "policy racks  spread, hard" in dovetail.out
    assert dovetail("doctor", "--model", "--detail") == 0
    assert "more (--detail)" not in dovetail.out
    assert "h100-029" in dovetail.out


def test_mig_instances_that_are_asked_for_are_named(dovetail: Shell, root: Path) -> None:
    arguments = ("doctor", "--model", root / "scenarios/mig-112-slices")
    assert dovetail(*arguments) == 0
    assert "  a 3g.40gb" in dovetail.out
    assert dovetail(*arguments, "-o", "json") == 0
    document = json.loads(dovetail.out)
    validator(root, "modelreport").validate(document)
    assert {row["mig"] for row in document["spec"]["shapes"]} == {"2g.20gb", "3g.40gb"}


@pytest.mark.parametrize("option", [("--detail",), ("--as-of", "2026-01-01"), ("--base", "plan.yaml"), (".",)])
def test_what_only_a_project_takes_is_refused_without_one(dovetail: Shell, option: tuple[str, ...]) -> None:
    assert dovetail("doctor", *option) == 64
    assert "without --model there is no project to look at" in dovetail.err


def test_refused_documents_are_told(dovetail: Shell, project: Path) -> None:
    edit(project / "dovetail.yaml", "H100-80GB", "H100-81GB")
    assert dovetail("doctor", "--model") == 3
    assert dovetail.out == ""
    assert "DT" in dovetail.err
