"""Nodes filled anew after the LP of least cost: rules hold, and what is scarce stays where it was found a place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.mixed_specs import mixed
from tests.support.specs import make_spec, node, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.bounds import Bounds
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.generation.thrift import cheaper, roomy
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Node


def values(problem: Problem, state: State) -> list[int]:
    view = view_of(problem, state)
    return [tier.measure(view, problem.context) for tier in problem.tiers]


def found(problem: Problem, state: State) -> list[State]:
    """Return what following the LP of least cost leads to, given what a state has."""
    bounds = FleetBounds(problem, Stop())
    given = {tier.name: value for tier, value in zip(problem.tiers, values(problem, state), strict=True)}
    place = next(i for i, tier in enumerate(problem.tiers) if tier.counts_nodes)
    bounds.prove(problem.tiers[place], dict(list(given.items())[:place]), priced=True)
    return [legalise(problem, each) for each in cheaper(bounds.priced, state, Stop(), lambda: False)]


@pytest.mark.parametrize("draw", [tiny, mixed])
def test_whatever_is_filled_anew_breaks_no_rule(draw: object) -> None:
    tried = 0
    for seed in range(24):
        problem = compile_problem(context_of(draw(seed)))  # type: ignore[operator]
        if problem.present or problem.spec.placeholders or not any(tier.counts_nodes for tier in problem.tiers):
            continue
        start = legalise(problem, construct(problem, today_state(problem), Stop()))
        kept = hard_policies(problem)
        for state in found(problem, start):
            tried += 1
            assert sound(problem, view_of(problem, state))
            assert debt(problem, view_of(problem, state), kept) <= debt(problem, view_of(problem, start), kept)
    assert tried >= 3


def priced(name: str, gpus: int, price: int) -> Node:
    return replace(node(name, gpus), price=price)


def test_a_dear_node_is_left_for_cheaper_ones_and_nothing_is_lost() -> None:
    nodes = [priced("dear", 4, 90), priced("one", 2, 10), priced("two", 2, 10)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 2, gpus=2)])))
    start = State({problem.node_index["dear"]: Fill()})
    start.fills[problem.node_index["dear"]].slots[Slot(0)] = 2
    before = values(problem, start)
    best = found(problem, start)[0]
    assert values(problem, best)[:-1] == before[:-1]
    assert (before[-1], values(problem, best)[-1]) == (90, 20)


@pytest.mark.parametrize(("replicas", "proved", "is_roomy"), [(4, False, True), (9, True, True), (9, False, False)])
def test_cost_is_worth_a_search_where_nothing_else_finds_room(replicas: int, proved: bool, is_roomy: bool) -> None:
    problem = compile_problem(context_of(make_spec([priced("n", 4, 9)], [workload("w", replicas, gpus=1)])))
    state = construct(problem, today_state(problem), Stop())
    told = Bounds(problem, Stop()).results(values(problem, state), ()).tiers
    assert roomy(problem, told if proved else [replace(tier, bound=None) for tier in told], 0.95) == is_roomy
