"""What nodes lose by a proof: never less than nothing, in all no more than the gap, and where sets are drawn from."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.engine.test_generate import ALL
from tests.engine.test_remixing import generation
from tests.support.specs import make_spec, node, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.generation.remixing import Remixing
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, owed, view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of

SLICE = 120


def judged(problem: Problem, state: State, *, priced: bool) -> tuple[float, Losses] | None:
    """Return the gap of a state in the least cost and what nodes lose, given what it has of earlier tiers."""
    place = next((i for i, tier in enumerate(problem.tiers) if tier.counts_nodes), None)
    bounds = FleetBounds(problem, Stop())
    if place is None or not bounds.knows(problem.tiers[place]):
        return None
    view = view_of(problem, state)
    values = {tier.name: tier.measure(view, problem.context) for tier in problem.tiers[: place + 1]}
    *earlier, tier = problem.tiers[: place + 1]
    given = {one.name: values[one.name] for one in earlier}
    bounds.prove(tier, given, priced=priced)
    best, losses = bounds.best(tier, given), bounds.losses(tier, given)
    return None if best is None or losses is None else (values[tier.name] - best[0], losses)


def test_nodes_lose_no_more_than_the_gap() -> None:
    told = 0
    for seed in range(SLICE):
        problem = compile_problem(context_of(tiny(seed)))
        state = legalise(problem, construct(problem, today_state(problem), Stop()))
        found = judged(problem, state, priced=bool(seed % 2))
        if found is None or owed(problem, state, hard_policies(problem)):
            continue
        gap, losses = found
        lost = losses.of(state)
        lots = generation(problem, state, priced=True).rows.lots
        assert {node for lot in lots for node in lot.nodes} <= lost.keys(), seed
        assert all(loss >= 0 for loss in lost.values()), seed
        assert sum(lost.values()) < gap + 1, seed  # bounds are whole numbers
        told += gap > 0
    assert told > SLICE // 20


def test_nodes_that_lose_and_those_who_wait_are_no_more_than_the_gap_of_what_is_admitted() -> None:
    told = 0
    for seed in range(SLICE):
        problem = compile_problem(context_of(tiny(seed)))
        if problem.present:
            continue
        state = legalise(problem, construct(problem, today_state(problem), Stop()))
        place = next((i for i, tier in enumerate(problem.tiers) if tier.kind == "admitted"), None)
        bounds = FleetBounds(problem, Stop())
        if place is None or not bounds.knows(problem.tiers[place]) or owed(problem, state, hard_policies(problem)):
            continue
        view = view_of(problem, state)
        values = {tier.name: tier.measure(view, problem.context) for tier in problem.tiers[: place + 1]}
        *earlier, tier = problem.tiers[: place + 1]
        given = {one.name: values[one.name] for one in earlier}
        bounds.prove(tier, given)
        best, losses = bounds.best(tier, given), bounds.losses(tier, given)
        if best is None or losses is None:
            continue
        wanted, nodes = losses.wanted(state), losses.of(state)
        assert all(gain >= 0 for gain in wanted.values()), seed
        assert sum(nodes.values()) + sum(wanted.values()) < best[0] - values[tier.name] + 1, seed
        admitted = state.admitted()
        assert all(admitted[shape] < problem.shapes[shape].demand for shape in wanted), seed
        for shape in wanted:
            hosts = [node for group in losses.hosts(shape) for node in group]
            assert len(hosts) == len(set(hosts)), seed
            assert set(hosts) >= {n for n, fill in state.fills.items() if shape in fill.counts()}, seed
        told += best[0] > values[tier.name]
    assert told > SLICE // 20


def wasteful() -> tuple[Problem, State]:
    """Return a full node, an expensive one with what a cheap one has room for, and cheap ones without anything."""
    nodes = [node("full", 2, price=2_000), node("dear", 2, price=5_000)]
    nodes += [node(f"cheap{index}", 2, price=2_000) for index in range(6)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 4, gpus=1)])))
    (shape,) = problem.shapes_of_workload["w"]
    at = {problem.nodes[index].name: index for index in range(len(problem.nodes))}
    return problem, State({at[name]: Fill(Counter({Slot(shape): 2})) for name in ("full", "dear")})


@pytest.mark.parametrize("priced", [False, True])
def test_what_a_node_costs_too_much_is_what_it_loses(priced: bool) -> None:
    problem, state = wasteful()
    found = judged(problem, state, priced=priced)
    assert found is not None
    gap, losses = found
    names = {problem.nodes[index].name: loss for index, loss in losses.of(state).items()}
    assert names.pop("dear") == pytest.approx(gap)
    assert gap == 3_000
    assert set(names.values()) == {0.0}


def test_what_nodes_lose_is_told_anew_where_they_change() -> None:
    problem, state = wasteful()
    found = judged(problem, state, priced=True)
    assert found is not None
    losses = found[1]
    at = {problem.nodes[index].name: index for index in range(len(problem.nodes))}
    before = losses.of(state)
    moved = state.with_fills({at["dear"]: Fill(), at["cheap3"]: state.fill(at["dear"])})
    assert set(losses.of(moved).values()) == {0.0}
    assert losses.of(state) == before


def test_sets_are_where_nodes_lose_and_hold_few_alike_ones_without_anything() -> None:
    problem, state = wasteful()
    found = judged(problem, state, priced=True)
    assert found is not None
    remixing = Remixing(generation(problem, state, full=True, priced=True), Budget(ALL))
    remixing.heed({}, [found[1]])
    remixing._draws._size = 4
    names = {node.name: index for index, node in enumerate(problem.nodes)}
    drawn = [remixing._draws.next(remixing._picture).nodes for _ in range(20)]
    cheap = {index for name, index in names.items() if name.startswith("cheap")}
    assert all(names["dear"] in nodes and len(nodes & cheap) <= 2 for nodes in drawn)


def test_what_nodes_lose_is_of_no_matter_while_anything_waits() -> None:
    problem, state = wasteful()
    found = judged(problem, state, priced=True)
    assert found is not None
    lacking = state.with_fills({next(iter(state.fills)): Fill()})
    drawn: list[list[frozenset[int]]] = []
    for leads in ([], [found[1]]):
        remixing = Remixing(generation(problem, lacking, priced=True), Budget(ALL))
        remixing.heed({}, leads)
        drawn.append([remixing._draws.next(remixing._picture).nodes for _ in range(20)])
    assert drawn[0] == drawn[1]
