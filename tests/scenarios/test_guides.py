"""The guides name commands and options that the program has."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from tests.scenarios.shipped import captured

GUIDES = sorted((Path(__file__).resolve().parents[2] / "docs/guides").glob("*.md"))

_COMMAND = re.compile(r"(?:`|^(?:\\$ )?|run: )dovetail ([a-z]+)([^`\n]*)", re.MULTILINE)
_OPTION = re.compile(r"--[a-z][a-z-]*")


def test_there_is_a_guide_for_each_use() -> None:
    assert [guide.stem for guide in GUIDES] == ["planning", "review", "testing-policies", "what-if"]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_its_commands_and_options_exist(guide: Path) -> None:
    named = _COMMAND.findall(guide.read_text(encoding="utf-8"))
    assert named
    unknown = [(c, o) for c, rest in named for o in _OPTION.findall(rest) if o not in options_of(c)]
    assert unknown == []


@cache
def options_of(command: str) -> frozenset[str]:
    """Return the options that a command's help lists."""
    code, out = captured([command, "--help"])
    assert code == 0, f"there is no command {command}"
    return frozenset(_OPTION.findall(out))
