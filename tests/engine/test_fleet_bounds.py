"""The relaxation of whole fleets cuts no optimum: neither its rows do, nor what its LP's multipliers prove."""

from __future__ import annotations

import os

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.support.fleet_cuts import cuts
from tests.support.tiny_specs import tiny

SLICE = 32
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "20000"))
CAMPAIGN_CHUNKS = 5
CHUNK = 300


def faults(first: int, count: int) -> list[str]:
    found = []
    for seed in range(first, first + count):
        try:
            optimum = brute(tiny(seed))
        except TooLarge:
            continue
        if optimum is not None:
            best = ascending(optimum.tiers, optimum.values)
            found += [f"seed {seed}: {cut}" for cut in cuts(tiny(seed), best)]
    return found


def test_no_bound_cuts_what_brute_force_finds() -> None:
    assert faults(0, SLICE) == []


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(CAMPAIGN_CHUNKS))
def test_no_bound_cuts_an_optimum_of_thousands(chunk: int) -> None:
    first = CAMPAIGN_FIRST + chunk * CHUNK
    print(f"seeds {first} to {first + CHUNK - 1}")
    assert faults(first, CHUNK) == []
