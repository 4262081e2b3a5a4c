"""The Alibaba trace as a project, imported and planned once per run of the tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from benchmarks.measure import Run, dovetail

from dovetail.plan import Plan, read

WORK = "1"  # enough for one round of patterns over the whole cluster


@dataclass(frozen=True)
class Planned:
    """A planned project: where its documents and its plan lie, and how the run went."""

    project: Path
    file: Path
    run: Run

    @property
    def plan(self) -> Plan:
        return read(self.file.read_text(encoding="utf-8"), self.file.name)


def import_trace(data: Path, arrived: str, out: Path) -> Path:
    """Import one of the arrived lists of pods."""
    files = ("--nodes", data / "openb/nodes.csv", "--pods", data / f"openb/arrived/{arrived}.csv")
    run = dovetail("import", "openb", *files, "--out", out)
    assert run.code == 0, run.err
    return out


def plan_trace(project: Path, file: Path, *arguments: str, seed: str = "0") -> Planned:
    """Plan a project in a process with a given seed of hashes."""
    run = dovetail("plan", project, "--out", file, *arguments, env={"PYTHONHASHSEED": seed})
    assert run.code == 0, run.err
    return Planned(project, file, run)


@pytest.fixture(scope="session")
def trace(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the default trace."""
    return import_trace(data, "default", tmp_path_factory.mktemp("trace") / "project")


@pytest.fixture(scope="session")
def planned(trace: Path) -> Planned:
    """The default trace planned under a small limit of work."""
    return plan_trace(trace, trace.parent / "plan.yaml", "--work", WORK)
