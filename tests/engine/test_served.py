"""Services that ask for rates: bounds count instances, patterns and cuts are made for what is served."""

from __future__ import annotations

from itertools import product
from math import floor
from random import Random

import pytest
from tests.support.served_specs import CARD, many, served, service
from tests.support.specs import workload

from dovetail.engine import solve
from dovetail.engine.construction import cutting
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.dealing import Load, deal
from dovetail.engine.construction.field import Field
from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.width import WIDE
from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.engine.start import start
from dovetail.linear import Linear, Model
from dovetail.model.score import view_of
from dovetail.model.state import State
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.proof.fleet import FleetModel
from dovetail.rules import context_of
from dovetail.rules.rates import require_served
from dovetail.spec import Spec
from dovetail.verify import verify


def problem_of(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def bound(problem: Problem, tier: str) -> int:
    """Return what is proved of a tier by the LP over kinds of nodes, given the earlier ones."""
    fleet = FleetModel(problem, priced=True)
    lp, given = FleetLp(fleet, Stop()), dict[str, int]()
    for name in fleet.tiers:
        value = lp.optimise(name, given)
        if name == tier:
            proof = lp.proof()
            return proof.bound(proof.total(fleet), given)
        given[name] = floor(value + 1e-6)
    raise AssertionError(tier)


def admitted(problem: Problem, state: State) -> dict[str, int]:
    view = view_of(problem, state)
    return {t.name: t.measure(view, problem.context) for t in problem.tiers if t.name.startswith("admitted[")}


def test_a_bound_counts_the_instances_that_a_rate_takes() -> None:
    """Two GPUs hold instances for a part of the rate: of no mixture more than what is proved."""
    table = {"1g.10gb": 130, "2g.20gb": 280, "3g.40gb": 410}
    spec = served(1, 2, [service("s", 3000, table)])
    plan = solve(spec, Limits())
    (tier,) = (tier for tier in plan.tiers if tier.name == "admitted[500]")
    most = 2 * max(3 * 280 + 130, 410 + 280 + 2 * 130, 2 * 410 + 0 * 130)
    value = spec.workloads[0].roles[0].value * spec.workloads[0].replicas
    assert tier.value == most * value // 3000
    assert bound(problem_of(spec), "admitted[500]") == tier.value
    assert plan.outcome.status == "optimal"


@pytest.mark.parametrize("seed", range(20))
def test_rows_on_whole_replicas_leave_out_no_plan_and_some_mixtures(seed: int) -> None:
    draw = Random(f"rounded {seed}")
    rates = draw.sample(range(3, 40), draw.choice((1, 2, 3)))
    asked = draw.randint(20, 90)
    model = Model()
    counts = {rate: Linear.of(model.integer(0, 8)) for rate in rates}
    short = model.integer(0, asked)
    require_served(model, counts, Linear.of(short), 1, asked)
    for numbers in product(range(9), repeat=len(rates)):
        missing = max(0, asked - sum(n * rate for n, rate in zip(numbers, rates, strict=True)))
        values = [*numbers, missing]
        for row in model.rows:
            total = sum(c * values[v] for v, c in zip(row.variables, row.coefficients, strict=True))
            assert row.lower is not None
            assert total >= row.lower
    for position, rate in enumerate(rates):
        if asked % rate and asked / rate <= 8:  # a part of a replica that serves all is none of them
            mixture = [0.0] * (len(rates) + 1)
            mixture[position] = asked / rate
            assert any(
                sum(c * mixture[v] for v, c in zip(row.variables, row.coefficients, strict=True))
                < (row.lower or 0) - 1e-6
                for row in model.rows
            )


@pytest.mark.parametrize("seed", range(4))
def test_gpus_are_cut_for_what_is_served(seed: int) -> None:
    """Of what bounds leave to each band, counts in whole numbers reach nearly all, more than a greedy start does."""
    problem = problem_of(many(seed, 12, 1.15))
    state = construct(problem, cutting.Cutting(problem, Stop()).exactly(), Stop())
    found, greedy = admitted(problem, state), admitted(problem, start(problem, None, Stop())[0])
    assert found["admitted[900]"] >= greedy["admitted[900]"]
    assert found["admitted[900]"] >= 0.999 * bound(problem, "admitted[900]")
    assert found["admitted[500]"] >= 0.985 * bound(problem, "admitted[500]")
    assert found["admitted[500]"] > greedy["admitted[500]"]


@pytest.mark.parametrize("seed", range(4))
def test_a_search_begins_with_gpus_cut_as_the_relaxation_says(seed: int) -> None:
    """Without any search that is near the bounds, and others have the room that rounding leaves."""
    problem = problem_of(many(seed, 24, 1.15))
    rough = cutting.Cutting(problem, Stop()).roughly()
    state, unpaid = start(problem, None, Stop(), rough)
    found = admitted(problem, state)
    assert not unpaid
    assert found["admitted[900]"] >= 0.99 * bound(problem, "admitted[900]")
    assert found["admitted[500]"] >= 0.9 * bound(problem, "admitted[500]")
    assert sum(state.admitted().values()) > sum(rough.admitted().values())


def test_a_fleet_of_services_is_planned_close_to_its_bound() -> None:
    spec = many(7, 8, 1.15)
    plan = solve(spec, Limits(work=5.0))
    assert verify(spec, plan).ok
    assert all(tier.gap is not None and tier.gap <= 0.015 for tier in plan.tiers if tier.name.startswith("admitted["))


def test_replicas_are_priced_by_the_instance_that_they_are_on() -> None:
    """Where three slices are worth more than three times one, they are what a node is filled with."""
    spec = served(1, 1, [service("s", 3000, {"1g.10gb": 100, "3g.40gb": 500})])
    problem = problem_of(spec)
    fleet = FleetModel(problem, priced=True)
    (kind,) = fleet.kinds
    keys = {(0, "1g.10gb"): 1, (0, "3g.40gb"): 2}
    node = Knapsack(problem, kind, kind.sides[0], keys, {2: 5})
    for worth, expected in (({1: 1.0, 2: 5.0}, {"3g.40gb": 2}), ({1: 1.0, 2: 1.5}, {"1g.10gb": 7})):
        _, pattern = node.price(worth, width=WIDE)[0]
        assert {slot.profile: count for slot, count in pattern} == expected
    _, pattern = node.price({1: 1.0, 2: 5.0}, {0: 7}, WIDE)[0]  # seven are left to serve, as which one counts five
    assert sum(count * (5 if slot.profile == "3g.40gb" else 1) for slot, count in pattern) <= 7


def test_loads_that_take_much_cpu_are_dealt_to_different_nodes() -> None:
    """Half of the loads take 20 cores of nodes of 64 cores: no node can hold all of its GPUs' worth of them."""
    spec = served(
        4,
        4,
        [
            service("heavy", 56 * 100, {"1g.10gb": 100}, cpu=4),
            workload("whole", 8, gpus=1, cpu=4000, accelerators=(CARD,)),
        ],
        cpu=70,
    )
    problem = problem_of(spec)
    names = {shape.workload.id: shape.index for shape in problem.shapes}
    loads = [Load(1, ((names["heavy"], "1g.10gb"),) * 7)] * 8 + [Load(1, ((names["whole"], ""),))] * 8
    field = Field(problem, State())
    deal(field, range(4), loads)
    assert field.admitted[names["heavy"]] == 56
    assert field.admitted[names["whole"]] == 8


def test_a_replica_is_put_on_the_instance_that_it_is_wished_on() -> None:
    spec = served(1, 1, [service("s", 3000, {"1g.10gb": 100, "2g.20gb": 220, "3g.40gb": 500})])
    field = Field(problem_of(spec), State())
    for profile in ("3g.40gb", "2g.20gb", "7g.80gb", "3g.40gb"):  # there is none of the third, nor room for the last
        field.put(0, 0, (0,), like=profile)
    slots = field.state().fills[0].slots
    assert {slot.profile: count for slot, count in slots.items()} == {"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2}
