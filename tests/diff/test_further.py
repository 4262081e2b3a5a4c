"""What differs beside workloads is a difference: policies, GPUs, held places, recovery, promises."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, replica, request, workload

from dovetail.diff import PlanDiff, diff, since_today
from dovetail.mig import Instance
from dovetail.placement import Place
from dovetail.plan import BrokenPromise, Figure, Outcome, Plan, PolicyResult
from dovetail.rules import Rule, Told
from dovetail.rules.reserve import Reserve
from dovetail.spec import Setting
from dovetail_cli.render import markdown, text
from dovetail_cli.render.review import Review

CASE = {"rack/r1": {replica("w#0"): Place("n2", (0,))}, "rack/r2": {replica("w#0"): Place("n2", (0,))}}
OTHER = {**CASE, "rack/r1": {replica("w#0"): Place("n3", (0,))}}
PLAN = Plan(
    "demo",
    "sha256:" + "0" * 64,
    Outcome("optimal"),
    placements=places({"w#0": place("n1", 0)}),
    policies={"cap": PolicyResult("audit", "fail", 1000, "amount above the limit", {"all/gpus": 1000})},
    held={"spare": Told((Place("n1", (1,)),))},
    recovery={"safe": CASE},
    promises={"w": BrokenPromise(100)},
    gpus={"n1/1": (Instance("3g.40gb", 4),)},
    shared={"n2/0": Setting("mps", 2), "n2/1": Setting("mps", 2)},
)


def cap(violation: int, **subjects: int) -> dict[str, PolicyResult]:
    return {"cap": PolicyResult("audit", "fail", violation, "amount above the limit", subjects)}


CHANGES: list[tuple[dict[str, Any], str]] = [
    (
        {"policies": cap(3000, all=3000)},
        "policy cap  1,000 -> 3,000 amount above the limit: all (0 -> 3,000), all/gpus (1,000 -> 0)",
    ),
    (
        {"policies": cap(1000, a=1000)},
        "policy cap  1,000 amount above the limit as before, by others: a (0 -> 1,000), all/gpus (1,000 -> 0)",
    ),
    ({"policies": {}}, "policy cap  applies no longer, was fail"),
    (
        {"policies": {**PLAN.policies, "off": PolicyResult("hard", "pass", 2, "misplaced replicas", {"w": 2})}},
        "policy off  new, pass, 2 misplaced replicas: w (2)",
    ),
    ({"policies": {**PLAN.policies, "on": PolicyResult("hard", "pass", 0, "")}}, "policy on  new, pass"),
    ({"held": {"spare": Told((Place("n3", (0,)),))}}, "held by spare  n1 gpu 1 -> n3 gpu 0"),
    ({"held": {"spare": Told(untouched=("r1",))}}, "held by spare  n1 gpu 1 -> r1"),
    ({"held": {}}, "held by spare  n1 gpu 1 -> nothing"),
    ({"recovery": {"safe": OTHER}}, "recovery of safe  otherwise in 1 failure case"),
    ({"recovery": {}}, "recovery of safe  otherwise in 2 failure cases"),
    ({"promises": {"w": BrokenPromise(50)}}, "promise to w  100 -> 50 thousandths missing"),
    ({"promises": {}}, "promise to w  100 -> 0 thousandths missing"),
    ({"gpus": {}}, "GPU n1/1  3g.40gb@4 -> whole"),
    (
        {"shared": {"n2/0": Setting("mps", 4), "n2/1": Setting("mps", 4)}},
        "GPUs n2/0, n2/1  mps 2 clients -> mps 4 clients",
    ),
]


@pytest.fixture(scope="module")
def validator(root: Path) -> jsonschema.Draft202012Validator:
    schemas = [json.loads(f.read_text(encoding="utf-8")) for f in (root / "schemas").glob("*.schema.json")]
    registry: Registry[Any] = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in schemas)
    own = next(schema for schema in schemas if schema["title"] == "PlanDiff")
    return jsonschema.Draft202012Validator(own, registry=registry)


def written(found: PlanDiff) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(found.to_document()))
    return plain


@pytest.mark.parametrize(("other", "line"), CHANGES)
def test_whatever_differs_is_a_difference_and_told(
    validator: jsonschema.Draft202012Validator, other: dict[str, Any], line: str
) -> None:
    found = diff(PLAN, dataclasses.replace(PLAN, **other))
    assert found
    assert not found.changes
    review = Review(found.target, found, "plan.yaml")
    assert f"  {line}\n" in text.rendered(review)
    assert "No workload changes; 1 other difference." in markdown.rendered(review)
    validator.validate(written(found))


def test_only_what_differs_is_written() -> None:
    policies = cap(3000, **{"all/gpus": 3000})
    other = dataclasses.replace(PLAN, recovery={"safe": OTHER}, policies=policies, held={})
    spec = written(diff(PLAN, other))["spec"]
    rows = {"before": {"w#0": {"node": "n2", "gpus": [0]}}, "after": {"w#0": {"node": "n3", "gpus": [0]}}}
    assert spec["recovery"] == {"safe": {side: {"rack/r1": row} for side, row in rows.items()}}
    assert spec["held"] == {"spare": {"before": [{"node": "n1", "gpus": [1]}]}}
    counts = {"before": 1000, "after": 3000}
    assert spec["policies"]["cap"] == {
        "before": "fail",
        "after": "fail",
        "violation": counts,
        "unit": "amount above the limit",
        "subjects": {"all/gpus": counts},
    }
    assert not {"gpus", "promises"} & spec.keys()


def test_what_nobody_knows_of_today_is_no_difference() -> None:
    rule: Rule = Reserve(1, request(1))
    found = make_spec(
        [node("a", 2)], [workload("w", gpus=1)], [policy("spare", rule)], running={"w#0": place("a", 0)}
    )
    target = plan_for(found, places({"w#0": place("a", 0)}))
    told = dataclasses.replace(target, held={"spare": Told((place("a", 1),))}, recovery={"spare": CASE})
    assert not since_today(told, found).sections


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {"gpusHeld": 8}, "held free 8 (+8)"),
        ({"gpusHeld": 8}, {}, "held free 0 (-8)"),
        ({"gpusHeld": 8}, {"gpusHeld": 8}, "held free 8 (+0)"),
        ({}, {"gpusFragmented": 2, "fragmentationRate": Decimal("0.5")}, "fragmented 2 (50.00 % of idle)\n"),
        ({"costPerHour": 7}, {"costPerHour": 0}, "cost/h 0 (-7)"),
    ],
)
def test_a_figure_that_one_side_does_not_tell_is_zero_or_not_known(
    before: dict[str, Figure], after: dict[str, Figure], said: str
) -> None:
    base, target = (dataclasses.replace(PLAN, summary={"moves": 0, **figures}) for figures in (before, after))
    found = diff(base, target)
    assert found.delta.get("gpusHeld", 0) == after.get("gpusHeld", 0) - before.get("gpusHeld", 0)
    assert said in text.rendered(Review(found.target, found, "plan.yaml"))


def test_what_is_left_out_of_a_long_list_is_counted() -> None:
    policies = {f"p{number:02}": PolicyResult("hard", "pass", 0, "") for number in range(11)}
    found = diff(dataclasses.replace(PLAN, policies={}), dataclasses.replace(PLAN, policies=policies))
    assert "    1 more difference (--detail)" in text.rendered(Review(found.target, found, "plan.yaml"))
