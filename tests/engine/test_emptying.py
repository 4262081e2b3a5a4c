"""Nodes are emptied of what runs where cost comes before moves: no rule breaks, and nobody moves for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.crowded_specs import crowded
from tests.support.mixed_specs import mixed
from tests.support.specs import make_spec, node, place, policy, request, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.construction.emptying import emptied
from dovetail.engine.construction.tier_order import costs_before_moves
from dovetail.engine.start import start
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, owed, view_of
from dovetail.model.state import State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import Rule, context_of
from dovetail.rules.move import Move
from dovetail.spec import Objective, Spec
from dovetail.verify import verify

COST_FIRST = Objective(tiers=("mend", "admitted", "cost", "disruption"))


def empty(problem: Problem, state: State) -> State:
    return legalise(problem, emptied(problem, state, Stop(), lambda: False))


def cost(problem: Problem, state: State) -> int:
    tier = next(tier for tier in problem.tiers if tier.name == "cost")
    return tier.measure(view_of(problem, state), problem.context)


@pytest.mark.parametrize("made", [tiny, mixed, crowded])
def test_no_rule_breaks_nobody_is_lost_and_it_costs_no_more(made: Callable[[int], Spec]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        problem = compile_problem(context_of(made(seed)))
        before, unpaid = start(problem, None, Stop())
        if unpaid or "cost" not in [tier.name for tier in problem.tiers]:
            continue
        after = empty(problem, before)
        assert after.admitted() == before.admitted(), seed
        assert not owed(problem, after, hard_policies(problem) - searching(problem)), seed
        assert cost(problem, after) <= cost(problem, before), seed
        seen["cheaper"] += cost(problem, after) < cost(problem, before)
    assert seen["cheaper"], seen


def searching(problem: Problem) -> frozenset[str]:
    return frozenset(policy.name for policy in problem.spec.policies if policy.rule.searches)


def halves(*rules: Rule, prices: tuple[int, ...] = (5, 5, 5), **more: Any) -> Spec:
    """Return nodes of four GPUs that cost something, each with a replica of one GPU that runs there."""
    count = len(prices)
    work = [workload("runs", roles=[role("", count, request(1))], **more)]
    runs = {f"runs#{i}": place(f"n{i}", 0) for i in range(count)}
    every = [node(f"n{i}", 4, price=price) for i, price in enumerate(prices)]
    policies = [policy(f"p{i}", rule) for i, rule in enumerate(rules)]
    return make_spec(every, work, policies=policies, objective=COST_FIRST, running=runs)


def used(spec: Spec) -> list[str]:
    problem = compile_problem(context_of(spec))
    after = empty(problem, today_state(problem))
    return [problem.nodes[index].name for index, fill in after.fills.items() if fill.slots]


def test_all_come_to_the_node_that_costs_least() -> None:
    assert used(halves(prices=(5, 3, 5))) == ["n1"]


def test_no_more_move_than_a_policy_lets() -> None:
    assert len(used(halves(Move(max_moves=1)))) == 2


def test_who_may_not_move_stays() -> None:
    assert used(halves(movable=False)) == ["n0", "n1", "n2"]


def test_what_costs_as_much_elsewhere_stays() -> None:
    """GPUs cost, and nodes do not: no node is worth emptying for the sake of another that is as dear."""
    spec = halves(prices=(0, 0, 0))
    priced = [node(f"n{i}", 4, gpu_price=2) for i in range(3)]
    work, runs = spec.workloads, {f"runs#{i}": place(f"n{i}", 0) for i in range(3)}
    assert used(make_spec(priced, work, objective=COST_FIRST, running=runs)) == ["n0", "n1", "n2"]


def test_a_plan_empties_nodes_only_where_cost_comes_before_moves() -> None:
    spec = halves()
    first = solve(spec, Limits(work=1.0))
    assert first.summary["moves"] == 2
    assert verify(spec, first).ok
    assert costs_before_moves(compile_problem(context_of(spec)))
    late = make_spec(
        spec.cluster.nodes,
        spec.workloads,
        objective=Objective(tiers=("admitted", "disruption", "cost")),
        running={f"runs#{i}": place(f"n{i}", 0) for i in range(3)},
    )
    assert not costs_before_moves(compile_problem(context_of(late)))
    assert solve(late, Limits(work=1.0)).summary["moves"] == 0
