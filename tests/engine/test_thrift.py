"""Nodes filled anew after the LP of least cost: rules hold, and what is scarce stays where it was found a place."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from tests.engine.test_generate import ALL
from tests.support.mixed_specs import mixed
from tests.support.specs import make_spec, node, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import sparing
from dovetail.engine.bounds import Bounds
from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.generation.thrift import cheaper, roomy
from dovetail.engine.incumbent import forget
from dovetail.engine.record import Record
from dovetail.engine.sparing import Sparing
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Reporter, Stop
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


def test_the_least_cost_is_looked_for_again_once_more_is_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [priced(f"a-dear{i}", 2, 90) for i in range(3)] + [priced(f"b-cheap{i}", 2, 10) for i in range(3)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", 3, gpus=2)])))
    two, cheaper_two, three, cheaper_three = (
        State({node: Fill(Counter({Slot(0): 1})) for node in nodes})
        for nodes in ((0, 1), (3, 4), (0, 1, 2), (3, 4, 5))
    )
    best = Record(problem, Bounds(problem, Stop()), Reporter(), forget, 0.0)
    looking, found = Sparing(best, Stop()), [cheaper_two]
    monkeypatch.setattr(sparing, "cheaper", lambda *_: iter(found))
    best.offer(two)
    assert looking.run(Budget(ALL), 0.5) == [cheaper_two]
    assert best.now[-1].value == 20
    assert looking.run(Budget(ALL), 0.5) == []
    best.offer(three)
    found = [cheaper_two, cheaper_three]
    assert looking.run(Budget(ALL), 0.5) == [cheaper_two, cheaper_three]
    assert best.now[-1].value == 30
