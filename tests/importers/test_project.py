"""Imported files reach the disk whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dovetail.importers.project import ImportedProject, OutputExists, write_project

PROJECT = ImportedProject(
    {"dovetail.yaml": "a: 1\n", "workloads/x.yaml": "b: 2\n"},
    frozenset({"dovetail.yaml", "workloads/x.yaml", "workloads/y.yaml"}),
)


def _tree(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_a_new_directory_holds_the_files_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    written = write_project(PROJECT, out)
    assert written == (out / "dovetail.yaml", out / "workloads" / "x.yaml")
    assert _tree(tmp_path / "deep") == {f"out/{name}": text for name, text in PROJECT.files.items()}
    assert out.stat().st_mode == (tmp_path / "deep").stat().st_mode


def test_other_files_of_the_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    write_project(PROJECT, tmp_path)
    assert _tree(tmp_path) == {**PROJECT.files, "notes.txt": "mine"}


def test_files_in_the_way_are_named_and_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "y.yaml").write_text("mine", encoding="utf-8")
    (tmp_path / "dovetail.yaml").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputExists) as caught:
        write_project(PROJECT, tmp_path)
    assert caught.value.paths == (tmp_path / "dovetail.yaml", tmp_path / "workloads" / "y.yaml")
    assert _tree(tmp_path) == {"dovetail.yaml": "mine", "workloads/y.yaml": "mine"}


def test_overwriting_replaces_and_takes_away_what_an_older_import_left(tmp_path: Path) -> None:
    (tmp_path / "workloads").mkdir()
    for name in ("dovetail.yaml", "workloads/y.yaml", "workloads/mine.yaml"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    write_project(PROJECT, tmp_path, overwrite=True)
    assert _tree(tmp_path) == {**PROJECT.files, "workloads/mine.yaml": "old"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_in_place_of_the_directory_is_never_replaced(tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "out"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputExists) as caught:
        write_project(PROJECT, out, overwrite=overwrite)
    assert caught.value.paths == (out,)
    assert out.read_text(encoding="utf-8") == "mine"


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    impossible = ImportedProject({"a": "1", "a/b": "2"}, frozenset())
    with pytest.raises(OSError, match="a"):
        write_project(impossible, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_place_of_a_file_is_never_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "dovetail.yaml").write_text("old", encoding="utf-8")
    (tmp_path / "workloads" / "x.yaml").mkdir(parents=True)
    with pytest.raises(OutputExists) as caught:
        write_project(PROJECT, tmp_path, overwrite=True)
    assert caught.value.paths == (tmp_path / "workloads" / "x.yaml",)
    assert not caught.value.replaceable
    assert _tree(tmp_path) == {"dovetail.yaml": "old"}


def test_a_file_in_place_of_a_directory_of_the_project_is_named_and_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "dovetail.yaml").write_text("old", encoding="utf-8")
    (tmp_path / "workloads").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputExists) as caught:
        write_project(PROJECT, tmp_path, overwrite=True)
    assert (caught.value.paths, caught.value.replaceable) == ((tmp_path / "workloads",), False)
    assert _tree(tmp_path) == {"dovetail.yaml": "old", "workloads": "mine"}


def test_a_failure_midway_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workloads").mkdir()
    for name in ("dovetail.yaml", "workloads/y.yaml"):
        (tmp_path / name).write_text("old", encoding="utf-8")
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if target == tmp_path / "workloads" / "x.yaml":
            raise OSError(errno.EIO, "broken")
        replace(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(OSError, match="broken"):
        write_project(PROJECT, tmp_path, overwrite=True)
    assert _tree(tmp_path) == {"dovetail.yaml": "old", "workloads/y.yaml": "old"}
