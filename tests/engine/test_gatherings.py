"""The model over classes of domains bounds every plan, and what it finds is laid out as a plan."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from tests.support.specs import make_spec, node, policy, workload
from tests.support.tiny_gangs import tiny_gangs

from dovetail.engine import solve
from dovetail.engine.budget import Budget
from dovetail.engine.gathering.gatherings import Gatherings, climb
from dovetail.engine.gathering.sets import gathering_part
from dovetail.engine.gathering.settling import settle
from dovetail.model.score import view_of
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of, policy_of
from dovetail.rules.colocate import Colocate
from dovetail.spec import Node, Spec, Topology, Workload, WorkloadSelector
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
    view = view_of(problem, found.states[-1])
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
    placed = view_of(problem_of(spec), found.states[-1]).places
    assert len(placed) == 12
    assert [r.value for r in found.tiers if r.tier.name == "topology[rack]"] == [0]


def full(seed: int, sets: int = 0) -> Spec:
    """Return 36 nodes on ragged racks, full with eight gangs that say where they want to be; the first are a set."""
    rng = Random(f"full {seed}")
    nodes = ragged([rng.randint(2, 8) for _ in range(8)], blocks=3)[:36]
    cuts = sorted(rng.sample(range(1, 2 * len(nodes)), 7))
    work = []
    for index, (start, end) in enumerate(itertools.pairwise([0, *cuts, 2 * len(nodes)])):
        within = rng.choice((None, "block")) if end - start <= 20 else None
        topology = Topology(within="rack" if end - start <= 6 else within, prefer=rng.choice((None, "block")))
        asked = topology if topology.within or topology.prefer else None
        size = end - start
        work.append(workload(f"g{index}", size, gpus=4, type="gang", communicates=True, topology=asked))
    policies = [held] if (held := policy_of(work)) else []
    if sets:
        first = WorkloadSelector(names=tuple(f"g{index}" for index in range(sets)))
        policies.append(policy("set", Colocate(by="tenant", at="block"), workloads=first, enforcement=2))
    return make_spec(nodes, work, policies, levels=LEVELS)


@pytest.mark.parametrize(("seed", "sets"), [pytest.param(0, 0, marks=pytest.mark.campaign), (2, 2)])
def test_nodes_full_of_gangs_are_proved(seed: int, sets: int) -> None:
    spec = full(seed, sets)
    plan = solve(spec, Limits(time=60))
    assert plan.outcome.status == "optimal", [(t.name, t.value, t.bound) for t in plan.tiers]
    assert verify(spec, plan).ok


def test_its_part_of_a_search_is_that_of_what_gathers() -> None:
    alone = workload("alone", 3, gpus=8)
    nodes = ragged([2, 2])
    assert gathering_part(problem_of(make_spec(nodes, gangs(2, 2), levels=LEVELS))) == 1.0
    assert gathering_part(problem_of(make_spec(nodes, [*gangs(2), alone], levels=LEVELS))) == 0.4
    assert gathering_part(problem_of(make_spec(nodes, [alone], levels=LEVELS))) == 0.0
