"""Recoveries of what belongs together: engine and brute force agree where groups, domains and islands fail (S4.7)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.brute import brute
from tests.oracle.sample import Case, cases, problems
from tests.oracle.test_strategy import single
from tests.support.mig_specs import card
from tests.support.specs import make_spec, node, policy, request, role, workload
from tests.support.tiny_gangs import tiny_gangs
from tests.support.tiny_insides import asking, tiny_insides
from tests.support.tiny_squads import tiny_squads

from dovetail.engine import solve
from dovetail.mig import Instance
from dovetail.rules import policy_of, strategy_of
from dovetail.rules.modes import MODES, Modes
from dovetail.rules.spread import Spread
from dovetail.rules.survive import Survive
from dovetail.spec import Current, Group, NodeSelector, Request, Spec, Topology, WorkloadSelector
from dovetail.verify import verify

CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))
SLOW = [pytest.param(seed, marks=pytest.mark.campaign) for seed in (70390, 70462)]


def _failing(spec: Spec, rng: Random) -> Spec:
    """Return a Spec of which some workloads survive the loss of a domain, if there are two to lose."""
    levels = [level for level in spec.cluster.levels if len(spec.cluster.members(level)) > 1]
    if not levels:
        return spec
    if rng.random() < 0.4:
        work = tuple(replace(w, mix=rng.choice(("none", "perRole"))) for w in spec.workloads)
        spec = replace(spec, workloads=work)
    names = sorted(w.id for w in spec.workloads)
    matched = WorkloadSelector(names=tuple(rng.sample(names, rng.randint(1, len(names)))))
    rule = Survive(of=rng.choice(levels), may_evict=rng.choice((None, WorkloadSelector(), WorkloadSelector())))
    own = policy("survive", rule, enforcement=rng.choice(("hard", "hard", 1, 3000)), workloads=matched)
    return replace(spec, policies=tuple(sorted((*spec.policies, own), key=lambda each: each.name)))


def grouped(seed: int) -> Spec:
    """Return the Spec of a seed, of gangs on a tree."""
    return _failing(tiny_gangs(seed), Random(f"grouped {seed}"))


def inside(seed: int) -> Spec:
    """Return the Spec of a seed, of replicas within islands and sockets."""
    return _failing(tiny_insides(seed), Random(f"inside {seed}"))


def in_part(seed: int) -> Spec:
    """Return the Spec of a seed, of gangs whose groups may be there in part."""
    return _failing(tiny_squads(seed), Random(f"in part {seed}"))


def cut_alike(seed: int) -> Spec:
    """Return the Spec of a seed, of MIG instances on nodes whose GPUs are cut alike."""
    return _failing(single(seed), Random(f"alike {seed}"))


def _restarting(found: list[Case]) -> int:
    return sum(any(rows for told in case.plan.recovery.values() for rows in told.values()) for case in found)


@pytest.mark.parametrize(
    ("made", "first", "count", "least"),
    [(grouped, 20, 20, 5), (inside, 20, 20, 5), (in_part, 20, 6, 1), (cut_alike, 50290, 22, 1)],
)
def test_engine_and_brute_force_agree_on_what_restarts_together(
    made: Callable[[int], Spec], first: int, count: int, least: int
) -> None:
    found = list(cases(first, count, made))
    assert problems(found) == []
    assert _restarting(found) >= least


def test_where_a_search_ends_without_a_plan_but_nothing_needs_to_change_that_is_the_plan() -> None:
    (case,) = cases(774007, 1, in_part)
    assert case.plan.outcome.status == "feasible"
    assert verify(case.spec, case.plan).ok


@pytest.mark.parametrize("seed", [70019, 70079, 70361, 70396, 70579, *SLOW])
def test_where_names_break_what_the_model_counts_another_solution_is_found(seed: int) -> None:
    """Who restarts where is more than counts tell; where the first solution had no names, nothing was admitted."""
    case = Case(seed, in_part(seed), brute(in_part(seed), leaves=12_000))
    assert case.optimum is not None
    best = {name: value for name, value in case.optimum.by_name.items() if name.startswith("admitted")}
    assert {tier.name: tier.value for tier in case.plan.tiers if tier.name in best} == best
    assert any(best.values())
    assert verify(case.spec, case.plan).ok


@pytest.mark.campaign
@pytest.mark.parametrize("made", [grouped, inside, in_part, cut_alike])
def test_no_recovery_of_many_is_wrong(made: Callable[[int], Spec]) -> None:
    """Who is who in a group that runs tells more than counts; a plan is not called optimal then, and never wrong."""
    open_ = (": feasible, and", ": unknown, and")
    told = problems(cases(CAMPAIGN_FIRST, 400, made))
    assert [each for each in told if not any(words in each for words in open_)] == []
    assert len(told) <= 30


def test_roles_beside_groups_within_islands_restart_wherever_there_is_room() -> None:
    """The front is worth more than two pairs, and no island has to hold it."""
    nodes = [node(f"n{index}", 4, islands=((0, 1), (2, 3))) for index in range(2)]
    pairs = Topology(groups=(Group("island", roles={"work": 2}),))
    roles = [role("front", 1, request(1), value=5000), asking(role("work", 4, request(1)), pairs)]
    work = [workload("model", type="service", roles=roles, topology=pairs)]
    rules = [policy("survive", Survive(of="node")), policy_of(work)]
    plan = solve(make_spec(nodes, work, [rule for rule in rules if rule is not None]))
    assert plan.outcome.status == "optimal"
    assert plan.tiers[0].value == 7000


A100 = "A100-80GB"
ASKED = {
    "whole": request(1),
    "mig": Request(cpu=1000, memory=1024, mig="3g.40gb", mig_milli=500),
    "time-slice": request(share=500),
}
"""A request that restarts in each mode in which anything does."""


def _two_nodes(asked: Sequence[Request], closed: str, nodes: NodeSelector | None) -> Spec:
    """Return a Spec of work that survives the loss of either of two nodes, a mode being closed on some of them.

    Today one GPU of each node is cut into halves, of which nobody uses any.
    """
    made = [node(name, 3, accelerator=A100, labels={"name": name}) for name in ("a", "b")]
    roles = [role(f"r{index}", 1, each, value=1000) for index, each in enumerate(asked)]
    shut = policy("shut", Modes(tuple(mode for mode in MODES if mode != closed)), nodes=nodes)
    survive = policy("survive", Survive(of="node"))
    halves = Instance("3g.40gb", 0), Instance("3g.40gb", 4)
    spec = make_spec(made, [workload("w", roles=roles)], [shut, survive])
    return replace(spec, accelerators={A100: card(A100)}, current=Current(gpus={"a/0": halves, "b/0": halves}))


@pytest.mark.parametrize("mode", ASKED)
def test_nothing_restarts_in_a_mode_that_a_hard_policy_closes(mode: str) -> None:
    """On `b` the mode is closed: what is on `a` would have to restart there."""
    spec = _two_nodes([ASKED[mode]], mode, NodeSelector(match_labels={"name": "b"}))
    found = [brute(spec), brute(replace(spec, policies=spec.policies[1:]))]
    assert [None if each is None else each.values[0] for each in found] == [0, 1000]
    plan = solve(spec)
    assert (plan.outcome.status, plan.tiers[0].value) == ("optimal", 0)
    assert verify(spec, plan).ok


def test_a_closed_mode_keeps_only_the_roles_that_would_be_in_it_from_restarting() -> None:
    """On neither node may clients take turns, which keeps no whole GPUs from restarting there."""
    spec = _two_nodes([ASKED["whole"], ASKED["time-slice"]], "time-slice", None)
    plan = solve(spec)
    assert (plan.outcome.status, plan.tiers[0].value) == ("optimal", 1000)
    (rows,) = plan.recovery["survive"].values()
    assert [replica.role for replica in rows] == ["r0"]


def test_instances_that_all_gpus_of_a_node_are_cut_into_take_what_restarts() -> None:
    """Two replicas on two nodes cut both GPUs into halves, as all of a node are cut alike; each leaves one idle."""
    product = "A100-80GB"
    nodes = [node(f"n{index}", 1, accelerator=product, mig_strategy="single") for index in range(2)]
    half = role("", 2, Request(cpu=1000, memory=1024, mig="3g.40gb"))
    rules = [policy("survive", Survive(of="node")), strategy_of(nodes)]
    work = [workload("w", type="service", roles=[half])]
    made = make_spec(nodes, work, [rule for rule in rules if rule is not None])
    spec = replace(made, accelerators={product: card(product)})
    plan = solve(spec)
    assert {place.node for place in plan.placements.values()} == {"n0", "n1"}
    assert verify(spec, plan).ok


@pytest.mark.parametrize(("share", "most"), [(False, 3000), (True, 1200)])
def test_gpus_of_a_node_that_is_cut_as_a_whole_or_not_take_what_restarts_once_one_is_not(
    share: bool, most: int
) -> None:
    """Both GPUs of a node are cut today, and neither is any more once the plan has other use of one."""
    product = "A30-24GB"
    nodes = [
        node("a", 2),
        node("b", 2, cpu=30_000, accelerator=product, mig_strategy="single"),
        node("c", 0, cpu=30_000),
    ]
    asked = role("", 2, request(share=600)) if share else role("", 1, request(2))
    lost = workload("lost", type="gang", mix="any", roles=[asked])
    going = [] if share else [workload("going", gpus=1, accelerators=(product,))]
    work = [lost, *going, workload("none", cpu=50_000, priority=100)]
    survive = Survive(of="node", may_evict=WorkloadSelector(names=("going",)))
    rules = [
        policy("survive", survive, workloads=WorkloadSelector(names=("lost", "none"))),
        policy("apart", Spread(over="node", max_per_domain=1)),
        strategy_of(nodes),
    ]
    made = make_spec(nodes, work, [rule for rule in rules if rule is not None])
    one = (Instance("1g.6gb", 0),)
    current = Current(gpus={"b/0": one, "b/1": one})
    spec = replace(made, accelerators={**made.accelerators, product: card(product)}, current=current)
    plan = solve(spec)
    values = {tier.name: tier.value for tier in plan.tiers}
    assert (plan.outcome.status, values) == ("optimal", {"admitted-cpu[100]": 0, "admitted[0]": most})
    assert verify(spec, plan).ok
