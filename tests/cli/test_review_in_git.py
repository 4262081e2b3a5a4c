"""The way of a plan through a repository: committed, made anew from what was committed, verified without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.cli.shell import Shell
from tests.cli.test_plan import edit, rescale

pytestmark = pytest.mark.usefixtures("solvers_here")
WHO = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout


def commit(message: str) -> None:
    git("add", "dovetail.yaml", "policy.yaml", "workloads", "plan.yaml")
    git(*WHO, "commit", "-qm", message)


@pytest.fixture
def repository(dovetail: Shell, project: Path) -> Path:
    """A repository with a committed plan of its documents."""
    git("init", "-q")
    assert dovetail("plan", "--out", "plan.yaml") == 0
    commit("first plan")
    return project


def test_a_plan_made_from_the_committed_one_verifies_without_it(dovetail: Shell, repository: Path) -> None:
    assert dovetail("verify", "plan.yaml", ".") == 0
    assert "not checked" not in dovetail.out
    rescale(repository, "train", 2, 1)
    assert dovetail("verify", "plan.yaml", ".") == 8
    assert "was made for other documents" in dovetail.out
    assert dovetail("plan", "--base", "HEAD:plan.yaml", "--out", "plan.yaml") == 0
    changed = git("diff", "-U0", "plan.yaml").splitlines()
    rows = [line.split(":")[0] for line in changed if "{node:" in line]
    # What goes makes room for what waited; nothing else is touched.
    added, removed = sorted(rows)
    assert removed == "-    research/train#1"
    assert added in ("+    research/batch#2", "+    search/web#1")  # worth the same, and one of them waited
    commit("train: 1 replica")

    assert dovetail("verify", "plan.yaml", ".") == 0
    assert "not checked: needs the state the plan started from (--base or --current)" in dovetail.out
    assert dovetail("verify", "plan.yaml", ".", "--base", "HEAD~1:plan.yaml") == 0
    assert "not checked" not in dovetail.out
    assert dovetail("verify", "plan.yaml", ".", "--base", "HEAD:plan.yaml") == 8
    assert "started from another state" in dovetail.out
    assert dovetail("verify", "HEAD~1:plan.yaml", ".") == 8


def test_a_plan_outlives_documents_that_are_only_reformatted(dovetail: Shell, repository: Path) -> None:
    rescale(repository, "web", 2, 1)
    assert dovetail("plan", "--base", "HEAD:plan.yaml", "--max-moves", "0", "--out", "plan.yaml") == 0
    commit("web: 1 replica")
    assert dovetail("verify", "plan.yaml", ".") == 0
    assert dovetail("fmt") == 0
    edit(repository / "workloads" / "train.yaml", "kind:", "# The model of the year.\nkind:")
    (repository / "workloads" / "web.yaml").rename(repository / "workloads" / "a.yaml")
    assert git("diff", "--stat") != ""
    assert dovetail("verify", "plan.yaml", ".") == 0
    rescale(repository, "batch", 3, 1)
    assert dovetail("verify", "plan.yaml", ".") == 8
