"""Gangs on tiny ragged trees: the engine's optimum is brute force's, tier by tier, and its plans verify."""

from __future__ import annotations

import os
from functools import cache

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.oracle.sample import Case
from tests.support.tiny_gangs import tiny_gangs

from dovetail.engine import solve
from dovetail.verify import lines, verify

SLICE = 80
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


def cases(first: int, count: int) -> list[Case]:
    """Return cases of consecutive seeds; Specs too large for brute force are left out."""
    found = []
    for seed in range(first, first + count):
        spec = tiny_gangs(seed)
        try:
            optimum = brute(spec)
        except TooLarge:
            continue
        found.append(Case(seed, spec, optimum, solve(spec)))
    return found


@cache
def shared() -> list[Case]:
    """Return the slice."""
    return cases(0, SLICE)


def faults_of(case: Case) -> list[str]:
    """Return how a case disagrees with brute force or fails to verify."""
    found = [case.difference()]
    verification = verify(case.spec, case.plan)
    if not verification.ok:
        found.append(f"seed {case.seed}: " + "; ".join(lines(verification)))
    return [fault for fault in found if fault is not None]


def test_the_engine_finds_the_optimum_of_every_tier_and_its_plans_verify() -> None:
    assert [fault for case in shared() for fault in faults_of(case)] == []


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(10))
def test_the_engine_finds_the_optimum_on_thousands(chunk: int) -> None:
    first = CAMPAIGN_FIRST + chunk * 250
    print(f"seeds {first} to {first + 249}")
    assert [fault for case in cases(first, 250) for fault in faults_of(case)] == []
