"""Which shapes the nodes of a class may take."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.support.random_specs import specs
from tests.support.specs import make_spec, node, place, workload

from dovetail.placement import makes, obstacle
from dovetail.problem import compile_problem
from dovetail.rules import context_of
from dovetail.spec import Spec


@settings(max_examples=60, deadline=None)
@given(spec=specs())
def test_hosted_shapes_are_those_without_an_obstacle(spec: Spec) -> None:
    problem = compile_problem(context_of(spec))
    for node_class in problem.classes:
        there = problem.nodes[node_class.nodes[0]]
        assert problem.hosted[node_class.index] == tuple(
            s.index for s in problem.shapes if obstacle(s.workload, s.role, there, spec.accelerators) is None
        )


def test_busy_nodes_of_one_make_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(makes, "obstacle", lambda workload, role, node, cards: calls.append(node.name))
    spec = make_spec(
        [*(node(f"n{i}", 2) for i in range(8)), node("z", 4)],
        [workload(f"w{i}", gpus=1) for i in range(8)],
        running={f"w{i}#0": place(f"n{i}", 0) for i in range(8)},
    )
    problem = compile_problem(context_of(spec))
    assert len(problem.classes) == 9
    assert {id(shapes) for shapes in problem.hosted[:8]} == {id(problem.hosted[0])}
    assert calls == ["n0", "z"]
