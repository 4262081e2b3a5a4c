"""Public gang data: cases of another scheduler's tests, and a real topology; skipped where they are absent."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from benchmarks import gang_cases, lingjun

from dovetail.build import build
from dovetail.documents import load_project
from dovetail.engine import solve
from dovetail.importers.project import write_project
from dovetail.progress import Limits
from dovetail.verify import verify


def existing(file: Path) -> Path:
    """Return a file of the data, or skip."""
    if not file.is_file():
        pytest.skip(f"there is no {file.name} in DOVETAIL_DATA")
    return file


def test_every_public_case_has_its_proved_truth(data: Path) -> None:
    told = gang_cases.plan_file(existing(data / "gang_cases.json"))
    assert {name for name, each in told.items() if not all(each["agrees"].values()) or each.get("faults")} == set()
    assert sum(len(each["agrees"]) for each in told.values()) >= 100


@pytest.mark.limits
@pytest.mark.parametrize("busy", [0.0, 0.4])
def test_ten_gangs_on_a_real_topology_are_proved_in_a_minute(data: Path, tmp_path: Path, busy: float) -> None:
    hosts = lingjun.read_hosts(existing(data / lingjun.FILE))
    free = lingjun.free_hosts(hosts, busy, seed=1)
    write_project(lingjun.documents(hosts, free, lingjun.GANGS), tmp_path, overwrite=True)
    spec = build(load_project(tmp_path), as_of=dt.date(2026, 1, 1))
    plan = solve(spec, Limits(time=60))
    assert verify(spec, plan).ok
    assert all((tier.gap or 0) <= 0.01 for tier in plan.tiers)
    admitted, spans = lingjun.spans(spec, plan)
    greedy_admitted, greedy_spans = lingjun.greedy(free, lingjun.GANGS)
    assert admitted >= greedy_admitted
    assert spans["asw"] < greedy_spans["asw"]
