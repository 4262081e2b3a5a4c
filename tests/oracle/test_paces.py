"""Shares that take different parts of different GPUs: the engine and brute force agree in every tier (S2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from tests.oracle.brute import TooLarge, ascending, brute
from tests.oracle.test_mig import difference
from tests.oracle.test_sharing import judged
from tests.support.fleet_cuts import cuts, standing_cuts
from tests.support.mig_specs import tiny_mig
from tests.support.mixed_specs import mixed
from tests.support.paced_specs import paced
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import policy
from tests.support.tiny_specs import tiny

from dovetail.rules.promises import Promises
from dovetail.rules.survive import Survive
from dovetail.spec import Spec
from dovetail.spec.permits import Ratios

SLICE = 14
CAMPAIGN = 300


def fractions(seed: int) -> Spec:
    """Return a Spec of shares and other work on GPUs that are shared by fractions."""
    spec = tiny_sharing(seed)
    nodes = tuple(replace(node, mechanism="fraction", sharing=None) for node in spec.cluster.nodes)
    current = replace(spec.current, settings={})
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes), current=current)


def surviving(seed: int) -> Spec:
    """Return a Spec of fractions on nodes of which any may be lost."""
    own = policy("p", Survive(of="node"), enforcement=("hard", 1, 3000)[seed % 3])
    return replace(fractions(seed), policies=(own,))


def promising(seed: int) -> Spec:
    """Return a Spec with a soft limit of what is promised of shared GPUs."""
    own = policy("p", Promises(Ratios(compute=1200)), enforcement=1 + seed % 3)
    return replace(tiny_sharing(seed), policies=(own,))


KINDS: dict[str, Callable[[int], Spec]] = {
    "fractions": fractions,
    "equal parts": tiny_sharing,
    "cut": tiny_mig,
    "rules": tiny,
    "fragmentation": judged,
    "survive": surviving,
    "promises": promising,
    "mixed": mixed,
}


@cache
def problems(kind: str, first: int, count: int) -> tuple[Counter[str], tuple[str, ...]]:
    """Return how many Specs of a kind there were, how many of them bind, and where anybody is wrong."""
    seen, wrong = Counter[str](), list[str]()
    made = paced(KINDS[kind])
    for seed in range(first, first + count):
        found = difference(seed, made)
        if found is None:
            continue
        spec, plan, text = found
        seen["all"] += 1
        seen["varying"] += any(r.request.share and r.request.share.elsewhere for w in spec.workloads for r in w.roles)
        seen["left out"] += len(plan.placements) < sum(w.replicas for w in spec.workloads)
        wrong += [text] if text else []
        wrong += _cuts(seed, spec)
    return seen, tuple(wrong)


def _cuts(seed: int, spec: Spec) -> list[str]:
    try:
        best = brute(spec, leaves=3_000, evaluations=800)
    except TooLarge:
        return []
    if best is None:
        return []
    values = ascending(best.tiers, best.values)
    return [f"seed {seed}: {cut}" for cut in (*cuts(spec, values), *standing_cuts(spec, values))]


@pytest.mark.parametrize("kind", KINDS)
def test_engine_bounds_and_brute_force_agree(kind: str) -> None:
    seen, wrong = problems(kind, 0, SLICE)
    assert wrong == ()
    assert seen["varying"] >= 5, seen


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_they_agree_on_many(kind: str) -> None:
    assert problems(kind, 1_000, CAMPAIGN)[1] == ()
