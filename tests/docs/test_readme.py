"""What the README shows is what its commands print."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.shell import SolversHere
from tests.docs.pages import FENCE, between, keep

from dovetail.rules import TABLE
from dovetail_cli import library
from dovetail_cli.commands import TABLE as COMMANDS
from dovetail_cli.main import run

PLANNED = "build/demo/plan.yaml"  # where `make demo` puts it


def dovetail(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in the checkout, as a reader of the README would."""
    command = [sys.executable, "-m", "dovetail_cli", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, encoding="utf-8", check=False)


@pytest.fixture(scope="module")
def demo(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The plan of the demo and what was printed with it."""
    path = tmp_path_factory.mktemp("readme") / "plan.yaml"
    done = dovetail(root, "plan", "scenarios/mixed-fleet", "--out", str(path))
    assert done.returncode == 0, done.stderr
    return path, done.stdout.rstrip()


def test_the_plan_of_the_demo_is_shown_as_it_is_printed(root: Path, demo: tuple[Path, str]) -> None:
    between(root / "README.md", "demo", f"```\n$ dovetail plan scenarios/mixed-fleet --out plan.yaml\n{demo[1]}\n```")


def test_every_command_of_the_readme_succeeds(
    root: Path, demo: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr(library, "solver_process", lambda *given: SolversHere())
    text = (root / "README.md").read_text(encoding="utf-8")
    uses = [line for kind, body in FENCE.findall(text) if kind == "sh" for line in body.splitlines()]
    assert uses[0] == "dovetail plan scenarios/mixed-fleet --out plan.yaml", "the fixture has run this one"
    assert len(uses) == 4
    for use in uses[1:]:
        assert run([str(demo[0]) if word == PLANNED else word for word in shlex.split(use)[1:]]) == 0, use
        assert capsys.readouterr().out
    assert "`dovetail verify plan.yaml scenarios/mixed-fleet`" in text
    assert run(["verify", str(demo[0]), "scenarios/mixed-fleet"]) == 0


def test_the_picture_is_that_of_the_plan(root: Path, demo: tuple[Path, str]) -> None:
    picture = runpy.run_path(str(root / "docs/fleet_map.py"))["main"](
        str(demo[0]), str(root / "scenarios/mixed-fleet")
    )
    keep(root / "docs/fleet.svg", picture)


def test_the_status_names_the_rules_and_commands_that_there_are(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    rules = re.search(r"^\| rules \| \[(.+?)\]", text, re.MULTILINE)
    assert rules is not None
    assert sorted(rules[1].split(", ")) == sorted(TABLE)
    commands = re.search(r"^\| commands \| (.+?) \|", text, re.MULTILINE)
    assert commands is not None
    listed = re.findall(r"`(\w+)`", commands[1])
    assert listed == [command.name for command in COMMANDS]
