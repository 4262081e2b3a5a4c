"""Replicas make way for what has less choice, and for nodes to be switched off; rules hold and no band loses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from tests.support.mixed_specs import mixed
from tests.support.plans import plan_for
from tests.support.specs import CARD, make_spec, node, place, places, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.moving import tidied
from dovetail.engine.fleet.cuts import dearest
from dovetail.model.expand import expand
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import Fill, Slot, State, today_state
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Spec
from dovetail.verify import verify


def admitted(problem: Problem, state: State) -> list[int]:
    view = view_of(problem, state)
    return [tier.measure(view, problem.context) for tier in problem.tiers if tier.name.startswith("admitted")]


def tidy(problem: Problem, state: State) -> State:
    return tidied(problem, state, Stop(), lambda: False)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("draw", [tiny, mixed])
def test_whatever_moves_breaks_no_rule_and_costs_no_band(draw: object, seed: int) -> None:
    spec: Spec = draw(seed)  # type: ignore[operator]
    problem = compile_problem(context_of(spec))
    before = legalise(problem, construct(problem, today_state(problem), Stop()))
    after = legalise(problem, tidy(problem, before))
    kept = hard_policies(problem)
    assert sound(problem, view_of(problem, after)) == sound(problem, view_of(problem, before))
    assert debt(problem, view_of(problem, after), kept) <= debt(problem, view_of(problem, before), kept)
    assert admitted(problem, after) >= admitted(problem, before)


def put(problem: Problem, rows: dict[str, tuple[str, ...]]) -> State:
    """Return a state with one replica per named workload on each named node."""
    shape_of = {shape.workload.id: shape.index for shape in problem.shapes}
    fills: dict[int, Fill] = {}
    for name, nodes in rows.items():
        for where in nodes:
            fills.setdefault(problem.node_index[where], Fill()).slots[Slot(shape_of[name])] += 1
    return State(fills)


def test_what_could_be_anywhere_makes_way_for_what_could_not() -> None:
    spec = make_spec(
        [node("old", 2), node("new", 2, accelerator="L4")],
        [workload("loose", 1, gpus=2), workload("bound", 1, gpus=2, accelerators=(CARD,))],
    )
    problem = compile_problem(context_of(spec))
    found = expand(problem, tidy(problem, put(problem, {"loose": ("old",)})))
    assert found == places({"loose#0": place("new", 0, 1), "bound#0": place("old", 0, 1)})
    assert verify(spec, plan_for(spec, found)).ok


@pytest.mark.parametrize(
    ("prices", "start", "used"),
    [
        ((5, 5, 5), ("a", "b"), ["a"]),
        ((5, 9, 5), ("a", "b"), ["a"]),
        ((9, 5, 9), ("a", "b"), ["b"]),
        ((9, 9, 1), ("a", "b"), ["c"]),
    ],
)
def test_nodes_are_emptied_onto_others_and_cheaper_ones(
    prices: Sequence[int], start: tuple[str, ...], used: list[str]
) -> None:
    nodes = [node(name, 4, price=price) for name, price in zip("abc", prices, strict=True)]
    problem = compile_problem(context_of(make_spec(nodes, [workload("w", len(start), gpus=2)])))
    after = tidy(problem, put(problem, {"w": start}))
    assert [problem.nodes[index].name for index, fill in after.fills.items() if fill.slots] == used


def test_what_runs_today_stays_where_it_is() -> None:
    spec = make_spec(
        [node("a", 4, price=9), node("b", 4, price=1)],
        [workload("w", 1, gpus=2)],
        running={"w#0": place("a", 0, 1)},
    )
    problem = compile_problem(context_of(spec))
    assert tidy(problem, today_state(problem)) == today_state(problem)


def test_cuts_of_a_gpu_are_the_dearest_that_there_are() -> None:
    millis, prices = (150, 200, 330, 600), (140, 230, 340, 590)
    found = {pattern: total for total, pattern in dearest(1000, millis, prices)}
    fitting: list[tuple[int, ...]] = [
        counts
        for counts in product(range(7), range(6), range(4), range(2))
        if sum(n * m for n, m in zip(counts, millis, strict=True)) <= 1000
    ]
    worth: dict[tuple[int, ...], int] = {
        counts: sum(n * price for n, price in zip(counts, prices, strict=True)) for counts in fitting
    }
    assert all(worth[pattern] == total for pattern, total in found.items())
    assert next(iter(found.values())) == max(worth.values())
    for size in range(len(millis)):
        assert max(w for counts, w in worth.items() if counts[size]) in [w for p, w in found.items() if p[size]]
