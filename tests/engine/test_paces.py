"""Shares that take more of slower GPUs, on fleets that are too large to be solved as one (S2.2)."""

from __future__ import annotations

from tests.support.specs import CARD, make_spec, node, request, role, workload

from dovetail.engine import solve
from dovetail.progress import Limits
from dovetail.spec import Node, Request, Share, Spec
from dovetail.spec.workload import Pace
from dovetail.verify import verify

SLOW = "L4"


def _nodes(quick: int, slow: int) -> list[Node]:
    found = [node(f"quick-{index:02}", 4) for index in range(quick)]
    return [*found, *(node(f"slow-{index:02}", 4, accelerator=SLOW) for index in range(slow))]


def _share(compute: int, elsewhere: int) -> Request:
    return Request(cpu=100, memory=100, share=Share(compute, 500, elsewhere=(Pace(SLOW, elsewhere),)))


def _spec(*asked: tuple[int, Request]) -> Spec:
    work = [workload(f"w{index}", roles=[role("", count, each)]) for index, (count, each) in enumerate(asked)]
    return make_spec(_nodes(10, 30), work)


def test_a_fleet_holds_as_many_as_its_gpus_are_worth() -> None:
    spec = _spec((2000, _share(100, 400)))
    plan = solve(spec, Limits(work=10))
    assert verify(spec, plan).ok
    assert plan.outcome.status == "optimal"
    assert len(plan.placements) == 40 * 10 + 120 * 2
    assert plan.summary["gpusAllocated"] == 40 + 120 * 2 * 4 / 10


def test_whole_gpus_are_taken_where_shares_would_take_most() -> None:
    """Sixty replicas of two GPUs fit the slow nodes, and leave the quick ones to shares that hardly fit elsewhere."""
    spec = _spec((400, _share(100, 900)), (60, request(2)))
    plan = solve(spec, Limits(work=10))
    assert plan.outcome.status == "optimal"
    assert len(plan.placements) == 460
    by_name = spec.cluster.by_name
    quick = [r for r, place in plan.placements.items() if by_name[place.node].accelerator == CARD]
    assert {replica.workload for replica in quick} == {"w0"}
