"""The LP over contents of nodes proves what sums over kinds of nodes do not: who does not go together on one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.specs import make_spec, node, workload

from dovetail.engine import solve
from dovetail.engine.fleet.fleet_bounds import FleetBounds, proof_of
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.proof.certificate import Fork, Forks, Leaf, Multipliers, Proof
from dovetail.proof.fleet_models import FleetModels
from dovetail.proof.models import Earlier
from dovetail.proof.tree import Unproved, check_tree
from dovetail.rules import context_of
from dovetail.spec import Spec

CASES = 5_000


def two_nodes() -> Spec:
    """Two nodes of 4 GPUs and 100 cores: two replicas of 31 cores go together, but no third beside any other two."""
    asked = [(2, 2, 31), (4, 1, 41), (4, 1, 40)]
    work = [workload(f"w{i}", n, gpus=gpus, cpu=1000 * cores) for i, (n, gpus, cores) in enumerate(asked)]
    return make_spec([node(f"n{i}", 4, cpu=100_000) for i in range(2)], work)


def bound(problem: Problem, tier: int = 0, given: Mapping[str, int] | None = None, contents: float = CASES) -> Proof:
    """Return what is proved of a tier, in one case of the fleet."""
    bounds = FleetBounds(problem, Stop())
    asked = problem.tiers[tier]
    bounds.prove(asked, given or {}, priced=True, contents=contents)
    best = bounds.best(asked, given or {})
    assert best is not None
    return proof_of(asked.name, best[0], given or {}, best[1])


def test_what_does_not_go_together_on_a_node_is_known() -> None:
    spec = two_nodes()
    problem = compile_problem(context_of(spec))
    assert solve(spec).tiers[0].value == 6000
    assert bound(problem, contents=0).bound >= 7000
    assert bound(problem).bound == 6000


def check(problem: Problem, proof: Proof, target: int) -> None:
    fleet = FleetBounds(problem, Stop()).priced_model
    earlier = {name: Earlier(value, None) for name, value in proof.given.items()}
    position = [tier.name for tier in problem.tiers].index(proof.tier)
    check_tree(FleetModels(fleet).of_tier(position, earlier).question(target), proof.tree)


def changed(proof: Proof, forks: Forks) -> Proof:
    """Return a proof with other cases of what nodes hold."""
    (leaf,) = proof.tree
    assert isinstance(leaf, Leaf)
    return replace(proof, tree=(replace(leaf, prices={0: forks}),))


def test_the_verifier_follows_the_cases_and_none_but_these() -> None:
    problem = compile_problem(context_of(two_nodes()))
    proof = bound(problem)
    check(problem, proof, 6000)
    with pytest.raises(Unproved):
        check(problem, proof, 5000)
    (leaf,) = proof.tree
    assert isinstance(leaf, Leaf)
    forks = leaf.prices[0]
    assert isinstance(forks, tuple)
    assert any(isinstance(each, Fork) for each in forks)
    nothing: Multipliers = {}
    with pytest.raises(Unproved, match="end early"):
        check(problem, changed(proof, forks[:-1]), 6000)
    with pytest.raises(Unproved, match="beyond their end"):
        check(problem, changed(proof, (*forks, nothing)), 6000)
    with pytest.raises(Unproved, match="shows 10000 at most"):
        check(problem, changed(proof, (nothing,)), 6000)


@pytest.mark.parametrize("contents", [1, 10, 100])
def test_what_is_not_looked_at_to_its_end_proves_something(contents: int) -> None:
    problem = compile_problem(context_of(two_nodes()))
    assert 6000 <= bound(problem, contents=contents).bound <= 10_000


def test_nodes_that_cannot_be_shared_are_paid_for_one_by_one() -> None:
    """Three replicas of 60 of 100 cores are on three nodes, of which the cheapest are used."""
    nodes = [node(f"n{i}", 4, cpu=100_000, price=10 + i, gpu_price=i) for i in range(5)]
    spec = make_spec(nodes, [workload("w", 3, gpus=1, cpu=60_000)])
    problem = compile_problem(context_of(spec))
    plan = solve(spec)
    values = {tier.name: tier.value for tier in plan.tiers}
    position = next(i for i, tier in enumerate(problem.tiers) if tier.counts_nodes)
    name = problem.tiers[position].name
    given = {tier.name: values[tier.name] for tier in problem.tiers[:position]}
    assert bound(problem, position, given).bound == values[name]
    check(problem, bound(problem, position, given), -values[name])
