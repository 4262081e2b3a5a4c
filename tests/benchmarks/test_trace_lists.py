"""The benchmark of the trace measures whatever lists lie in its directory, and tells of those that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import trace, trace_page

ROWS = [
    trace_page.Row("best fit, online", 5_820_500, 3, 0.5),
    trace_page.Row("FGD, online", 5_910_800, 3, 1.3),
    trace_page.Row("dovetail, 60 s", 6_018_000, 3, 61.0, 6_019_000),
]


def test_the_default_list_comes_first_then_all_others_by_name(tmp_path: Path) -> None:
    arrived = tmp_path / "openb/arrived"
    arrived.mkdir(parents=True)
    for name in ("multigpu50", "default", "cpu050"):
        (arrived / f"{name}.csv").touch()
    assert trace.lists(tmp_path) == ("default", "cpu050", "multigpu50")


def test_a_list_that_is_not_there_is_told_before_anything_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trace.main(["--data", str(tmp_path), "--arrived", "cpu050"]) == 64
    assert capsys.readouterr().err == "benchmarks: no list cpu050; there are none\n"


def test_lists_without_reference_figures_have_their_rows_and_are_not_compared() -> None:
    known = trace_page.Measured("default", 10, 3, 6_211_700, ROWS)
    new = trace_page.Measured("cpu050", 10, 3, 6_211_980, ROWS)
    assert "### cpu050" in "\n".join(trace_page.section([known, new]))
    compared = trace_page.baselines([known, new])
    assert "| default | 5,820.5 | 5,773.4 |" in compared
    assert "cpu050" not in compared
    assert "up to 0.0 %" in trace_page.baselines([new])
