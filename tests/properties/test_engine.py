"""What holds for every plan of the engine, whatever the documents say."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.oracle.brute import ascending
from tests.support.random_specs import specs
from tests.support.specs import make_spec, node
from tests.support.tiny_specs import tiny

from dovetail.diff import diff
from dovetail.engine import solve
from dovetail.objectives import tiers_of
from dovetail.plan import Plan, current_of, write
from dovetail.rules import context_of
from dovetail.rules.move import Move
from dovetail.rules.spread import Spread
from dovetail.spec import Cluster, Current, Spec
from dovetail.verify import lines, verify

seeds = st.integers(0, 10**9)


def values_of(plan: Plan) -> dict[str, int]:
    return {tier.name: tier.value for tier in plan.tiers}


@settings(max_examples=70)
@given(spec=specs())
def test_any_plan_verifies(spec: Spec) -> None:
    verification = verify(spec, solve(spec))
    assert verification.ok, "\n".join(lines(verification))


@settings(max_examples=30)
@given(seed=seeds)
def test_the_order_of_documents_changes_nothing(seed: int) -> None:
    spec = tiny(seed)
    rng = Random(seed)
    shuffled = make_spec(
        spec.cluster.nodes,
        rng.sample(spec.workloads, len(spec.workloads)),
        rng.sample(spec.policies, len(spec.policies)),
        waivers=spec.waivers,
        objective=spec.objective,
        levels=spec.cluster.levels,
        as_of=spec.as_of,
    )
    rows = rng.sample(spec.current.replicas, len(spec.current.replicas))
    shuffled = replace(shuffled, current=replace(spec.current, replicas=tuple(rows)))
    assert write(solve(shuffled)) == write(solve(spec))


@settings(max_examples=30)
@given(seed=seeds)
def test_names_and_order_of_nodes_change_no_tier(seed: int) -> None:
    spec = tiny(seed)
    names = [n.name for n in spec.cluster.nodes]
    new = dict(zip(names, Random(seed).sample([f"x{i}" for i in range(9)], len(names)), strict=True))
    one, other = solve(spec), solve(_renamed(spec, new))
    assert one.outcome.status == other.outcome.status
    assert values_of(one) == values_of(other)


def _renamed(spec: Spec, new: dict[str, str]) -> Spec:
    """Return a Spec whose nodes have other names and stand in the order of these."""
    nodes = sorted((replace(n, name=new[n.name]) for n in spec.cluster.nodes), key=lambda n: n.name)
    rows = tuple(replace(r, node=new.get(r.node, r.node)) for r in spec.current.replicas)
    policies = tuple(
        p if p.nodes is None else replace(p, nodes=replace(p.nodes, names=tuple(new[n] for n in p.nodes.names)))
        for p in spec.policies
    )
    return replace(
        spec,
        cluster=Cluster(spec.cluster.name, spec.cluster.levels, tuple(nodes)),
        current=replace(spec.current, replicas=rows),
        policies=policies,
    )


@settings(max_examples=40)
@given(seed=seeds)
def test_an_added_node_never_makes_the_optimum_worse(seed: int) -> None:
    """The old plan stays legal, so the tiers in order get no worse; only a skew may: an empty domain widens it."""
    spec = tiny(seed)
    assume(not any(isinstance(p.rule, Spread) and p.rule.max_skew is not None for p in spec.policies))
    before = solve(spec)
    assume(before.outcome.status == "optimal")
    extra = node("more", 2, domains={"zone": "a", "rack": "a/r0"}, cpu=4000, memory=8192)
    after = solve(replace(spec, cluster=replace(spec.cluster, nodes=(*spec.cluster.nodes, extra))))
    assert after.outcome.status == "optimal"
    tiers = tiers_of(context_of(spec))
    old, new = values_of(before), values_of(after)
    assert list(old) == list(new)
    assert ascending(tiers, list(new.values())) >= ascending(tiers, list(old.values()))


@settings(max_examples=40)
@given(seed=seeds)
def test_a_plan_does_not_differ_from_itself(seed: int) -> None:
    spec = tiny(seed)
    plan = solve(spec)
    found = diff(plan, plan, spec)
    assert not found
    assert not found.changes


@settings(max_examples=40)
@given(seed=seeds, running=st.booleans())
def test_a_plan_taken_as_the_current_state_stays_as_it_is(seed: int, running: bool) -> None:
    """Each plan is the optimum of its own documents, hence of the same ones where it already runs."""
    spec = tiny(seed) if running else replace(tiny(seed), current=Current())
    assume(not any(isinstance(p.rule, Move) for p in spec.policies))  # a new budget may allow one move more
    plan = solve(spec)
    assume(plan.outcome.status == "optimal")
    assume("disruption" in spec.objective.tiers)
    again = solve(replace(spec, current=replace(current_of(plan), elapsed=spec.current.elapsed)))
    assert again.outcome.status == "optimal"
    assert again.summary["moves"] == again.summary["evictedReplicas"] == 0
    assert again.placements.items() >= plan.placements.items()
    old, new = values_of(plan), values_of(again)
    admitted = [name for name in old if name.startswith("admitted")]
    assert {name: old[name] for name in admitted} == {name: new[name] for name in admitted}
