"""Commands on documents and on finished plans: validate, init, fmt, import, show, diff, verify, schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.shell import Engine, Shell
from tests.cli.test_plan import edit, rescale, validator

from dovetail.documents import ALL_KINDS
from dovetail_cli import plans
from dovetail_cli.example import FILES
from dovetail_cli.plans import places_in


def test_valid_documents_are_counted(dovetail: Shell, project: Path) -> None:
    assert dovetail("validate") == 0
    assert dovetail.out == "valid: 1 Project, 1 Cluster, 3 Workloads, 1 Policy\n"


@pytest.mark.parametrize("name", ["table", "json", "yaml", "github"])
def test_faults_in_every_format(
    dovetail: Shell, root: Path, project: Path, golden: Callable[[str, str], None], name: str
) -> None:
    edit(project / "workloads/web.yaml", "replicas: 2", "replica: 2")
    edit(project / "dovetail.yaml", "H100-80GB", "H100-81GB")
    assert dovetail("validate", ".", "-o", name) == 3
    golden(f"faults.{'github.txt' if name == 'github' else name.replace('table', 'txt')}", dovetail.out)
    if name == "json":
        validator(root, "faults").validate(json.loads(dovetail.out))


def test_every_schema_is_printed(dovetail: Shell) -> None:
    assert dovetail("schema") == 0
    assert set(dovetail.out.split()) <= {*ALL_KINDS, "all"}
    for kind in dovetail.out.split():
        assert dovetail("schema", kind.lower()) == 0
        assert json.loads(dovetail.out)


def test_a_new_project_plans_at_once(dovetail: Shell, tmp_path: Path) -> None:
    target = tmp_path / "My Cluster"
    assert dovetail("init", target) == 0
    assert dovetail("validate", target) == 0
    assert dovetail.out.startswith("valid: ")
    assert dovetail("plan", target, "--out", tmp_path / "plan.yaml") == 0
    assert "my-cluster" in dovetail.out
    assert dovetail("fmt", "--check", target) == 0, dovetail.out


def test_every_document_of_a_new_project_names_its_schema(root: Path) -> None:
    for name, content in FILES.items():
        if name.endswith(".yaml") and not name.startswith("."):
            first = content.splitlines()[0]
            assert first.startswith("# yaml-language-server: $schema=")
            schema = json.loads((root / "schemas" / first.rpartition("/")[2]).read_text(encoding="utf-8"))
            assert schema["$id"] == first.partition("=")[2]


def test_the_job_of_a_new_project_installs_a_file_and_no_name_that_anybody_could_claim() -> None:
    text = FILES[".github/workflows/plan.yaml"]
    steps = yaml.safe_load(text)["jobs"]["plan"]["steps"]
    installs = [step["run"] for step in steps if "install" in step.get("run", "")]
    assert installs == ["pip install ./wheels/dovetail-*.whl"]
    assert text.index("# ADAPT") < text.index(installs[0])


def test_nothing_is_overwritten(dovetail: Shell, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("mine", encoding="utf-8")
    assert dovetail("init", tmp_path) == 64
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.yaml"]
    (tmp_path / "cluster.yaml").unlink()
    (tmp_path / ".gitignore").write_text("mine", encoding="utf-8")
    assert dovetail("init", tmp_path) == 0
    assert (tmp_path / ".gitignore").read_text(encoding="utf-8") == "mine"


def test_reformatted_documents_mean_the_same_plan(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    web = project / "workloads/web.yaml"
    web.write_text(
        web.read_text(encoding="utf-8").replace("metadata:", "\n# a comment\nmetadata:  "), encoding="utf-8"
    )
    assert dovetail("verify", "plan.yaml") == 0
    assert dovetail("fmt", "--check") == 2
    assert dovetail.out == "workloads/web.yaml\n"
    assert dovetail("fmt") == 0
    assert "# a comment" in web.read_text(encoding="utf-8")
    assert dovetail("fmt", "--check") == 0
    assert dovetail("verify", "plan.yaml") == 0
    rescale(project, "web", 2, 3)
    assert dovetail("verify", "plan.yaml") == 8


def test_plans_are_folded_and_expanded(dovetail: Shell, project: Path, engine: Engine) -> None:
    (project / "workloads/cpu.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Workload\nmetadata: {name: cpu}\n"
        "spec: {type: job, replicas: 12, request: {cpu: 1}}\n",
        encoding="utf-8",
    )
    dovetail("plan", "--out", "plan.yaml")
    folded = (project / "plan.yaml").read_text(encoding="utf-8")
    assert "    cpu#0-11: {node: h100-000}\n" in folded
    assert dovetail("fmt", "--expand", "plan.yaml") == 0
    expanded = (project / "plan.yaml").read_text(encoding="utf-8")
    assert "    cpu#1: {node: h100-000}\n    cpu#10: {node: h100-000}\n" in expanded
    assert dovetail("verify", "plan.yaml") == 0
    assert dovetail("fmt", "plan.yaml") == 0
    assert (project / "plan.yaml").read_text(encoding="utf-8") == folded


@pytest.mark.parametrize(
    ("old", "new"), [("kind: Plan\n", "kind: Plan # by hand\n"), ("kind: Plan\n", 'kind: "Plan"\n'), ("\n", "\r\n")]
)
def test_a_plan_is_known_by_its_kind(dovetail: Shell, project: Path, engine: Engine, old: str, new: str) -> None:
    dovetail("plan", "--out", "plan.yaml")
    canonical = (project / "plan.yaml").read_bytes()
    (project / "plan.yaml").write_bytes(canonical.replace(old.encode(), new.encode()))
    assert dovetail("fmt", "--check", "plan.yaml") == 2
    assert dovetail("fmt", "plan.yaml") == 0
    assert (project / "plan.yaml").read_bytes() == canonical


def test_a_revision_has_no_form(dovetail: Shell, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_from_git", lambda *_: b"kind:   Plan\n")
    assert dovetail("fmt", "HEAD:plan.yaml") == 64


def test_nothing_is_formatted_beside_what_cannot_be(dovetail: Shell, project: Path) -> None:
    (project / "odd.yaml").write_text("kind:   Policy\n", encoding="utf-8")
    (project / "broken.yaml").write_text("a: [", encoding="utf-8")
    assert dovetail("fmt", "odd.yaml", "broken.yaml") == 3
    assert (project / "odd.yaml").read_text("utf-8") == "kind:   Policy\n"
    assert not (project / "HEAD:plan.yaml").exists()


def test_a_huge_figure_is_refused(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    text = (project / "plan.yaml").read_text(encoding="utf-8")
    (project / "huge.yaml").write_text(text.replace("gpusTotal: 12", "gpusTotal: 1e400"), encoding="utf-8")
    for command in (("show", "huge.yaml"), ("diff", "huge.yaml", "plan.yaml"), ("verify", "huge.yaml")):
        assert dovetail(*command) == 3
        assert "DT2011" in dovetail.err


def test_an_import_becomes_a_project(dovetail: Shell, root: Path, tmp_path: Path) -> None:
    data = root / "tests/importers/data"
    inputs = ("--nodes", data / "nodes.csv", "--pods", data / "pods.csv", "--out", tmp_path / "trace")
    assert dovetail("import", "openb", *inputs) == 0
    assert dovetail.out.startswith("wrote ")
    assert dovetail("validate", tmp_path / "trace") == 0
    assert dovetail("import", "openb", *inputs) == 64
    assert dovetail("import", "openb", *inputs, "--force") == 0


@pytest.mark.parametrize("by", ["", "node", "workload", "tenant", "rack", "gang", "topology"])
def test_plans_are_shown_by_what_is_asked(
    dovetail: Shell, project: Path, engine: Engine, golden: Callable[[str, str], None], by: str
) -> None:
    dovetail("plan", "--out", "plan.yaml")
    arguments = ("--by", by) if by else ()
    assert dovetail("show", "plan.yaml", ".", *arguments) == 0
    golden(f"show{by and '-'}{by}.txt", dovetail.out)


def test_views_are_for_the_table(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    assert dovetail("show", "plan.yaml", "--by", "node", "-o", "json") == 64
    assert "--by groups the rows of the table" in dovetail.err
    assert dovetail("show", "plan.yaml", "--by", "node", "-o", "json", "--also", "table=rows.txt") == 0


def test_a_plan_alone_knows_nodes_and_workloads(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    assert dovetail("show", "plan.yaml", "--by", "node") == 0
    assert dovetail("show", "plan.yaml", "--by", "tenant") == 64
    assert "needs the documents: give PATH\n  hint: a plan alone knows node, workload, gang\n" in dovetail.err
    assert dovetail("show", "plan.yaml", "--by", "gang") == 0
    assert dovetail("show", "plan.yaml", "--by", "topology") == 64
    assert dovetail("show", "plan.yaml", ".", "--by", "zone") == 64
    assert "known here: node, workload, gang, tenant, topology, rack\n" in dovetail.err


@pytest.mark.parametrize("command", [("show",), ("diff", "plan.yaml"), ("verify",), ("explain", "x", "--plan")])
def test_a_directory_is_no_plan(dovetail: Shell, project: Path, engine: Engine, command: tuple[str, ...]) -> None:
    dovetail("plan", "--out", "plan.yaml")
    assert dovetail(*command, "workloads") == 64
    assert dovetail.err == (
        "dovetail: workloads is a directory, not a plan\n"
        "  hint: give a plan's file, such as workloads/plan.yaml, or REV:path\n"
    )


@pytest.mark.parametrize("name", ["table", "json", "yaml", "md"])
def test_two_plans_in_every_format(
    dovetail: Shell, root: Path, project: Path, engine: Engine, golden: Callable[[str, str], None], name: str
) -> None:
    dovetail("plan", "--out", "a.yaml")
    rescale(project, "batch", 3, 1)
    dovetail("plan", "--out", "b.yaml")
    assert dovetail("diff", "a.yaml", "b.yaml", "-o", name) == 0
    golden(f"diff.{name.replace('table', 'txt')}", dovetail.out)
    if name == "json":
        validator(root, "plandiff").validate(json.loads(dovetail.out))


def test_a_plan_does_not_differ_from_itself(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "a.yaml")
    assert dovetail("diff", "a.yaml", "a.yaml", "--exit-code") == 0
    assert "nothing changes" in dovetail.out
    assert dovetail("diff", "a.yaml", "a.yaml", ".", "--exit-code") == 0


@pytest.mark.parametrize("name", ["table", "json", "yaml", "github"])
def test_verifications_in_every_format(
    dovetail: Shell, root: Path, project: Path, engine: Engine, golden: Callable[[str, str], None], name: str
) -> None:
    dovetail("plan", "--out", "plan.yaml")
    edit(project / "plan.yaml", "moves: 0", "moves: 2")
    assert dovetail("verify", "plan.yaml", ".", "-o", name) == 4
    golden(f"verify.{'github.txt' if name == 'github' else name.replace('table', 'txt')}", dovetail.out)
    if name == "json":
        validator(root, "verification").validate(json.loads(dovetail.out))


def test_a_stale_plan_is_annotated(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    rescale(project, "web", 2, 3)
    assert dovetail("verify", "plan.yaml", ".", "-o", "github") == 8
    assert (
        dovetail.out
        == "::error file=plan.yaml,line=5,col=3,title=stale plan::plan demo was made for other documents\n"
    )


def test_findings_are_placed_in_the_plan_of_this_run(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    edit(project / "plan.yaml", "moves: 0", "moves: 2")
    assert dovetail("verify", "plan.yaml", "-o", "github") == 4
    assert "line=9," in dovetail.out
    edit(project / "plan.yaml", "kind: Plan\n", "# looked through\nkind: Plan\n")
    assert dovetail("verify", "plan.yaml", "-o", "github") == 4
    assert "line=10," in dovetail.out


def test_a_workload_is_not_looked_for_on_a_node_named_as_its_namespace(
    dovetail: Shell, project: Path, engine: Engine
) -> None:
    dovetail("plan", "--out", "plan.yaml")
    edit(project / "plan.yaml", "h100-000", "research")
    place = places_in((project / "plan.yaml").read_text(encoding="utf-8"), "plan.yaml")
    lines = {"research/batch": 11, "research/train": 14, "search/web": 18, "research": 11, "research/3": 11}
    lines |= {"research/gone": 6, "research/gone#0": 6, "h100-002/0": 15}
    assert {subject: place(subject).line for subject in lines} == lines


def undeclared(project: Path, count: int) -> None:
    rows = ", ".join(f"gone-{i % 4}#{i}: {{node: g1}}" for i in range(count))
    text = (
        f"apiVersion: dovetail/v1alpha1\nkind: Placement\nmetadata: {{name: now}}\nspec: {{placements: {{{rows}}}}}\n"
    )
    (project / "today.yaml").write_text(text, encoding="utf-8")


def test_many_warnings_of_a_code_are_one_line_beside_an_answer(dovetail: Shell, project: Path) -> None:
    undeclared(project, 8)
    assert dovetail("policies") == 0
    (line,) = (line for line in dovetail.err.splitlines() if "DT1914" in line)
    assert line.startswith("warning DT1914: runs but is not declared, 8 times: today.yaml:4:")
    assert [f"no workload 'gone-{i}' is declared" in line for i in range(4)] == [True, True, True, False]
    assert line.endswith("('dovetail validate' tells all)")


def test_few_warnings_of_a_code_are_told_one_by_one(dovetail: Shell, project: Path) -> None:
    undeclared(project, 3)
    assert dovetail("policies") == 0
    assert [line for line in dovetail.err.splitlines() if ": warning DT1914: no workload 'gone-" in line][2:]


def test_all_warnings_are_in_what_validate_prints(dovetail: Shell, project: Path) -> None:
    undeclared(project, 8)
    assert dovetail("validate", "-o", "json") == 0
    assert [each["code"] for each in json.loads(dovetail.out)["spec"]["faults"]] == ["DT1914"] * 8
    assert dovetail("validate") == 0
    assert dovetail.out.count("warning DT1914") == 8
