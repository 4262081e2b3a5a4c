"""What tests of the command line ask for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.shell import GOLDEN, Engine, Here, Shell, SolversHere, write_project

from dovetail_cli import library


@pytest.fixture
def dovetail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.delenv("DOVETAIL_DEBUG", raising=False)
    return Shell(capsys)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project, which is the current directory."""
    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    stand_in = Engine()
    monkeypatch.setattr(library, "solve", lambda *given, **named: stand_in.solve(*given, **named))
    monkeypatch.setattr(library, "solver_process", lambda *given: Here())
    return stand_in


@pytest.fixture
def solvers_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solvers work in the process of the tests, where they are loaded once."""
    monkeypatch.setattr(library, "solver_process", lambda *given: SolversHere())


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    """Compare a text with a golden file; `DOVETAIL_GOLDEN=write` writes the file anew."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("DOVETAIL_GOLDEN") == "write":
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return compare
