"""Obstacles: which nodes can never host a role, node by node and make by make."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.support.random_specs import specs
from tests.support.specs import CARDS, make_spec, node, place, policy, replica, workload

from dovetail.engine import solve
from dovetail.placement import Makes, Obstacle, obstacle
from dovetail.rules.spread import Spread
from dovetail.spec import Node, Spec, Workload
from dovetail.verify import verify


def _obstacle(work: Workload, there: Node) -> Obstacle | None:
    return obstacle(work, work.roles[0], there, CARDS)


def test_a_share_that_names_more_memory_than_the_card_has_never_fits() -> None:
    small = node("n", 4, accelerator="L4")
    assert _obstacle(workload("w", share=(100, 23_040)), small) is None
    assert _obstacle(workload("w", share=(100, 23_041)), small) is Obstacle.GPU_MEMORY
    assert _obstacle(workload("w", share=(100, 23_041)), node("n", 4)) is None
    assert _obstacle(workload("w", share=1000), small) is None


def test_replicas_are_spread_over_the_domains_whose_cards_are_large_enough() -> None:
    spec = make_spec(
        [node("a", 4, domains={"rack": "r0"}), node("b", 4, domains={"rack": "r1"}, accelerator="L4")],
        [workload("w", 4, share=(500, 30_000))],
        [policy("even", Spread(over="rack", max_skew=1))],
    )
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert {place.node for place in plan.placements.values()} == {"a"}
    assert len(plan.placements) == 4
    assert verify(spec, plan).ok


@pytest.mark.parametrize(
    ("islands", "failed", "on"),
    [(((0, 1), (2, 3), (4, 5), (6, 7)), (), range(8)), (((0, 1, 2, 3), (4, 5, 6, 7)), (0, 7), range(2, 6))],
)
def test_what_runs_across_islands_stays_though_none_could_hold_it(
    islands: tuple[tuple[int, ...], ...], failed: tuple[int, ...], on: range
) -> None:
    """As where islands were declared, or GPUs beside it failed, since it came there (S2.5)."""
    nodes = [node(name, 8, islands=islands, failed_gpus=frozenset(failed)) for name in "nm"]
    asked = [workload("run", 1, gpus=len(on)), workload("new", 16, gpus=1, priority=900)]
    spec = make_spec(nodes, asked, running={"run#0": place("n", *on)})
    assert _obstacle(asked[0], nodes[1]) is Obstacle.INSIDE
    plan = solve(spec)
    assert plan.placements[replica("run#0")] == place("n", *on)
    assert verify(spec, plan).ok


@settings(max_examples=60, deadline=None)
@given(spec=specs())
def test_makes_agree_with_every_single_node(spec: Spec) -> None:
    makes = Makes(spec.cluster.nodes, spec.accelerators)
    for work in spec.workloads:
        for one in work.roles:
            open_makes = makes.hosting(work, one)
            for there, make in zip(spec.cluster.nodes, makes.of, strict=True):
                assert (make in open_makes) == (obstacle(work, one, there, spec.accelerators) is None)
        hosts = {
            there.name
            for there in spec.cluster.nodes
            if any(obstacle(work, one, there, spec.accelerators) is None for one in work.roles)
        }
        assert makes.nodes_for(work) == hosts
