"""`dovetail plan`: what goes to stdout, to files and to stderr, and what the run ends with."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from tests.cli.shell import Engine, Shell

from dovetail.plan import Outcome, Plan, read
from dovetail.progress import Stop
from dovetail_cli import files, library

FORMATS = ["table", "json", "yaml", "md", "github"]
SUFFIX = {"table": "txt", "github": "github.txt"}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def rescale(project: Path, name: str, before: int, after: int) -> None:
    edit(project / "workloads" / f"{name}.yaml", f"replicas: {before}", f"replicas: {after}")


@pytest.fixture
def base(dovetail: Shell, project: Path, engine: Engine) -> Path:
    """A plan of the project, and documents that have changed since."""
    assert dovetail("plan", "--out", "base.yaml") == 0
    rescale(project, "batch", 3, 1)
    rescale(project, "web", 2, 4)
    return project / "base.yaml"


def validator(root: Path, kind: str) -> jsonschema.Draft202012Validator:
    texts = (path.read_text(encoding="utf-8") for path in (root / "schemas").rglob("*.schema.json"))
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in map(json.loads, texts)
    )
    schema = json.loads((root / f"schemas/{kind}.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema, registry=registry)


@pytest.mark.parametrize("name", FORMATS)
def test_an_overview_in_every_format(
    dovetail: Shell, project: Path, engine: Engine, golden: Callable[[str, str], None], name: str
) -> None:
    assert dovetail("plan", "-o", name) == 0
    golden(f"plan.{SUFFIX.get(name, name)}", dovetail.out)


@pytest.mark.parametrize("name", FORMATS)
def test_a_difference_in_every_format(
    dovetail: Shell, base: Path, golden: Callable[[str, str], None], name: str
) -> None:
    assert dovetail("plan", "--base", "base.yaml", "-o", name) == 0
    golden(f"plan-base.{SUFFIX.get(name, name)}", dovetail.out)


def test_details_show_every_replica(dovetail: Shell, base: Path, golden: Callable[[str, str], None]) -> None:
    assert dovetail("plan", "--base", "base.yaml", "--detail") == 0
    golden("plan-detail.txt", dovetail.out)


def test_json_is_a_plan_by_its_schema(dovetail: Shell, root: Path, project: Path, engine: Engine) -> None:
    dovetail("plan", "-o", "json")
    validator(root, "plan").validate(json.loads(dovetail.out))


def test_stdout_holds_the_document_and_stderr_the_rest(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "-o", "yaml", "--out", "plan.yaml")
    assert dovetail.out == (project / "plan.yaml").read_text(encoding="utf-8")
    assert dovetail.err.startswith("dovetail: ")


def test_times_stand_beside_the_plan(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    log = json.loads((project / "plan.run.json").read_text(encoding="utf-8"))
    assert [phase["name"] for phase in log["phases"]] == ["load", "construct", "certify", "verify"]
    assert log["inputs"] == read((project / "plan.yaml").read_text(encoding="utf-8"), "plan.yaml").inputs


def test_one_run_gives_several_renderings(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--also", "md=a.md", "--also", "json=b.json") == 0
    assert (project / "a.md").read_text(encoding="utf-8").startswith("<!-- dovetail:plan demo -->\n")
    assert json.loads((project / "b.json").read_text(encoding="utf-8"))["kind"] == "Plan"


@pytest.mark.parametrize(
    "line",
    [
        "--out o.yaml --also md=./o.yaml",
        "--out o.yaml --also json=o.run.json",
        "--out o.yaml --also json=o.cert.json",
        "--out o.yaml --certificate o.yaml",
        "--out link.yaml --also md=o.yaml",
        "--also md=o.md --also json=o.md",
        "--write-model o.mps --also md=o.mps",
    ],
)
def test_no_two_results_are_one_file(dovetail: Shell, project: Path, engine: Engine, line: str) -> None:
    (project / "link.yaml").symlink_to("o.yaml")
    assert dovetail("plan", *line.split()) == 64
    assert "would be the same file" in dovetail.err
    assert not list(project.glob("o.*"))


def test_two_results_may_go_to_one_device(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--also", "md=/dev/null", "--also", "json=/dev/null") == 0


def test_a_plan_in_json_is_read_like_any_other(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "plan.json") == 0
    assert dovetail("plan", "--out", "plan.yaml") == 0
    made = (project / "plan.json").read_text(encoding="utf-8")
    assert json.loads(made)["kind"] == "Plan"
    assert read(made, "plan.json") == read((project / "plan.yaml").read_text(encoding="utf-8"), "plan.yaml")
    for command in (("verify", "plan.json"), ("show", "plan.json"), ("diff", "plan.json", "plan.yaml")):
        assert dovetail(*command) == 0
    assert dovetail("plan", "--base", "plan.json", "--exit-code") == 0


def test_changes_end_with_2_only_when_asked(dovetail: Shell, base: Path) -> None:
    assert dovetail("plan", "--base", "base.yaml") == 0
    assert dovetail("plan", "--base", "base.yaml", "--exit-code", "--out", "new.yaml") == 2
    assert dovetail("plan", "--base", "new.yaml", "--exit-code") == 0


@pytest.mark.parametrize(("status", "code"), [("infeasible", 5), ("unknown", 7)])
def test_without_a_plan_the_old_file_stays(
    dovetail: Shell, base: Path, engine: Engine, status: Any, code: int
) -> None:
    before = base.read_bytes()
    engine.outcome = Outcome(status)
    assert dovetail("plan", "--base", "base.yaml", "--out", "base.yaml") == code
    assert base.read_bytes() == before
    assert ("INFEASIBLE" if code == 5 else "NO PLAN FOUND") in dovetail.out


@pytest.mark.parametrize(("name", "wanted"), [
    ("table", "  !  policy one-tenant-per-node  separate  policy.yaml:3\n"),
    ("md", "- :x: `one-tenant-per-node` (`policy.yaml:3`), `separate`\n"),
    ("github", "::error file=policy.yaml,line=3,col=12,title=policy one-tenant-per-node::"),
    ("sarif", '"ruleId": "conflict"'),
])  # fmt: skip
def test_a_conflict_names_its_policies_where_they_are_written(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str, wanted: str
) -> None:
    plan = Plan("demo", "sha256:" + "0" * 64, Outcome("infeasible"), conflict=("one-tenant-per-node",))
    monkeypatch.setattr(library, "solve", lambda *given, **named: plan)
    assert dovetail("plan", "-o", name) == 5
    assert wanted in dovetail.out


def test_a_gap_matters_only_when_it_is_asked_about(dovetail: Shell, project: Path, engine: Engine) -> None:
    engine.bound = 24_000
    assert dovetail("plan") == 0
    assert "gap 50.00 %" in dovetail.out
    assert dovetail("plan", "--gap", "0.5") == 0
    assert dovetail("plan", "--gap", "0.01") == 7
    assert dovetail("plan", "--gap", "0.01", "--gap", "admitted[0]=0.6") == 0
    assert dovetail("plan", "--gap", "admitted[0]=0.1") == 7
    assert "accepted 10.00 %" in dovetail.err


def test_a_base_of_another_project_is_told(dovetail: Shell, project: Path, base: Path) -> None:
    assert dovetail("plan", "--base", "base.yaml") == 0
    assert "is a plan of" not in dovetail.err
    edit(project / "dovetail.yaml", "kind: Project\nmetadata: {name: demo}", "kind: Project\nmetadata: {name: other}")
    assert dovetail("plan", "--base", "base.yaml") == 0
    assert "warning: base.yaml is a plan of 'demo', not of 'other'" in dovetail.err


def test_a_plan_of_another_project_is_told_by_verify(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    assert dovetail("verify", "plan.yaml") == 0
    assert "is a plan of" not in dovetail.err
    edit(project / "plan.yaml", "metadata: {name: demo}", "metadata: {name: other}")
    assert dovetail("verify", "plan.yaml") == 0
    assert "warning: plan.yaml is a plan of 'other', not of 'demo'" in dovetail.err


def test_an_interrupted_search_keeps_the_best_plan(dovetail: Shell, base: Path, engine: Engine) -> None:
    before = base.read_bytes()
    engine.meanwhile = Stop.set
    assert dovetail("plan", "--out", "base.yaml") == 130
    assert base.read_bytes() != before
    assert "interrupt" in dovetail.out


def test_a_plan_that_does_not_verify_is_not_written(
    dovetail: Shell, base: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = base.read_bytes()
    engine.bound = 1_000
    assert dovetail("plan", "--out", "base.yaml") == 4
    assert base.read_bytes() == before
    assert "tier-bounds" in dovetail.err


def test_refused_documents_end_with_3_in_the_format_asked_for(dovetail: Shell, project: Path) -> None:
    edit(project / "workloads/web.yaml", "replicas", "replica")
    assert dovetail("plan") == 3
    assert dovetail.out == ""
    assert "workloads/web.yaml:4" in dovetail.err
    assert dovetail("plan", "-o", "json") == 3
    assert json.loads(dovetail.out)["kind"] == "Faults"
    assert dovetail("plan", "-o", "github") == 3
    assert dovetail.out.startswith("::error file=workloads/web.yaml,line=4,")


def test_the_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("old", encoding="utf-8")

    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(Exception, match="No space left"):
        files.write(str(file), "new")
    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_replaced_file_keeps_its_permissions_and_links(tmp_path: Path) -> None:
    file, link = tmp_path / "plan.yaml", tmp_path / "link.yaml"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    files.write(str(link), "new")
    assert link.is_symlink()
    assert (file.read_text(encoding="utf-8"), file.stat().st_mode & 0o777) == ("new", 0o640)


def test_pipes_and_open_streams_are_written_to_and_never_replaced(tmp_path: Path) -> None:
    """A device would be replaced by a file where the user may do that, as on many build servers."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.check_writable(str(pipe))
    files.write(str(pipe), "told")
    assert os.read(reader, 100) == b"told"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with (tmp_path / "log").open("w+b") as log:
        for text in ("one ", "two"):
            files.write(f"/dev/fd/{log.fileno()}", text)
        assert (tmp_path / "log").read_bytes() == b"one two"


def test_a_plan_is_no_pipe_or_device(dovetail: Shell, project: Path) -> None:
    os.mkfifo("pipe")
    for name in ("pipe", "/dev/null", "/dev/stdout"):
        assert dovetail("plan", "--out", name) == 64
        assert f"{name} is no regular file" in dovetail.err
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)
    assert sorted(path.name for path in project.glob("*pipe*")) == ["pipe"]


@pytest.mark.parametrize(
    "command",
    [("init", "DIR"), ("import", "openb", "--nodes", "nodes.csv", "--pods", "pods.csv", "--out", "DIR")],
    ids=lambda command: str(command[0]),
)
def test_a_directory_that_cannot_be_made_is_told(
    dovetail: Shell, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    for name in ("nodes", "pods"):
        shutil.copy(root / f"tests/importers/data/{name}.csv", tmp_path)
    assert dovetail(*("file/inside/out" if word == "DIR" else word for word in command)) == 1
    assert "file/inside/out" in dovetail.err
    assert "cannot be written: Not a directory" in dovetail.err


PLACEMENT = """\
apiVersion: dovetail/v1alpha1
kind: Placement
metadata: {name: today}
spec:
  placements:
    research/train#0: {node: h100-002, gpus: [0, 1, 2, 3]}
    search/web#0: {node: h100-007, gpus: [0]}
    search/old#0: {node: h100-000, gpus: [3]}
"""


@pytest.mark.parametrize("how", ["document", "option"])
def test_what_runs_today_is_a_base(dovetail: Shell, project: Path, engine: Engine, how: str) -> None:
    (project / ("today.yaml" if how == "document" else "today.yml")).write_text(PLACEMENT, encoding="utf-8")
    line = [] if how == "document" else ["--current", "today.yml"]
    assert dovetail("plan", *line, "--exit-code") == 2
    lines = [" ".join(line.split()) for line in dovetail.out.splitlines()]
    assert "today -> " in lines[0]
    assert "moves 0 (0.5 GPU-h lost) starting anew 1 evicted 0 workloads" in lines
    assert "- search/old 1x H100-80GB h100-000 no longer declared" in lines
    assert [line for line in lines if line.endswith("1 replica moved: its place is gone")]
