"""What splits classes and shapes is told from their own keys, whatever rule it is due to."""

from __future__ import annotations

import random
from collections.abc import Hashable, Mapping, Sequence

import pytest
from tests.support.specs import make_spec, node, place, policy, request, workload
from tests.test_new_rule import Few

from dovetail.model.report import ModelReport, report_on
from dovetail.problem import compile_problem
from dovetail.problem.splits import splits_of
from dovetail.problem.steps import EXACT_FIRST, EXACT_VARIABLES, steps_of
from dovetail.rules import Rule, context_of
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.move import Move
from dovetail.rules.reserve import Reserve
from dovetail.rules.spread import Spread
from dovetail.rules.survive import Survive
from dovetail.spec import NodeSelector, Spec


def told(spec: Spec) -> ModelReport:
    return report_on(compile_problem(context_of(spec)))


def groups(keys: Sequence[Mapping[str, Hashable]], without: str = "") -> int:
    return len({tuple(value for name, value in key.items() if name != without) for key in keys})


def test_splits_are_what_merging_and_telling_apart_give() -> None:
    rng = random.Random(7)
    for _ in range(50):
        names = [f"a{i}" for i in range(rng.randint(1, 5))]
        keys = [{name: rng.randint(0, 2) for name in names} for _ in range(rng.randint(1, 12))]
        found = {split.attribute: split for split in splits_of(keys)}
        assert list(found) == [name for name in names if len({key[name] for key in keys}) > 1]
        assert 1 + sum(split.adds for split in found.values()) == groups(keys)
        for name, split in found.items():
            assert split.values == len({key[name] for key in keys})
            assert split.alone == groups(keys) - groups(keys, without=name)


def test_nothing_is_split_by_nothing() -> None:
    assert splits_of([]) == ()
    assert splits_of([{"a": 1}, {"a": 1}]) == ()


def test_each_attribute_is_told_with_what_it_splits() -> None:
    racks = [node(f"n{i}", 4, domains={"rack": f"r{i // 2}"}) for i in range(6)]
    nodes = [*racks, node("big", 8), node("sick", 8, failed_gpus=frozenset({0})), node("shut", 8, cordoned=True)]
    spec = make_spec(nodes, [workload("w", 2, gpus=1)], [policy("racks", Spread("rack", 1))])
    splits = {split.attribute: (split.adds, split.alone) for split in told(spec).node_splits}
    assert splits == {
        "gpus": (1, 0),  # the policy alone tells the nodes without a rack apart
        "health: cordoned": (1, 1),
        "health: failed GPUs": (1, 1),
        "policy racks": (2, 2),
    }


@pytest.mark.parametrize(
    "rule",
    [
        Spread("node", 1),
        Reserve(domains=1, of="node"),
        Reserve(2, request(1), within="node"),
        Survive(of="node"),
        Exclusive("node"),
    ],
)
def test_no_rule_at_single_nodes_tells_alike_nodes_apart(rule: Rule) -> None:
    spec = make_spec([node(f"n{i}", 4) for i in range(6)], [workload("w", 2, gpus=1)], [policy("each", rule)])
    assert len(compile_problem(context_of(spec)).classes) == 1


def test_a_rule_that_nobody_knows_is_told_by_name() -> None:
    spec = make_spec(
        [node("a", 4), node("b", 4), node("c", 4)],
        [workload("w", 6, gpus=1)],
        [policy("few-here", Few(2), nodes=NodeSelector(names=("a",)))],
    )
    report = told(spec)
    (split,) = report.node_splits
    found = report.policy(split)
    assert found is not None
    assert (split.attribute, split.adds, found.rule.kind) == ("policy few-here", 1, "few")
    assert [(kind.nodes, kind.classes) for kind in report.kinds] == [(1, 1), (2, 1)]


def test_what_runs_today_is_told_apart_from_what_nodes_are() -> None:
    nodes = [node(name, 4) for name in "abc"]
    running = {"w#0": place("a", 0), "w#1": place("b", 0)}
    report = told(make_spec(nodes, [workload("w", 3, gpus=1)], running=running))
    assert len(report.problem.classes) == 3
    assert [(kind.nodes, kind.busy, kind.classes) for kind in report.kinds] == [(3, 2, 3)]
    assert [(split.attribute, split.adds) for split in report.node_splits] == [("running today", 2)]


def test_shapes_tell_why_alike_work_is_not_counted_together() -> None:
    work = [
        *(workload(f"job{i}", 2, gpus=1) for i in range(3)),
        *(workload(f"gang{i}", 2, gpus=1, type="gang", movable=True) for i in range(2)),
        workload("on", 2, gpus=1),
    ]
    spec = make_spec([node("a", 8)], work, [policy("still", Move(max_moves=0))], running={"on#0": place("a", 0)})
    report = told(spec)
    assert [(row.first, row.shape.demand, row.nodes) for row in report.shapes] == [
        ("gang0", 2, 1), ("gang1", 2, 1), ("job0", 6, 1), ("on", 2, 1),
    ]  # fmt: skip
    splits = {split.attribute: (split.adds, split.alone) for split in report.shape_splits}
    assert splits == {
        "policy still": (1, 0),
        "all or nothing": (2, 0),
        "least replicas": (0, 0),
        "running today": (0, 0),
    }


def test_what_is_only_reported_splits_nothing() -> None:
    racks = [node(f"n{i}", 4, domains={"rack": f"r{i}"}) for i in range(4)]
    work = [workload(f"w{i}", gpus=1) for i in range(4)]
    for enforcement, count in (("hard", 4), ("audit", 1)):
        report = told(make_spec(racks, work, [policy("racks", Spread("rack", 1), enforcement=enforcement)]))
        assert (len(report.problem.classes), len(report.shapes)) == (count, count)


def test_the_exact_model_is_counted_where_it_would_be_tried() -> None:
    small = told(make_spec([node("a", 4), node("b", 4)], [workload("w", 6, gpus=1)]))
    assert small.exact is not None
    assert (small.counts, small.exact.variables, small.exact.rows) == (2, 2, 4)
    assert steps_of(EXACT_FIRST) == (
        "compile",
        "construct",
        "exact",
        "generate",
        "improve",
        "exact",
        "improve",
        "bound",
    )
    assert steps_of(EXACT_FIRST + 1) == (
        "compile",
        "construct",
        "bound",
        "generate",
        "improve",
        "exact",
        "improve",
        "bound",
    )
    assert steps_of(EXACT_VARIABLES + 1) == ("compile", "construct", "bound", "generate", "improve", "bound")
