"""Time and memory of whole commands, each in a process of its own, against the table of limits."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import fleet
from benchmarks.measure import Run, dovetail, measured
from tests.documents.test_hostile import MEGABYTE, json_texts, yaml_texts
from tests.limits import limits
from tests.limits.fleet import NODES, WORKLOADS, write_fleet, write_rows
from tests.trace.conftest import Planned, import_trace, plan_trace

from dovetail.build import build
from dovetail.documents import load_project

pytestmark = pytest.mark.limits

Tell = Callable[[str], None]

REFUSED = 3
PLANNING = "60s"
ROOT = Path(__file__).resolve().parents[2]

HOSTILE = {
    **{f"{name}.yaml": text for name, text in yaml_texts(MEGABYTE).items()},
    **{f"{name}.json": text for name, text in json_texts(MEGABYTE).items()},
}
ACCEPTED = {"workloads.yaml", "blank lines.yaml", "comment.yaml"}  # large, yet nothing is wrong with them
LIGHT = {
    "validate": ("validate", "."),
    "verify": ("verify", "plan.yaml", "."),
    "show": ("show", "plan.yaml"),
    "diff": ("diff", "plan.yaml", "plan.yaml"),
    "help": ("--help",),
}
SOLVERS = {"ortools", "pyomo", "highspy", "pandas", "numpy"}
MODULES = """
import sys
from dovetail_cli.main import run
code = run(sys.argv[2:])
with open(sys.argv[1], "w") as stream:
    print(code, *sorted({name.partition(".")[0] for name in sys.modules}), file=stream)
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A planned example project."""
    project = tmp_path_factory.mktemp("small")
    assert dovetail("init", project).code == 0
    planned = dovetail("plan", project, "--out", project / "plan.yaml")
    assert planned.code == 0, planned.err
    return project


@pytest.fixture(scope="module")
def planned(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """The default trace, planned for a minute."""
    scratch = tmp_path_factory.mktemp("trace")
    project = import_trace(data, "default", scratch / "project")
    return plan_trace(project, scratch / "plan.yaml", "--time-limit", PLANNING)


def test_help(tell: Tell) -> None:
    runs = sorted((dovetail("--help") for _ in range(5)), key=lambda run: run.seconds)
    limits.HELP.check(runs[2], tell)


@pytest.mark.parametrize("command", LIGHT)
def test_what_only_reads_imports_no_solver(small: Path, tmp_path: Path, command: str) -> None:
    told = tmp_path / "modules"
    run = measured([sys.executable, "-c", MODULES, str(told), *LIGHT[command]], cwd=small)
    code, *modules = told.read_text(encoding="utf-8").split()
    assert code == "0", run.err
    assert SOLVERS.isdisjoint(modules)


def test_import_and_validate_the_trace(data: Path, tmp_path: Path, tell: Tell) -> None:
    files = ("--nodes", data / "openb/nodes.csv", "--pods", data / "openb/arrived/default.csv")
    imported = dovetail("import", "openb", *files, "--out", tmp_path / "project")
    validated = dovetail("validate", tmp_path / "project")
    assert (imported.code, validated.code) == (0, 0)
    limits.VALIDATE.check(validated, tell)
    both = replace(
        validated,
        seconds=imported.seconds + validated.seconds,
        work=imported.work + validated.work,
        peak=max(imported.peak, validated.peak),
    )
    limits.IMPORT.check(both, tell)


def test_plan_the_trace(planned: Planned, tell: Tell) -> None:
    limits.PLAN.check(planned.run, tell)


def test_verify_the_plan_of_the_trace(planned: Planned, tell: Tell) -> None:
    run = dovetail("verify", planned.file, planned.project)
    assert run.code == 0, run.err
    limits.VERIFY.check(run, tell)


@pytest.mark.parametrize("by", ["node", "workload", "tenant"])
def test_show_the_plan_of_the_trace(planned: Planned, by: str, tell: Tell) -> None:
    run = dovetail("show", planned.file, planned.project, "--by", by)
    assert run.code == 0, run.err
    limits.SHOW.check(run, tell, by)


@pytest.mark.parametrize("name", HOSTILE)
def test_refuse_a_hostile_file(tmp_path: Path, name: str, tell: Tell) -> None:
    file = tmp_path / f"x{Path(name).suffix}"
    file.write_text(HOSTILE[name], encoding="utf-8")
    run = dovetail("validate", file, ceiling=60)
    assert run.code in ({0, REFUSED} if name in ACCEPTED else {REFUSED}), run.err[-500:]
    assert "Traceback" not in run.err
    limits.HOSTILE.check(run, tell, name)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan of 100,000 rows."""
    return write_rows(tmp_path_factory.mktemp("rows") / "plan.yaml")


def test_read_a_plan_of_100_000_rows(rows: Path, tell: Tell) -> None:
    run = dovetail("show", rows)
    assert run.code == 0, run.err
    limits.ROWS.check(run, tell)


def test_compare_two_plans_of_100_000_rows(rows: Path, tell: Tell) -> None:
    run = dovetail("diff", rows, rows)
    assert run.code == 0, run.err
    limits.DIFF.check(run, tell)


def test_build_100_000_gpus(tmp_path: Path, tell: Tell) -> None:
    """`validate` builds the Spec, and nothing more."""
    run = dovetail("validate", write_fleet(tmp_path / "fleet"))
    assert run.code == 0, run.out + run.err
    assert f"{WORKLOADS:,} Workloads" in run.out
    limits.FLEET.check(run, tell)


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """What the stages around the search took on a synthetic fleet, once from nothing and once from what runs then."""
    project = tmp_path_factory.mktemp("stages") / "fleet"
    fleet.write(fleet.fleet(100_000, seed=1), project)
    run = measured([sys.executable, "-m", "tests.limits.stages", str(project), "--again"], cwd=ROOT)
    assert run.code == 0, run.err
    told = json.loads(run.out)
    assert told["replicas"] > 80_000
    return {
        stage: replace(run, seconds=seconds, work=work, peak=told["peak"])
        for stage, (seconds, work) in told["stages"].items()
    }


@pytest.mark.parametrize("again", ["", " again"])
def test_construct_100_000_gpus(stages: dict[str, Run], again: str, tell: Tell) -> None:
    limits.FIRST.check(stages[f"construct{again}"], tell, again.strip())


def test_all_around_a_search_of_100_000_gpus(stages: dict[str, Run], tell: Tell) -> None:
    first = {stage: run for stage, run in stages.items() if not stage.endswith("again") and stage != "construct"}
    for stage, run in stages.items():
        limits.STAGE.check(run, tell, stage)
    runs = list(first.values())
    both = replace(runs[0], seconds=sum(run.seconds for run in runs), work=sum(run.work for run in runs))
    limits.AROUND.check(both, tell)


def test_the_fleet_has_as_many_nodes_as_it_says(tmp_path: Path) -> None:
    spec = build(load_project(write_fleet(tmp_path / "fleet")), current=None, as_of=dt.date(2025, 1, 1))
    assert len(spec.cluster.nodes) == NODES
    assert sum(node.gpus for node in spec.cluster.nodes) == 100_000
