"""What the README shows is what its commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.docs.pages import FENCE, between

from dovetail.rules import TABLE
from dovetail_cli.commands import TABLE as COMMANDS
from dovetail_cli.main import run


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("readme") / "plan.yaml"


def test_the_plan_of_the_demo_is_shown_as_it_is_printed(
    root: Path, plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    assert run(["plan", "scenarios/mixed-fleet", "--out", str(plan)]) == 0
    printed = capsys.readouterr().out.rstrip()
    between(root / "README.md", "demo", f"```\n$ dovetail plan scenarios/mixed-fleet\n{printed}\n```")


def test_every_command_of_the_readme_does_what_it_says(
    root: Path, plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan.exists(), "the plan of the demo is made by the test before"
    monkeypatch.chdir(root)
    blocks = [body for kind, body in FENCE.findall((root / "README.md").read_text(encoding="utf-8")) if kind == "sh"]
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) == 3
    for command in commands[1:]:
        arguments = [str(plan) if word == "build/demo/plan.yaml" else word for word in shlex.split(command)[1:]]
        assert run(arguments) == 0, command
        assert capsys.readouterr().out
    assert run(["verify", str(plan), "scenarios/mixed-fleet"]) == 0


def test_the_status_names_the_rules_and_commands_that_there_are(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8")
    rules = re.search(r"^\| rules \| \[(.+?)\]", text, re.MULTILINE)
    assert rules is not None
    assert sorted(rules[1].split(", ")) == sorted(TABLE)
    commands = re.search(r"^\| commands \| (.+?) \|", text, re.MULTILINE)
    assert commands is not None
    listed = re.findall(r"`(\w+)`", commands[1])
    assert listed == [command.name for command in COMMANDS if command.name != "version"]
