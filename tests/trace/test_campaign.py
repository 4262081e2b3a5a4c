"""The trace at length: all five lists of arrived pods, and reproducibility of long runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.measure import dovetail
from tests.trace.conftest import import_trace, plan_trace
from tests.trace.shuffle import shuffled

pytestmark = pytest.mark.campaign

# GPUs that FGD places online, and the bound from GPU patterns, in milli-GPU: reference figures for the same lists.
REFERENCE = {
    "default": (5_910_300, 6_020_100),
    "cpu100": (5_903_100, 6_017_700),
    "gpushare40": (5_843_100, 5_940_600),
    "gpuspec10": (5_874_600, 6_017_100),
    "multigpu20": (5_925_000, 6_047_200),
}
ROUNDING = 100  # the reference figures are rounded to a tenth of a GPU
WORK = "10"


@pytest.mark.parametrize("arrived", REFERENCE)
def test_every_list_is_planned_better_than_online_and_verifies(
    data: Path, tmp_path: Path, arrived: str, tell: Callable[[str], None]
) -> None:
    project = import_trace(data, arrived, tmp_path / "project")
    planned = plan_trace(project, tmp_path / "plan.yaml", "--work", WORK)
    plan, (online, reference) = planned.plan, REFERENCE[arrived]
    gpus, cpu = plan.tiers
    assert gpus.bound is not None
    reached = f"{gpus.value / 1000:,.1f} GPUs, bound {gpus.bound / 1000:,.1f}"
    tell(f"trace {arrived}: {reached}, work {WORK}, {planned.run.seconds:.0f} s")
    assert online < gpus.value <= gpus.bound <= reference + ROUNDING
    assert cpu.value == cpu.bound
    assert dovetail("verify", planned.file, project).code == 0


@pytest.mark.parametrize("arrived", REFERENCE)
def test_every_list_gives_the_same_bytes_however_it_is_told(data: Path, tmp_path: Path, arrived: str) -> None:
    project = import_trace(data, arrived, tmp_path / "project")
    one = plan_trace(project, tmp_path / "one.yaml", "--work", WORK, seed="1")
    other = shuffled(project, tmp_path / "elsewhere", seed=2)
    two = plan_trace(other, tmp_path / "two.yaml", "--work", WORK, seed="2")
    assert one.file.read_bytes() == two.file.read_bytes()
