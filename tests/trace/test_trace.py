"""The Alibaba trace 2023, from its files to a verified plan: 1,213 nodes, 6,212 GPUs, 8,316 pods.

The figures are those of the default list of arrived pods: online, fragmentation gradient descent reaches 5,910 GPUs
there and best fit 5,773, both with all 1,105 pods that ask for no GPU; no plan passes 6,020.2 GPUs.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.measure import dovetail
from tests.trace.conftest import WORK, Planned, plan_trace
from tests.trace.shuffle import shuffled

FGD = 5_910_000  # milli-GPU
MOST = 6_020_200
CPU_ONLY = 1_105


def test_a_small_limit_of_work_beats_online_schedulers(planned: Planned) -> None:
    plan = planned.plan
    assert plan.summary["gpusTotal"] == 6_212
    assert plan.summary["gpusAllocated"] * 1000 >= FGD
    assert plan.summary["cpuOnlyReplicas"] == CPU_ONLY


def test_the_bound_is_above_the_value_and_not_above_what_is_known(planned: Planned) -> None:
    gpus, cpu = planned.plan.tiers
    assert (gpus.name, cpu.name) == ("admitted[0]", "admitted-cpu[0]")
    assert gpus.bound is not None
    assert gpus.value == planned.plan.summary["gpusAllocated"] * 1000
    assert gpus.value <= gpus.bound <= MOST
    assert cpu.value == cpu.bound


def test_the_value_its_bound_and_the_gap_are_printed(planned: Planned) -> None:
    gap = planned.plan.tiers[0].gap
    assert gap is not None
    assert gap < 0.01
    assert "gap" in planned.run.out
    assert "6,020.1" in planned.run.out


def test_the_plan_verifies(planned: Planned) -> None:
    run = dovetail("verify", planned.file, planned.project, "-o", "json")
    assert run.code == 0, run.err
    assert json.loads(run.out)["spec"]["ok"] is True


@pytest.mark.campaign
def test_the_same_documents_in_another_place_order_and_hash_seed_give_the_same_bytes(
    planned: Planned, tmp_path: Path
) -> None:
    project = shuffled(planned.project, tmp_path / "other", seed=1)
    again = plan_trace(project, tmp_path / "plan.yaml", "--work", WORK, seed="4711")
    assert again.file.read_bytes() == planned.file.read_bytes()
