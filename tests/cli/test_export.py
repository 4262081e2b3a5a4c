"""`dovetail export` writes what fits the documents, and nothing else."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.cli.shell import Engine, Shell

from dovetail.exporters.table import EXPORTERS
from dovetail.plan import Outcome, Plan, write
from dovetail_cli import library
from dovetail_cli.main import run
from dovetail_cli.plans import read_plan

ACCEPTED = Path(__file__).resolve().parents[1] / "documents" / "accepted" / "mig.yaml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with documents that cut GPUs, and a plan for them."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "all.yaml").write_text(ACCEPTED.read_text("utf-8"), encoding="utf-8")
    assert run(["plan", str(folder / "all.yaml"), "--out", str(folder / "plan.yaml")]) == 0
    return folder


@pytest.fixture
def planned(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of it, which is the current directory."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(made, tmp_path, dirs_exist_ok=True)


def test_an_export_goes_to_stdout_or_whole_into_a_directory(dovetail: Shell, planned: Path) -> None:
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml") == 0
    shown = yaml.safe_load(dovetail.out)
    assert shown["version"] == "v1"
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out") == 0
    assert yaml.safe_load((planned / "out/config.yaml").read_text("utf-8")) == shown
    nodes = yaml.safe_load((planned / "out/nodes.yaml").read_text("utf-8"))["nodes"]
    assert {row["labels"]["nvidia.com/mig.config"] for row in nodes.values()} == set(shown["mig-configs"])


def test_an_older_export_is_replaced_only_when_asked(dovetail: Shell, planned: Path) -> None:
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out") == 0
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out") == 64
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out", "--force") == 0


def test_nothing_is_replaced_on_stdout(dovetail: Shell, planned: Path) -> None:
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--force") == 64
    assert "hint: give --out, or leave --force out" in dovetail.err


@pytest.mark.parametrize("in_the_way", ["directory", "document"])
def test_an_export_is_written_whole_or_not_at_all(dovetail: Shell, planned: Path, in_the_way: str) -> None:
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out") == 0
    (planned / "out/config.yaml").write_text("older", encoding="utf-8")
    (planned / "out/nodes.yaml").unlink()
    if in_the_way == "directory":
        (planned / "out/nodes.yaml").mkdir()
    else:
        shutil.copy(planned / "all.yaml", planned / "out/nodes.yaml")
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out", "--force") == 64
    assert "nodes.yaml" in dovetail.err
    assert (planned / "out/config.yaml").read_text("utf-8") == "older"
    assert sorted(path.name for path in (planned / "out").iterdir()) == ["config.yaml", "nodes.yaml"]


def test_work_that_is_drained_beyond_what_the_plan_counts_is_told(dovetail: Shell, planned: Path) -> None:
    (planned / "few.yaml").write_text(
        """\
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: few}
spec:
  nodeGroups: [{name: h, count: 1, accelerator: H100-80GB, gpus: 2, cpu: 16, memory: 128Gi}]
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: a}
spec: {type: service, replicas: 1, request: {gpus: 1}}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: b}
spec: {type: service, replicas: 1, request: {mig: 1g.10gb}}
---
apiVersion: dovetail/v1alpha1
kind: Placement
metadata: {name: today}
spec: {placements: {a#0: {node: h-000, gpus: [0]}}}
""",
        encoding="utf-8",
    )
    assert dovetail("plan", "few.yaml", "--pin", "a", "--max-moves", "0", "--out", "few.plan.yaml") == 0
    assert dovetail("export", "mig-parted", "few.plan.yaml", "few.yaml") == 0
    assert "warning: mig-parted drains a#0, which the plan counts as undisturbed" in dovetail.err
    assert yaml.safe_load(dovetail.out)["version"] == "v1"


def test_a_stale_plan_is_not_exported(dovetail: Shell, planned: Path) -> None:
    text = (planned / "all.yaml").read_text("utf-8")
    (planned / "all.yaml").write_text(text.replace("replicas: 5", "replicas: 4"), encoding="utf-8")
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml", "--out", "out") == 8
    assert not (planned / "out").exists()


def test_a_plan_that_does_not_verify_is_not_exported(dovetail: Shell, planned: Path) -> None:
    text = (planned / "plan.yaml").read_text("utf-8")
    moved = text.replace("instance: 2g.20gb@4", "instance: 2g.20gb@0", 1)
    assert moved != text
    (planned / "plan.yaml").write_text(moved, encoding="utf-8")
    assert dovetail("export", "mig-parted", "plan.yaml", "all.yaml") == 4
    assert dovetail.out == ""


@pytest.mark.parametrize(("status", "code"), [("infeasible", 5), ("unknown", 7)])
@pytest.mark.parametrize("exporter", ["mig-parted", "ranks"])
def test_a_plan_without_places_is_not_exported(
    dovetail: Shell, planned: Path, exporter: str, status: str, code: int
) -> None:
    made = read_plan("plan.yaml")
    bare = Plan(made.name, made.inputs, Outcome(status))  # type: ignore[arg-type]
    (planned / "none.yaml").write_text(write(bare), encoding="utf-8")
    assert dovetail("export", exporter, "none.yaml", "all.yaml", "--out", "out") == code
    assert not (planned / "out").exists()
    assert f"is '{status}'" in dovetail.err


def test_the_certificate_is_checked_before_anything_is_exported(
    dovetail: Shell, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = read_plan("plan.yaml")
    proved = replace(made, tiers=tuple(replace(tier, proof="certificate") for tier in made.tiers))
    (planned / "proved.yaml").write_text(write(proved), encoding="utf-8")
    asked: list[str] = []
    monkeypatch.setattr(library, "read_certificate", lambda text, file: asked.append(file))
    assert dovetail("export", "mig-parted", "proved.yaml", "all.yaml") == 4
    assert dovetail.out == ""
    (planned / "elsewhere.json").write_text("{}", encoding="utf-8")
    assert dovetail("export", "mig-parted", "proved.yaml", "all.yaml", "--certificate", "elsewhere.json") == 4
    assert asked == ["elsewhere.json"]


def test_show_tells_what_layouts_waste_where_it_knows_the_documents(dovetail: Shell, planned: Path) -> None:
    assert dovetail("show", "plan.yaml", "all.yaml") == 0
    waste = "1 memory slice that no instance can use; 1g.10gb@0 -> 1g.20gb would use it"
    assert [line.split("  ")[-1] for line in dovetail.out.splitlines() if " gpu 1 " in line] == [waste]
    assert dovetail("show", "plan.yaml") == 0
    assert waste not in dovetail.out


@pytest.mark.parametrize("arguments", [("mig-parted",), ("slurm", "plan.yaml"), ("mig-parted", "none.yaml")])
def test_a_command_line_without_meaning_ends_with_64(
    dovetail: Shell, engine: Engine, arguments: tuple[str, ...]
) -> None:
    assert dovetail("export", *arguments) == 64


def test_every_exporter_has_a_module_and_a_test(root: Path) -> None:
    modules = {path.stem for path in (root / "solver/dovetail/exporters").glob("*.py")} - {"__init__", "table"}
    assert {exporter.name.replace("-", "_") for exporter in EXPORTERS} == modules
    assert all((root / f"tests/exporters/test_{module}.py").exists() for module in modules)
