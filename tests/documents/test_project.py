"""Which files belong to a project, and that their order means nothing."""

from __future__ import annotations

import errno
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.documents import DocumentSet, load_project
from dovetail.documents.paths import matching
from dovetail.faults import Refused

HEADER = "apiVersion: dovetail/v1alpha1\n"


def workload(name: str) -> str:
    return (
        HEADER
        + f"kind: Workload\nmetadata: {{name: {name}}}\nspec: {{type: job, replicas: 1, request: {{cpu: 1}}}}\n"
    )


def project(documents: str, more: str = "") -> str:
    return HEADER + f"kind: Project\nmetadata: {{name: p}}\nspec: {{documents: {documents}{more}}}\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def names(documents: DocumentSet) -> list[str]:
    return [document.identity for document in documents.of_kind("Workload")]


def codes(path: Path) -> list[str]:
    with pytest.raises(Refused) as caught:
        load_project(path)
    return [fault.code for fault in caught.value.faults]


def test_a_project_reads_the_files_that_its_patterns_name(tmp_path: Path) -> None:
    files = {
        "dovetail.yaml": project('["*.yaml", "jobs/**/*.yaml"]'),
        "b.yaml": workload("b"),
        "a.yml": workload("not-named"),
        "jobs/c.yaml": workload("c"),
        "jobs/deep/er/d.yaml": workload("d"),
        "other/e.yaml": workload("not-named-either"),
    }
    loaded = load_project(write(tmp_path, files))
    assert names(loaded) == ["b", "c", "d"]
    assert loaded.project is not None
    assert not loaded.warnings


def test_an_empty_project_file_is_told(tmp_path: Path) -> None:
    found = load_project(write(tmp_path, {"a.yaml": workload("a"), "dovetail.yaml": "# nothing\n"}))
    assert names(found) == ["a"]
    assert [warning.code for warning in found.warnings] == ["DT1902"]


def test_a_directory_without_a_project_file_is_read_flat(tmp_path: Path) -> None:
    files = {
        "a.yaml": workload("a"),
        "compose.yaml": "services: {web: !reset null}\n",
        "mixed.yml": "apiVersion: v1\nkind: ConfigMap\n---\n" + workload("b"),
        "plan.yaml": HEADER + "kind: Plan\nmetadata: {name: p}\nspec: {}\n",
        "package.json": '{"kind": "commonjs"}',
        "deep/c.yaml": workload("c"),
        "notes.txt": workload("d"),
    }
    assert names(load_project(write(tmp_path, files))) == ["a", "b"]


def test_plans_beside_the_documents_are_left_alone(tmp_path: Path) -> None:
    files = {"dovetail.yaml": project('["*.yaml"]'), "a.yaml": workload("a"), "plan.yaml": "kind: Plan\nx: [\n"}
    assert names(load_project(write(tmp_path, files))) == ["a"]


def test_a_file_alone_is_a_project(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": workload("a"), "b.yaml": workload("b")})
    assert names(load_project(tmp_path / "a.yaml")) == ["a"]


def test_a_project_file_may_be_given_itself(tmp_path: Path) -> None:
    write(tmp_path, {"dovetail.yaml": project('["w/*.yaml"]'), "w/a.yaml": workload("a"), "b.yaml": workload("b")})
    assert names(load_project(tmp_path / "dovetail.yaml")) == ["a"]


def test_a_project_file_without_a_project_is_a_file_like_others(tmp_path: Path) -> None:
    assert names(load_project(write(tmp_path, {"dovetail.yaml": workload("a"), "b.yaml": workload("b")}))) == [
        "a",
        "b",
    ]
    assert names(load_project(tmp_path / "dovetail.yaml")) == ["a"]


def test_a_project_elsewhere_may_not_name_files_that_are_not_read(tmp_path: Path) -> None:
    """It would be followed in `dovetail.yaml` alone, and without a word some of its documents were missing."""
    write(tmp_path, {"project.yaml": project('["*.yaml", "w/*.yaml"]'), "a.yaml": workload("a")})
    assert names(load_project(tmp_path)) == ["a"]
    write(tmp_path, {"w/b.yaml": workload("b"), "w/c.yaml": workload("c")})
    with pytest.raises(Refused) as caught:
        load_project(tmp_path)
    (fault,) = caught.value.faults
    assert (fault.code, fault.message) == ("DT1021", "not read: w/b.yaml and 1 more")


def test_a_folder_that_may_not_be_opened_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"dovetail.yaml": project('["**/*.yaml"]'), "p/a.yaml": workload("a"), "b.yaml": workload("b")})
    scan = os.scandir

    def closed(folder: str) -> object:
        if Path(folder).name == "p":
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", closed)
    with pytest.raises(Refused) as caught:
        load_project(tmp_path)
    (fault,) = caught.value.faults
    assert (fault.code, fault.message) == ("DT1001", f"{tmp_path}/p cannot be read: Permission denied")


def test_hidden_files_are_matched_by_name_alone(tmp_path: Path) -> None:
    files = {"dovetail.yaml": project('["**/*.yaml"]'), ".a.yaml": workload("a"), "w/.b.yaml": workload("b")}
    (write(tmp_path, files) / ".#dovetail.yaml").symlink_to("somebody@host")
    assert not names(load_project(tmp_path))
    write(tmp_path, {"dovetail.yaml": project('["w/.*.yaml"]')})
    assert names(load_project(tmp_path)) == ["b"]


def test_packs_are_found_by_name(tmp_path: Path) -> None:
    loaded = load_project(write(tmp_path, {"dovetail.yaml": project('["*.yaml"]', ", packs: [baseline]")}))
    assert [document.file for document in loaded.of_kind("PolicyPack")] == ["dovetail:policies/baseline.yaml"]


def test_an_unknown_pack_gets_a_suggestion(tmp_path: Path) -> None:
    write(tmp_path, {"dovetail.yaml": project('["*.yaml"]', ", packs: [basline]")})
    with pytest.raises(Refused) as caught:
        load_project(tmp_path)
    assert [(fault.code, fault.hint) for fault in caught.value.faults] == [("DT1018", "did you mean baseline?")]


@pytest.mark.parametrize("pattern", ["../*.yaml", "/etc/*.yaml", "a/../../b.yaml"])
def test_patterns_stay_inside(tmp_path: Path, pattern: str) -> None:
    assert codes(write(tmp_path, {"dovetail.yaml": project(f'["{pattern}"]')})) == ["DT1017"]


def test_links_that_lead_outside_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"outside.yaml": workload("o"), "in/dovetail.yaml": project('["*.yaml"]')})
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    assert codes(tmp_path / "in") == ["DT1017"]


def test_no_link_is_passed_over_without_a_word(tmp_path: Path) -> None:
    write(tmp_path, {"outside.yaml": workload("o"), "in/a.yaml": workload("a"), "other/a.yaml": workload("a")})
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (tmp_path / "in" / "gone.yaml").symlink_to(tmp_path / "nothing")
    assert codes(tmp_path / "in") == ["DT1001", "DT1017"]
    (tmp_path / "other" / "dovetail.yaml").symlink_to(tmp_path / "nothing")
    assert codes(tmp_path / "other") == ["DT1001"]


def test_a_name_that_is_too_long_is_a_fault() -> None:
    assert codes(Path("x" * 300)) == ["DT1001"]


def test_loops_of_links_end(tmp_path: Path) -> None:
    write(tmp_path, {"dovetail.yaml": project('["**/*.yaml"]'), "a/w.yaml": workload("w")})
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    assert codes(tmp_path) == ["DT1017"]
    (tmp_path / "loop.yaml").unlink()
    assert names(load_project(tmp_path)) == ["w"]


def test_a_pattern_without_files_is_a_warning(tmp_path: Path) -> None:
    loaded = load_project(write(tmp_path, {"dovetail.yaml": project('["*.yaml", "none/*.yaml"]')}))
    assert [fault.code for fault in loaded.warnings] == ["DT1901"]


def test_nothing_to_read_is_a_fault(tmp_path: Path) -> None:
    assert codes(tmp_path) == ["DT1016"]
    assert codes(tmp_path / "missing") == ["DT1001"]


@pytest.mark.parametrize("text", ["kind: Plan\nspec: {}\n", '{"kind": "Plan", "apiVersion": "dovetail/v1alpha1"}'])
def test_who_gives_a_plan_for_a_project_is_told_where_plans_go(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(Refused) as caught:
        load_project(tmp_path / "plan.yaml")
    (fault,) = caught.value.faults
    assert (fault.code, fault.hint) == ("DT1016", "a plan is given to show, diff and verify")


def test_an_unknown_kind_is_near_to_what_people_write(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: dovetail/v1alpha1\nkind: List\n", encoding="utf-8")
    with pytest.raises(Refused) as caught:
        load_project(tmp_path / "a.yaml")
    ((code, hint),) = {(fault.code, fault.hint) for fault in caught.value.faults}
    assert code == "DT1112"
    assert hint is not None
    assert hint.startswith("known: Project, Cluster, ")
    assert "RankList" not in hint


def test_faults_of_all_files_are_told_together(tmp_path: Path) -> None:
    files = {
        "a.yaml": "a: [",
        "b.yaml": workload("b").replace("job", "jbo"),
        "c.yaml": workload("b"),
        "dovetail.yaml": project('["*.yaml"]'),
    }
    assert codes(write(tmp_path, files)) == ["DT1004", "DT1104", "DT1301"]


def test_one_project_only(tmp_path: Path) -> None:
    files = {"dovetail.yaml": project('["*.yaml"]'), "other.yaml": project("[x]").replace("name: p", "name: q")}
    assert "DT1303" in codes(write(tmp_path, files))


def test_the_order_of_files_means_nothing(tmp_path: Path) -> None:
    seen = set()
    for number, order in enumerate(itertools.permutations("abc")):
        files = {f"{at}.yaml": workload(name) for at, name in zip("xyz", order, strict=True)}
        seen.add(tuple(names(load_project(write(tmp_path / str(number), files)))))
    assert seen == {("a", "b", "c")}


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("*.yaml", ["a.yaml"]),
        ("**/*.yaml", ["a.yaml", "x/b.yaml", "x/y/c.yaml"]),
        ("x/**/c.yaml", ["x/y/c.yaml"]),
        ("x/**", ["x/b.yaml", "x/y/c.yaml"]),
        ("./x/[bc].yaml", ["x/b.yaml"]),
        ("?.yaml", ["a.yaml"]),
        ("**/**/**/c.yaml", ["x/y/c.yaml"]),
    ],
)
def test_patterns(pattern: str, matches: list[str]) -> None:
    assert matching(["a.yaml", "x/b.yaml", "x/y/c.yaml"], pattern) == matches


@given(st.text("ab*?[]!/.", max_size=12))
def test_any_pattern_ends(pattern: str) -> None:
    matching(["a/b/a/b/a.yaml", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa/b.yaml"], pattern)
