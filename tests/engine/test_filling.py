"""Filling nodes as they are wished to be: what a rule keeps off for now is granted once others are placed."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine.generation import filling
from dovetail.model.state import NO_GPU, Slot, State
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.rules.spread import Spread


@pytest.mark.parametrize("share", [None, 250])
def test_what_a_spread_allows_in_the_end_is_granted_whichever_rack_comes_first(
    monkeypatch: pytest.MonkeyPatch, share: int | None
) -> None:
    monkeypatch.setattr(filling, "fill_band", lambda *_: None)  # what is not granted is not put elsewhere either
    racks = [node(f"{rack}{i}", 2, domains={"rack": rack}) for rack in "abc" for i in range(2)]
    asked = workload("even", 12, share=share) if share else workload("even", 12, gpus=1)
    spec = make_spec(racks, [asked, workload("other", 6)], [policy("even", Spread(over="rack", max_skew=1))])
    problem = compile_problem(context_of(spec))
    even, other = (problem.shapes_of_role[name, ""] for name in ("even", "other"))
    wished = ((Slot(even, 0 if share else NO_GPU), 2), (Slot(other), 1))
    nodes = [(index, wished) for index in range(len(problem.nodes))]  # all of rack a, then b, then c
    state = filling.filled(problem, State(), nodes, Counter({even: 12, other: 6}), Stop())
    assert [dict(state.fill(index).counts()) for index in range(6)] == [{even: 2, other: 1}] * 6


def test_what_is_planned_is_placed_before_what_else_has_room() -> None:
    """One node for either of two; the cheaper one is planned, and nothing is wished for on it."""
    spec = make_spec([node("a", 4)], [workload("dear", 1, gpus=4, value=9), workload("planned", 1, gpus=4, value=1)])
    problem = compile_problem(context_of(spec))
    dear, planned = (problem.shapes_of_role[name, ""] for name in ("dear", "planned"))
    state = filling.filled(problem, State(), [], Counter({planned: 1}), Stop())
    assert state.admitted() == {planned: 1}
    assert filling.filled(problem, State(), [], Counter(), Stop()).admitted() == {dear: 1}


def test_others_that_came_anew_make_way_for_what_is_planned_without_a_loss() -> None:
    """Each of two nodes is half full of what may be on either; the planned one needs a whole node."""
    spec = make_spec([node(name, 4) for name in "ab"], [workload("half", 2, gpus=2), workload("whole", 1, gpus=4)])
    problem = compile_problem(context_of(spec))
    half, whole = (problem.shapes_of_role[name, ""] for name in ("half", "whole"))
    wished = [(index, ((Slot(half), 1),)) for index in range(2)]
    state = filling.filled(problem, State(), wished, Counter({half: 2, whole: 1}), Stop())
    assert state.admitted() == {half: 2, whole: 1}
