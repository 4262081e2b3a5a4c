"""Ruin and recreate where nodes cost: fewer or cheaper ones are in use, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from tests.support.crowded_specs import crowded
from tests.support.mig_specs import tiny_mig
from tests.support.mixed_specs import mixed
from tests.support.served_specs import rated
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import CARD, make_spec, node, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.construction.moving import tidied
from dovetail.engine.generation.cost_ruins import CostRuins
from dovetail.engine.start import start
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, owed, view_of
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Objective, Spec
from dovetail.spec.slo import Slo

OTHER = "A100-40GB"
TIERS = ("admitted", "disruption", "cost")


def priced(spec: Spec) -> Spec:
    """Return a Spec whose nodes cost something, of which the objective asks last."""
    nodes = tuple(
        replace(each, price=1_000_000 * (2 + place % 3), gpu_price=100_000 * (place % 2))
        for place, each in enumerate(spec.cluster.nodes)
    )
    objective = replace(spec.objective, tiers=(*(t for t in spec.objective.tiers if t != "cost"), "cost"))
    return replace(spec, cluster=replace(spec.cluster, nodes=nodes), objective=objective)


def cost(problem: Problem, state: State) -> int:
    """Return the value of the tier, as plans tell it."""
    tier = next(tier for tier in problem.tiers if tier.name == "cost")
    return tier.measure(view_of(problem, state), problem.context)


@pytest.mark.parametrize("made", [tiny, tiny_mig, tiny_sharing, mixed, crowded])
def test_what_is_found_costs_less_and_changes_nothing_of_what_is_admitted_or_stays(
    made: Callable[[int], Spec],
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        problem = compile_problem(context_of(priced(made(seed))))
        before, unpaid = start(problem, None, Stop())
        ruins = CostRuins(problem, before, Random(seed))
        if unpaid or ruins.over:
            continue
        found = ruins.attempts(60, lambda: False)
        after = ruins.state()
        assert after.admitted() == before.admitted(), seed
        assert after.kept() == before.kept(), seed
        seen["tried"] += 1
        if found and not problem.layouts and not owed(problem, legalise(problem, after), hard_policies(problem)):
            seen["cheaper"] += 1
            assert cost(problem, after) < cost(problem, before), seed
    assert seen["tried"] >= 10, seen


def test_a_node_is_emptied_for_which_others_change_places_first() -> None:
    """Twelve GPUs are asked for on four nodes of four, with one idle on each: nobody has room on the others as is."""
    work = [workload("three", 1, gpus=3), workload("two", 3, gpus=2), workload("one", 3, gpus=1)]
    nodes = [replace(node(name, 4), price=1_000_000) for name in "abcd"]
    problem = compile_problem(context_of(make_spec(nodes, work, objective=Objective(tiers=TIERS))))
    three, two, one = (Slot(problem.shapes_of_role[name, ""]) for name in ("three", "two", "one"))
    both = {place: Fill(Counter({two: 1, one: 1})) for place in range(3)}
    state = State({**both, 3: Fill(Counter({three: 1}))})
    assert cost(problem, tidied(problem, state, Stop(), lambda: False)) == 4_000_000
    ruins = CostRuins(problem, state, Random(1))
    assert ruins.attempts(1000, lambda: False)
    assert cost(problem, ruins.state()) == 3_000_000
    assert not ruins.attempts(200, lambda: False)


def test_who_is_promised_a_rate_leaves_a_node_for_one_that_serves_as_much() -> None:
    """There is room on a slow node in use as well, which is cheaper."""
    slo = Slo(2000, {OTHER: 500, CARD: 1000}, listed=False)
    work = [replace(workload("hurries", 2, gpus=1, type="job"), slo=slo)]
    work += [workload(name, 2, gpus=1) for name in ("one", "two")]
    makes = (("fast", CARD, 9), ("also-fast", CARD, 5), ("slow", OTHER, 3))
    nodes = [node(name, 4, accelerator=card, price=price * 1_000_000) for name, card, price in makes]
    tiers = Objective(tiers=("admitted", "slo", "cost"))
    problem = compile_problem(context_of(make_spec(nodes, work, objective=tiers)))
    hurries, one, two = (Slot(problem.shapes_of_role[name, ""]) for name in ("hurries", "one", "two"))
    begun = {"fast": hurries, "also-fast": one, "slow": two}
    state = State({problem.node_index[name]: Fill(Counter({slot: 2})) for name, slot in begun.items()})
    ruins = CostRuins(problem, state, Random(1))
    assert ruins.attempts(200, lambda: False)
    assert cost(problem, ruins.state()) == 8_000_000
    assert ruins.state().fill(problem.node_index["also-fast"]).slots[hurries] == 2


def test_as_much_is_served_of_rates_as_before() -> None:
    seen: Counter[str] = Counter()
    for seed in range(20):
        problem = compile_problem(context_of(priced(rated(seed))))
        before, unpaid = start(problem, None, Stop())
        ruins = CostRuins(problem, before, Random(1))
        if unpaid or ruins.over:
            continue
        ruins.attempts(100, lambda: False)
        views = view_of(problem, before), view_of(problem, ruins.state())
        told = [tier for tier in problem.tiers if tier.kind in ("admitted", "slo")]
        then, now = ([tier.measure(view, problem.context) for tier in told] for view in views)
        assert then == now, seed
        seen["changed"] += ruins.state() != before
    assert seen["changed"] >= 5, seen
