"""`REV:path` reads a plan out of git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell

from dovetail_cli.plans import plan_text
from dovetail_cli.problems import CommandError


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "plan.yaml").write_text("root\n", encoding="utf-8")
    (tmp_path / "sub" / "plan.yaml").write_text("sub\n", encoding="utf-8")
    who = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], check=True, capture_output=True)
    (tmp_path / "plan.yaml").write_text("changed\n", encoding="utf-8")
    return tmp_path


def test_a_revision_is_read_as_it_was(repository: Path) -> None:
    assert plan_text("HEAD:plan.yaml") == "root\n"
    assert plan_text("plan.yaml") == "changed\n"


def test_paths_count_from_the_root_or_from_here(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository / "sub")
    assert plan_text("HEAD:plan.yaml") == "root\n"
    assert plan_text("HEAD:./plan.yaml") == "sub\n"


def test_a_file_of_that_name_wins(repository: Path) -> None:
    (repository / "HEAD:plan.yaml").write_text("file\n", encoding="utf-8")
    assert plan_text("HEAD:plan.yaml") == "file\n"


@pytest.mark.parametrize("reference", ["HEAD:none.yaml", "nowhere:plan.yaml", "HEAD:sub", "--help:plan.yaml", "none"])
def test_what_git_does_not_have_is_a_usage_error(repository: Path, reference: str) -> None:
    with pytest.raises(CommandError) as found:
        plan_text(reference)
    assert found.value.finding.name == "USAGE"


def test_outside_a_repository_git_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(CommandError, match="git: "):
        plan_text("HEAD:plan.yaml")


def test_a_plan_that_is_no_plan_is_refused(dovetail: Shell, repository: Path, engine: Engine) -> None:
    assert dovetail("show", "HEAD:plan.yaml") == 3
    assert "HEAD:plan.yaml:1:1" in dovetail.err
