"""Whatever becomes of the solvers' process, and whenever: a plan that verifies, or a refusal and the old file."""

from __future__ import annotations

import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.robust.runs import BEFORE, Run, kill, starve

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc")

SCENARIO = ("mixed-fleet", "--work", "0.2")
SPAN = 3.5  # seconds of an undisturbed run, about
STARTED = 0.5  # seconds in which Python itself starts; until then Ctrl-C is its own affair
SIDE_BY_SIDE = ((), ("--jobs", "2"))
INTERRUPTED = {130, -signal.SIGINT}


def moment(seed: int) -> float:
    return random.Random(seed).uniform(0, SPAN)


def survives(folder: Path, seed: int, how: Callable[[int], object]) -> None:
    run = Run.start(folder, *SCENARIO, *SIDE_BY_SIDE[seed % 2])
    run.wait(moment(seed))
    run.disturb(how)
    code = run.end()
    run.check_what_is_left()
    assert code in {0, 7}, run.err
    if code == 0:
        assert run.plan != BEFORE
    else:
        assert run.plan == BEFORE
        assert "dovetail: " in run.err


def stops(folder: Path, seed: int) -> None:
    run = Run.start(folder, *SCENARIO, *SIDE_BY_SIDE[seed % 2])
    run.wait(STARTED + moment(seed))
    run.interrupt()
    if seed % 3 == 0:
        run.wait(0.2)
        run.interrupt()
    code = run.end()
    run.check_what_is_left()
    assert code in {0, *INTERRUPTED}, run.err
    assert code or run.plan != BEFORE  # all was done before the interrupt came


@pytest.mark.parametrize("seed", range(1))
def test_a_killed_search(tmp_path: Path, seed: int) -> None:
    survives(tmp_path, seed, kill)


@pytest.mark.parametrize("seed", range(14, 15))
def test_a_search_without_memory(tmp_path: Path, seed: int) -> None:
    survives(tmp_path, seed, starve)


@pytest.mark.parametrize("seed", range(20, 21))
def test_an_interrupted_run(tmp_path: Path, seed: int) -> None:
    stops(tmp_path, seed)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(100, 200))
def test_many_killed_searches(tmp_path: Path, seed: int) -> None:
    survives(tmp_path, seed, kill)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(200, 300))
def test_many_searches_without_memory(tmp_path: Path, seed: int) -> None:
    survives(tmp_path, seed, starve)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(300, 400))
def test_many_interrupted_runs(tmp_path: Path, seed: int) -> None:
    stops(tmp_path, seed)


def test_a_killed_worker_costs_its_round_alone(tmp_path: Path) -> None:
    run = Run.start(tmp_path, *SCENARIO, "--jobs", "2")
    run.child()
    while not (workers := run.workers()) and run.wait(0.02):
        pass
    kill(workers[0])
    assert run.end() == 0
    assert "stoppedBy: crash" not in run.plan
    run.check_what_is_left()


@pytest.mark.parametrize("memory", ["40Mi", "150Mi"])
def test_too_little_memory_is_told(tmp_path: Path, memory: str) -> None:
    run = Run.start(tmp_path, *SCENARIO, "--memory", memory)
    assert run.end() in {0, 7}, run.err
    run.check_what_is_left()
