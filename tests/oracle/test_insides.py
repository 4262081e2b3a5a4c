"""Islands and sockets: the engine's optimum is brute force's, tier by tier, and its plans verify."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.oracle.sample import cases, problems
from tests.support.specs import make_spec, node, policy, request, workload
from tests.support.tiny_insides import tiny_inside_rules, tiny_insides

from dovetail.conflicts.find import conflicts_of
from dovetail.engine import solve
from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.gathering.gatherings import Gatherings, climb
from dovetail.model.state import State
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.rules.colocate import Colocate
from dovetail.rules.guards import CrowdGuard
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import NodeSelector, Policy, Spec, Topology, Workload
from dovetail.spec.inside import INNER_LEVELS
from dovetail.verify import verify

SLICE = 40
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


def test_engine_and_brute_force_agree_on_islands_and_sockets() -> None:
    found = list(cases(0, SLICE, tiny_insides))
    assert len(found) > SLICE // 2
    assert problems(found) == []


def test_rules_inside_nodes_are_kept_as_brute_force_keeps_them() -> None:
    assert problems(cases(0, 40, tiny_inside_rules)) == []


def holding(seed: int) -> Spec:
    """Return the Spec of a seed with places held free, which keep within islands like any replica."""
    rng, spec = Random(f"holding {seed}"), tiny_insides(seed)
    rule = Reserve(replicas=rng.choice((1, 1, 2)), request=request(rng.choice((1, 2, 2))))
    held = policy("hold", rule, enforcement=rng.choice(("hard", 1, 3000)))
    return replace(spec, policies=tuple(sorted((*spec.policies, held), key=lambda each: each.name)))


def test_held_places_keep_within_islands() -> None:
    assert problems(cases(200, 15, holding)) == []


def holding_together(seed: int) -> Spec:
    """Return the Spec of a seed with places held free within one island or socket."""
    rng, spec = Random(f"holding together {seed}"), tiny_insides(seed)
    asked = request(rng.choice((1, 1, 2))) if rng.random() < 0.8 else request(share=rng.choice((400, 500)))
    rule = Reserve(replicas=rng.choice((1, 2, 2, 3)), request=asked, within=rng.choice(INNER_LEVELS))
    nodes = NodeSelector(names=(rng.choice(spec.cluster.nodes).name,)) if rng.random() < 0.2 else None
    held = policy("hold", rule, enforcement=rng.choice(("hard", 1, 3000)), nodes=nodes)
    return replace(spec, policies=tuple(sorted((*spec.policies, held), key=lambda each: each.name)))


def test_places_are_held_within_one_island_or_socket() -> None:
    found = list(cases(0, 40, holding_together))
    assert len(found) > 20
    assert problems(found) == []


def keeping_free(seed: int) -> Spec:
    """Return the Spec of a seed with whole islands or sockets held free, now and then beside places."""
    rng = Random(f"keeping free {seed}")
    spec = (holding if rng.random() < 0.3 else tiny_insides)(seed)
    rule = Reserve(domains=rng.choice((1, 1, 2)), of=rng.choice(INNER_LEVELS))
    held = policy("free", rule, enforcement=rng.choice(("hard", 1, 3000)))
    return replace(spec, policies=tuple(sorted((*spec.policies, held), key=lambda each: each.name)))


def test_whole_islands_and_sockets_are_held_free() -> None:
    found = list(cases(0, 40, keeping_free))
    assert len(found) > 20
    assert problems(found) == []


HALVES = ((0, 1), (2, 3))


def labelled(*workloads: Workload) -> list[Workload]:
    """Return workloads of one set."""
    return [replace(each, labels={"set": "x"}) for each in workloads]


def apart_and_together(*policies: Policy, work: Sequence[Workload]) -> Spec:
    """Return two nodes of two islands each with some work."""
    nodes = [node(f"n{i}", 4, islands=HALVES, domains={"rack": f"r{i}"}) for i in range(2)]
    return make_spec(nodes, work, policies, levels=("rack", "node"))


@pytest.mark.parametrize("enforcement", ["hard", 1])
def test_work_without_gpus_is_in_no_island_and_need_not_join_those_who_are(enforcement: str | int) -> None:
    """The loader's replicas fill both nodes' CPUs: with those of one node alone half of it would wait."""
    gang = workload("g", 2, gpus=1, type="gang", topology=Topology("rack"))
    work = labelled(gang, workload("loader", 2, cpu=90_000))
    together = policy("together", Colocate("label", "island", label="set"), enforcement=enforcement)
    spec = apart_and_together(together, work=work)
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert {tier.name: tier.value for tier in plan.tiers if tier.unit != "domains"} == {
        "admitted[0]": 2000,
        "admitted-cpu[0]": 180_000,
        **({} if enforcement == "hard" else {"policies": 0}),
    }
    assert verify(spec, plan).ok
    assert climb(Gatherings(compile_problem(context_of(spec)), apart=False), Budget(1.0), Stop()).tiers[1].value > 0


def test_a_set_with_work_without_gpus_may_be_kept_apart_by_nodes() -> None:
    work = labelled(workload("trainer", gpus=1), workload("loader", cpu=90_000))
    together = policy("together", Colocate("label", "island", label="set"))
    spec = apart_and_together(together, policy("apart", Separate("workload", "node")), work=work)
    assert conflicts_of(spec) == ()
    assert len(solve(spec).placements) == 2


def test_a_limit_per_island_does_not_forbid_a_node_whose_other_island_is_free() -> None:
    spread = policy("few", Spread("island", max_per_domain=1))
    spec = make_spec([node("n", 2, islands=((0,), (1,)))], [workload("w", 2, gpus=1)], [spread])
    problem = compile_problem(context_of(spec))
    state = construct(problem, State(), Stop())
    guard = spread.rule.guard(context_of(spec).scopes["few"])
    assert isinstance(guard, CrowdGuard)
    assert guard.gpus_alone
    assert state.admitted().total() >= 1
    assert len(solve(spec).placements) == 2


def test_inside_nodes_neither_evenness_nor_a_choice_of_nodes_makes_sense() -> None:
    spec = tiny_insides(0)
    assert "maxPerDomain" in (Spread("island", max_skew=1).unsound(spec) or "")
    own = policy("p", Colocate("tenant", "socket"), nodes=NodeSelector(names=(spec.cluster.nodes[0].name,)))
    assert "match.nodes" in (own.rule.unsound_beside(own, spec) or "")


def test_what_today_is_across_islands_and_may_not_counts_in_the_socket_around_it() -> None:
    assert [text for seed in (10240, 10101, 10426, 10937) for text in problems(cases(seed, 1, tiny_insides))] == []


@pytest.mark.campaign
def test_engine_and_brute_force_agree_on_many_more() -> None:
    assert problems(cases(CAMPAIGN_FIRST, 3000, tiny_insides)) == []
    assert problems(cases(CAMPAIGN_FIRST, 500, holding)) == []
    assert problems(cases(CAMPAIGN_FIRST, 500, keeping_free)) == []
