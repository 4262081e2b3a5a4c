"""Islands and sockets: the engine's optimum is brute force's, tier by tier, and its plans verify."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.oracle.sample import Case
from tests.support.fleet_cuts import cuts
from tests.support.specs import policy, request
from tests.support.tiny_insides import tiny_insides

from dovetail.rules.reserve import Reserve
from dovetail.spec import Spec
from dovetail.verify import lines, verify

SLICE = 60
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


def cases(first: int, count: int, made: Callable[[int], Spec] = tiny_insides) -> list[Case]:
    """Return cases of consecutive seeds; Specs too large for brute force are left out."""
    found = []
    for seed in range(first, first + count):
        spec = made(seed)
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


def holding(seed: int) -> Spec:
    """Return the Spec of a seed with places held free, which keep within islands like any replica."""
    rng, spec = Random(f"holding {seed}"), tiny_insides(seed)
    rule = Reserve(replicas=rng.choice((1, 1, 2)), request=request(rng.choice((1, 2, 2))))
    held = policy("hold", rule, enforcement=rng.choice(("hard", 1, 3000)))
    return replace(spec, policies=tuple(sorted((*spec.policies, held), key=lambda each: each.name)))


def test_held_places_keep_within_islands() -> None:
    assert problems(cases(200, 15, holding)) == []


@pytest.mark.campaign
def test_engine_and_brute_force_agree_on_many_more() -> None:
    assert problems(cases(CAMPAIGN_FIRST, 3000)) == []
    assert problems(cases(CAMPAIGN_FIRST, 500, holding)) == []
