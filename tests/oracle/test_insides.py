"""Islands and sockets: the engine's optimum is brute force's, tier by tier, and its plans verify."""

from __future__ import annotations

import os

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.oracle.sample import Case
from tests.support.fleet_cuts import cuts
from tests.support.tiny_insides import tiny_insides

from dovetail.verify import lines, verify

SLICE = 60
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


def cases(first: int, count: int) -> list[Case]:
    """Return cases of consecutive seeds; Specs too large for brute force are left out."""
    found = []
    for seed in range(first, first + count):
        spec = tiny_insides(seed)
        try:
            optimum = brute(spec)
        except TooLarge:
            continue
        found.append(Case(seed, spec, optimum))
    return found


def problems(found: list[Case]) -> list[str]:
    """Return where the engine and brute force differ, a plan does not verify, or the bound on fleets cuts it off."""
    told = [text for case in found if (text := case.difference())]
    for case in found:
        if case.optimum is not None:
            best = ascending(case.optimum.tiers, case.optimum.values)
            told += [f"seed {case.seed}: {cut}" for cut in cuts(case.spec, best)]
        verification = verify(case.spec, case.plan)
        if not verification.ok:
            told.append(f"seed {case.seed}: {list(lines(verification))}")
    return told


def test_engine_and_brute_force_agree_on_islands_and_sockets() -> None:
    found = cases(0, SLICE)
    assert len(found) > SLICE // 2
    assert problems(found) == []


@pytest.mark.campaign
def test_engine_and_brute_force_agree_on_many_more() -> None:
    assert problems(cases(CAMPAIGN_FIRST, 3000)) == []
