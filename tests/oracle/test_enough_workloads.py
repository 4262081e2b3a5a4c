"""`admission` of a number of workloads per group: engine and brute force agree, and bounds bind (S4.5)."""

from __future__ import annotations

import os
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.sample import cases, problems
from tests.support.specs import make_spec, node, policy, role, workload
from tests.support.specs import request as asks
from tests.support.tiny_gangs import tiny_gangs

from dovetail.engine import solve
from dovetail.rules.admission import Admission
from dovetail.spec import Spec

CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


def ensembles(seed: int) -> Spec:
    """Return gangs on a tree, in groups of which some must be there."""
    rng = Random(f"ensembles {seed}")
    spec = tiny_gangs(seed)
    work = tuple(replace(w, labels={"set": rng.choice("ab")}) for w in spec.workloads)
    per = rng.choice(("label", "label", "all"))
    rule = Admission(
        rng.choice((1, 2, 2, 3)),
        per,
        "set" if per == "label" else None,
        or_none=rng.random() < 0.6,
        count="workloads",
    )
    own = policy("enough", rule, enforcement=rng.choice(("hard", "hard", 700)))
    return replace(spec, workloads=work, policies=tuple(sorted((*spec.policies, own), key=lambda p: p.name)))


def test_engine_and_brute_force_agree_on_how_many_gangs_there_are() -> None:
    found = list(cases(0, 25, ensembles))
    assert problems(found) == []
    told = [case.plan.policies["enough"].violation if case.optimum else None for case in found]
    assert {None, 0} < {*told}


@pytest.mark.campaign
def test_engine_and_brute_force_agree_on_many_more() -> None:
    assert problems(cases(CAMPAIGN_FIRST, 800, ensembles)) == []


@pytest.mark.parametrize(("most", "there"), [(12, ["big", "one", "two"]), (9, ["one", "two"]), (3, [])])
def test_two_of_three_gangs_are_enough_or_none(most: int, there: list[str]) -> None:
    """Of gangs of 8, 2 and 2 GPUs no number of replicas says `two of them`."""
    sizes = {"big": 8, "one": 2, "two": 2}
    gangs = [workload(name, type="gang", roles=[role("", n, asks(1))]) for name, n in sizes.items()]
    rule = Admission(2, "all", or_none=True, count="workloads")
    plan = solve(make_spec([node("n", most)], gangs, [policy("enough", rule)]))
    assert sorted({replica.workload for replica in plan.placements}) == there
