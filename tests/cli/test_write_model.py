"""`plan --write-model`: the file is there, whole, beside the plan; what cannot be written is refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell

from dovetail.model import written


@pytest.mark.parametrize("file", ["model.pb", "model.mps", "model.LP"])
def test_the_model_is_written_and_the_plan_is_made(dovetail: Shell, project: Path, file: str) -> None:
    assert dovetail("plan", "--write-model", file, "--out", "plan.yaml") == 0
    assert (project / "plan.yaml").is_file()
    content = (project / file).read_bytes()
    assert b"tier.admitted_0" in content
    assert b"x.h100_000.research_batch" in content
    assert "write model" in dovetail.err
    assert sorted(path.name for path in project.glob(".*")) == []


@pytest.mark.parametrize("file", ["model", "model.xml", "model.lp.gz", "no/such/model.lp", "workloads"])
def test_a_file_that_makes_no_sense_is_refused_before_any_work(
    dovetail: Shell, project: Path, engine: Engine, file: str
) -> None:
    engine.error = AssertionError("the engine was asked")
    assert dovetail("plan", "--write-model", file) == 64
    assert dovetail.out == ""
    assert "hint: CP-SAT reads .pb" in dovetail.err or "directory" in dovetail.err


def test_a_model_that_is_too_large_is_refused_and_the_old_file_stays(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written, "LARGEST", 5)
    (project / "model.lp").write_text("old", encoding="utf-8")
    assert dovetail("plan", "--write-model", "model.lp", "--out", "plan.yaml") == 69
    assert "no model is written: the exact model has at least 6 variables" in dovetail.err
    assert "hint: dovetail doctor --model" in dovetail.err
    assert (project / "model.lp").read_text(encoding="utf-8") == "old"
    assert not (project / "plan.yaml").exists()
