"""Why a workload is where it is: what is said of other places holds, measured again and by brute force."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.oracle.brute import TooLarge, brute
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.documents import load_text
from dovetail.engine import solve
from dovetail.faults import Refused
from dovetail.plan import AdmissionResult, Outcome, Plan
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid
from dovetail.rules.separate import Separate
from dovetail.spec import NodeSelector, Spec, Workload, WorkloadSelector
from dovetail.verify import verify
from dovetail.whatif import Drop
from dovetail.whynot import Explanation, Way, Without, to_document, tried, without
from dovetail.whynot.alike import Alike

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def _dear() -> Spec:
    """Return a Spec with a cheap node, one that is near it, and two dear ones in another rack."""
    nodes = [
        node("cheap", 2, price=1, domains={"rack": "a"}),
        node("dear", 2, price=5, domains={"rack": "b"}),
        node("dearer", 2, price=7, domains={"rack": "b"}),
        node("near", 2, price=2, domains={"rack": "a"}),
    ]
    return make_spec(nodes, [workload("w", 1, gpus=2)])


def _plan(spec: Spec) -> Plan:
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    return plan


def test_other_nodes_are_told_with_what_they_would_change() -> None:
    spec = _dear()
    found = tried(spec, _plan(spec), spec.by_id["w"])
    assert found is not None
    assert (found.node, found.replicas, found.hosts) == ("cheap", 1, 3)
    told = [
        (each.node, [(c.tier, c.here, c.there, c.worse) for c in each.changes], each.obstacle) for each in found.nodes
    ]
    assert told == [
        ("near", [("cost", 1, 2, True)], ""),
        ("dear", [("cost", 1, 5, True)], ""),
        ("dearer", [("cost", 1, 7, True)], ""),
    ]


def test_keeping_off_is_planned_and_proved() -> None:
    spec = _dear()
    plan = _plan(spec)
    found = list(without(spec, plan, spec.by_id["w"], solve, 9))
    told = [(each.what, [(c.tier, c.there) for c in each.changes], each.certain, each.admitted) for each in found]
    assert told == [("node cheap", [("cost", 2)], True, 1), ("rack a", [("cost", 5)], True, 1)]
    assert len(list(without(spec, plan, spec.by_id["w"], solve, 1))) == 1


def test_what_keeps_it_off_is_no_policy_that_a_document_can_name() -> None:
    spec = _dear()
    plan = _plan(spec)
    asked: list[Spec] = []

    def planned(other: Spec) -> Plan:
        asked.append(other)
        return plan

    list(without(spec, plan, spec.by_id["w"], planned, 1))
    (ban,) = (policy.name for policy in asked[0].policies)
    text = (
        f"apiVersion: dovetail/v1alpha1\nkind: Policy\nmetadata: {{name: {ban}}}\n"
        "spec: {rule: {exclusive: {at: node}}, enforcement: hard}\n"
    )
    with pytest.raises(Refused) as refused:
        load_text(text, "p.yaml")
    assert [fault.code for fault in refused.value.faults] == ["DT1302"]


def _checked(told: Explanation) -> dict[str, Any]:
    """Return what an explanation's document says, after a check against its schema."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.rglob("*.json")]
    registry: Any = Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in found])
    schema = next(each for each in found if each["title"] == "Explanation")
    document = to_document(told)
    Draft202012Validator(schema, registry=registry).validate(document)
    said: dict[str, Any] = document["spec"]
    return said


def test_all_of_it_follows_the_schema() -> None:
    spec = _dear()
    plan, work = _plan(spec), spec.by_id["w"]
    told = Explanation(spec, plan, work, (), (), tried(spec, plan, work), tuple(without(spec, plan, work, solve, 9)))
    said = _checked(told)
    assert said["tried"]["nodes"]
    assert said["without"]
    assert "conflict" not in said


def test_who_waits_then_and_what_cannot_hold_together_is_in_the_document_too() -> None:
    spec = make_spec([node("a", 1)], [workload("x", 1, gpus=1), workload("y", 1, gpus=1, priority=1)])
    plan, work = _plan(spec), spec.by_id["x"]
    beside = replace(plan, admitted={"y": AdmissionResult("none", 0, 1)})
    way = Way(Drop(workload="y"), beside, 1, helps=True, certain=True)
    assert _checked(Explanation(spec, plan, work, (), (way,)))["ways"][0]["others"] == 1
    nothing = Plan("s", plan.inputs, Outcome("infeasible"), conflict=("p", "q"))
    assert _checked(Explanation(spec, nothing, work))["conflict"] == ["p", "q"]


def test_a_policy_in_the_way_is_named() -> None:
    nodes = [node("a", 1), node("b", 2, price=1)]
    apart = policy("apart", Separate(by="workload", at="node"))
    spec = make_spec(nodes, [workload("x", 1, gpus=1), workload("y", 1, gpus=1)], [apart])
    found = tried(spec, _plan(spec), spec.by_id["x"])
    assert found is not None
    assert [each.obstacle for each in found.nodes if each.obstacle] in (["policy apart"], ["room for 0 of 1"])


def test_a_share_is_tried_on_other_gpus_than_the_first() -> None:
    apart = policy("apart", Separate(by="workload", at="gpu"))
    work = [workload("x", share=500), workload("y", share=200)]
    for gpus, obstacles in ((2, [""]), (1, ["policy apart"])):
        spec = make_spec([node("a", 1), node("b", gpus)], work, [apart])
        plan = plan_for(spec, places({"x#0": place("a", 0), "y#0": place("b", 0)}))
        told = tried(spec, plan, spec.by_id["x"])
        assert told is not None
        assert [each.obstacle for each in told.nodes] == obstacles


def _twins(**differing: Any) -> Spec:
    """Return a Spec with a node for the work, and two more that differ in one thing alone."""
    nodes = [node("a", 1, cpu=9), node("b", 1, cpu=9, price=1), node("c", 1, cpu=9, price=1)]
    nodes[2] = replace(nodes[2], **differing)
    return make_spec(nodes, [workload("w", 1, gpus=1, cpu=5)])


@pytest.mark.parametrize(
    ("differing", "obstacles"),
    [
        ({}, [""]),
        ({"cpu": 5_000}, ["", ""]),
        ({"memory": 5_000}, ["", ""]),
        ({"resources": {"nic": 1}}, ["", ""]),
        ({"labels": {"zone": "west"}}, ["", ""]),
        ({"speed": 900}, ["", ""]),
        ({"islands": ((0,),)}, ["", ""]),
    ],
)
def test_nodes_that_differ_do_not_look_alike(differing: dict[str, Any], obstacles: list[str]) -> None:
    spec = _twins(**differing)
    found = tried(spec, _plan(spec), spec.by_id["w"])
    assert found is not None
    assert [each.obstacle for each in found.nodes] == obstacles


BESIDE = {"x": 20, "y": 2, "z": 2}


def test_what_runs_beside_it_and_policies_tell_nodes_apart() -> None:
    nodes = [node(name, 2, cpu=32) for name in ("a", "b", "c", "d")]
    works = [
        workload("w", 1, gpus=1, cpu=16),
        workload("x", 1, cpu=20),
        workload("y", 1, cpu=2),
        workload("z", cpu=2),
    ]
    off = policy("off", Forbid(), workloads=WorkloadSelector(names=("w",)), nodes=NodeSelector(names=("c",)))
    spec = make_spec(nodes, works, [off])
    where = {"w#0": place("a", 0), "x#0": place("b"), "y#0": place("c"), "z#0": place("d")}
    found = tried(spec, plan_for(spec, places(where), "feasible"), spec.by_id["w"])
    assert found is not None
    told = {each.node: each.obstacle for each in found.nodes}
    assert told == {"b": "room for 0 of 1", "c": "policy off", "d": ""}


def test_nodes_that_are_left_out_would_tell_nothing_else(tell: Callable[[str], None]) -> None:
    wrong, looked, spared = [], 0, 0
    for seed in range(5000, 5060):
        small = tiny(seed)
        more = [replace(each, name=f"{each.name}-{copy}") for each in small.cluster.nodes for copy in "ab"]
        spec = replace(small, cluster=replace(small.cluster, nodes=(*small.cluster.nodes, *more)))
        plan = plan_for(spec, solve(small).placements, "feasible")
        for work in spec.workloads if not spec.placeholders else ():
            found = tried(spec, plan, work)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Alike, "distinct", lambda _, nodes: list(nodes))
                every = tried(spec, plan, work)
            if found is None or every is None:
                continue
            looked += len(every.nodes)
            spared += len(every.nodes) - len(found.nodes)
            if {(e.obstacle, e.changes) for e in every.nodes} != {(e.obstacle, e.changes) for e in found.nodes}:
                wrong.append(f"seed {seed}: {work.id}")
    tell(f"{spared} of {looked} other nodes are left out, and would be as others are")
    assert wrong == []
    assert spared >= 50


def test_what_never_moves_stays() -> None:
    spec = make_spec(
        [node("a", 1), node("b", 1)], [workload("w", 1, gpus=1, movable=False)], running={"w#0": place("a", 0)}
    )
    found = tried(spec, _plan(spec), spec.by_id["w"])
    assert found is not None
    assert [(each.node, each.obstacle) for each in found.nodes] == [("b", "it never moves")]


def test_who_is_nowhere_has_no_other_place() -> None:
    spec = make_spec([node("a", 1)], [workload("w", 1, gpus=1)], [policy("none", Quota((("gpus", 0),)))])
    plan = _plan(spec)
    assert tried(spec, plan, spec.by_id["w"]) is None
    assert list(without(spec, plan, spec.by_id["w"], solve, 9)) == []


def test_what_is_told_of_another_node_is_what_a_plan_with_it_measures(tell: Callable[[str], None]) -> None:
    wrong, looked, differ = [], 0, 0
    for seed in range(5000, 5060):
        spec = tiny(seed)
        plan = solve(spec)
        if not plan.placements or spec.placeholders or any(p.rule.searches for p in spec.policies):
            continue
        for work in spec.workloads:
            found = tried(spec, plan, work)
            for each in found.nodes if found is not None else ():
                if each.obstacle:
                    continue
                looked += 1
                differ += bool(each.changes)
                there = plan_for(spec, {**plan.placements, **each.places}, "feasible")
                values = {tier.name: tier.value for tier in there.tiers}
                told = {t.name: t.value for t in plan.tiers} | {c.tier: c.there for c in each.changes}
                if not verify(spec, there).ok or values != told:
                    wrong.append(f"seed {seed}: {work.id} on {each.node}: {each.changes}, {values}")
    tell(f"{looked} other nodes are as told, {differ} of them worse")
    assert wrong == []
    assert min(looked, differ) >= 10


def test_what_is_proved_without_is_what_brute_force_finds(tell: Callable[[str], None]) -> None:
    wrong, looked, differ = [], 0, 0
    for seed in range(5100, 5130):
        spec = tiny(seed)
        plan = solve(spec)
        for work in spec.workloads if plan.outcome.status == "optimal" and not spec.current.replicas else ():
            for each in without(spec, plan, work, solve, 2):
                try:
                    best = brute(_banned(spec, work, each))
                except TooLarge:
                    continue
                looked += 1
                differ += bool(each.changes)
                told = {t.name: t.value for t in plan.tiers} | {c.tier: c.there for c in each.changes}
                if best is None or not each.certain or told != best.by_name:
                    wrong.append(f"seed {seed}: {work.id} off {each.what}: {each.changes}")
    tell(f"{looked} plans elsewhere are as brute force has them, {differ} of them worse")
    assert wrong == []
    assert min(looked, differ) >= 10


def _banned(spec: Spec, work: Workload, found: Without) -> Spec:
    """Return the Spec in which a workload is forbidden what was told in words."""
    what, _, name = found.what.partition(" ")
    nodes = {
        "accelerator": NodeSelector(accelerators=(name,)),
        "node": NodeSelector(names=(name,)),
        "rack": NodeSelector(domains=(name,)),
    }.get(what)
    if nodes is None:  # several, by their number
        raise TooLarge(found.what)
    ban = policy("zz", Forbid(), workloads=WorkloadSelector(names=(work.id,)), nodes=nodes)
    return replace(spec, policies=(*spec.policies, ban))
