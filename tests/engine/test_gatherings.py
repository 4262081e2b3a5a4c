"""The model over classes of domains bounds every plan, and what it finds is laid out as a plan."""

from __future__ import annotations

import pytest
from tests.support.specs import make_spec, node, workload
from tests.support.tiny_gangs import tiny_gangs

from dovetail.engine import solve
from dovetail.engine.budget import Budget
from dovetail.engine.gatherings import Gatherings, climb
from dovetail.engine.settling import settle
from dovetail.model.score import view_of
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of
from dovetail.spec import Node, Spec, Workload
from dovetail.verify import verify

LEVELS = ("block", "rack", "node")


def problem_of(spec: Spec) -> Problem:
    """Return a Spec compiled."""
    return compile_problem(context_of(spec))


def ragged(racks: list[int], blocks: int = 1) -> list[Node]:
    """Return nodes of 8 GPUs in racks of so many, dealt out to blocks."""
    return [
        node(f"n{rack:02}-{i}", 8, domains={"block": f"b{rack % blocks}", "rack": f"b{rack % blocks}/r{rack}"})
        for rack, size in enumerate(racks)
        for i in range(size)
    ]


def gangs(*hosts: int) -> list[Workload]:
    """Return gangs of so many whole nodes."""
    return [workload(f"g{i}", count, gpus=8, type="gang", communicates=True) for i, count in enumerate(hosts)]


def test_its_bounds_bind_proved_plans() -> None:
    compared = 0
    for seed in range(60):
        spec = tiny_gangs(seed)
        problem = problem_of(spec)
        if not Gatherings.suits(problem):
            continue
        plan = solve(spec)
        values = {tier.name: tier.value for tier in plan.tiers}
        for reached in climb(Gatherings(problem, apart=False), Budget(20.0), Stop()).tiers:
            sign = 1 if reached.tier.sense == "max" else -1
            assert reached.bound is not None
            assert sign * values[reached.tier.name] <= sign * reached.bound, f"seed {seed}: {reached}"
            if values[reached.tier.name] != reached.value:
                break  # later bounds are given another value here
            compared += 1
    assert compared >= 40


def test_what_it_finds_is_laid_out_with_as_many_domains() -> None:
    problem = problem_of(make_spec(ragged([8, 7, 6, 5, 3, 2, 8, 4]), gangs(12, 9, 7, 5, 2), levels=LEVELS))
    found = settle(problem, Budget(20.0), Stop())
    assert found.state is not None
    view = view_of(problem, found.state)
    for reached in found.tiers:
        assert reached.tier.measure(view, problem.context) == reached.value == reached.bound


@pytest.mark.parametrize("blocks", [1, 3])
def test_gangs_on_many_ragged_racks_are_proved(blocks: int) -> None:
    racks = [(5 * i) % 7 + 2 for i in range(90)]
    spec = make_spec(ragged(racks, blocks), gangs(50, 40, 33, 25, 17, 9, 8, 4, 2, 1), levels=LEVELS)
    plan = solve(spec, Limits(time=30))
    assert plan.outcome.status == "optimal"
    assert verify(spec, plan).ok
    assert {tier.name for tier in plan.tiers} >= {"topology[rack]"}


def test_gangs_share_racks_where_there_are_too_few() -> None:
    racks = [4, 4, 4]
    spec = make_spec(ragged(racks), gangs(3, 3, 2, 2, 1, 1), levels=LEVELS)
    found = settle(problem_of(spec), Budget(20.0), Stop())
    assert found.state is not None
    placed = view_of(problem_of(spec), found.state).places
    assert len(placed) == 12
    assert [r.value for r in found.tiers if r.tier.name == "topology[rack]"] == [0]
