"""Both sides of a what-if: what the scenario starts from, what is compared, what is expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource
from tests.support.plans import greedy_plan
from tests.whatif.projects import AS_OF, asked, documents_of, patched, scenario_of

from dovetail.mig import Instance
from dovetail.placement import judge
from dovetail.plan import Outcome, Plan, current_of
from dovetail.spec import Current, Spec
from dovetail.verify import verify
from dovetail.whatif import Check, WhatIfResult, prepare, run

PLACEMENT = """\
---
apiVersion: dovetail/v1alpha1
kind: Placement
metadata: {name: today}
spec:
  placements:
    "search/web#0": {node: h100-006, gpus: [1]}
"""
FAIL = "{fail: {rack: h100-rack0}}"


class Solver:
    """Plans greedily and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Spec] = []

    def __call__(self, spec: Spec) -> Plan:
        self.asked.append(spec)
        return greedy_plan(spec)


def no_plan(spec: Spec) -> Plan:
    return Plan(spec.name, "sha256:" + "0" * 64, Outcome("infeasible"))


def judged(folder: Path, *expected: str, patches: str = "[]") -> tuple[Check, ...]:
    lines = "".join(f"  - {each}\n" for each in expected)
    return run(asked(folder, f"  patches: {patches}\n  expect:\n{lines}"), greedy_plan).checks


def test_the_scenario_starts_from_the_base_plan(tmp_path: Path) -> None:
    solver = Solver()
    result = run(patched(tmp_path, FAIL), solver)
    assert [spec.current for spec in solver.asked] == [Current(), current_of(result.base)]


def test_a_failing_rack_shows_what_it_costs(tmp_path: Path) -> None:
    result = run(patched(tmp_path, FAIL), greedy_plan)
    assert result.diff is not None
    kinds = {(change.workload, change.kind) for change in result.diff.changes}
    assert ("research/train", "gone") in kinds | {(w, "gone") for w, k in kinds if k == "move"}
    assert result.diff.delta["gpusTotal"] == -4
    assert result.result.summary["evictedWorkloads"] == result.diff.cost.evicted_workloads
    assert result.result.summary["restarts"] or result.result.summary["evictedReplicas"]


def test_a_given_base_is_not_planned(tmp_path: Path) -> None:
    question = patched(tmp_path, FAIL)
    base, solver = greedy_plan(question.base), Solver()
    result = run(question, solver, base=base)
    assert [spec.current for spec in solver.asked] == [current_of(base)]
    assert result.base is base


def test_a_placement_of_the_documents_is_what_runs_on_both_sides(tmp_path: Path) -> None:
    solver = Solver()
    run(asked(tmp_path, f"  patches: [{FAIL}]\n", more=PLACEMENT), solver)
    assert [len(spec.current.replicas) for spec in solver.asked] == [1, 1]


def test_where_nothing_runs_on_both_sides_nothing_happens(tmp_path: Path) -> None:
    nothing = PLACEMENT.partition("  placements:")[0] + "  placements: {}\n"
    result = run(asked(tmp_path, f"  patches: [{FAIL}]\n", more=nothing), greedy_plan)
    assert result.diff is not None
    assert not {change.kind for change in result.diff.changes} & {"move", "evict", "gone"}
    assert (result.diff.cost.restarts, result.diff.cost.evicted_workloads) == (0, 0)
    assert result.result.summary["evictedWorkloads"] == 0


def test_a_placement_that_the_scenario_sets_is_what_runs_on_its_side(tmp_path: Path) -> None:
    solver = Solver()
    run(patched(tmp_path, "{set: {kind: Placement, metadata: {name: now}, spec: {placements: "
                "{'search/web#0': {node: h100-006, gpus: [1]}}}}}"), solver)  # fmt: skip
    assert [len(spec.current.replicas) for spec in solver.asked] == [0, 1]


def test_a_scenario_without_patches_changes_nothing(tmp_path: Path) -> None:
    result = run(patched(tmp_path), greedy_plan)
    assert result.diff is not None
    assert (result.diff.changes, result.diff.delta) == ((), {})


def test_without_a_plan_there_is_no_difference(tmp_path: Path) -> None:
    question = patched(tmp_path, FAIL)
    result = run(question, no_plan, base=greedy_plan(question.base))
    assert result.diff is None
    assert result.to_document()["spec"]["delta"] == {}


@pytest.mark.parametrize(
    ("expected", "ok", "actual"),
    [
        ("{workload: research/train, admitted: full}", True, "full"),
        ("{workload: research/train, admitted: none}", False, "full"),
        ("{workload: research/train, replicas: 4}", True, 4),
        ("{workload: research/train, atLeast: 5}", False, 4),
        ("{workload: research/train, admitted: full, atMost: 3}", False, "full, 4 admitted"),
        ("{summary: evictedWorkloads, atMost: 0}", True, 0),
        ("{summary: gpusAllocated, atLeast: 10.5, atMost: 11}", True, 11),
        ("{tier: 'admitted[900]', equals: 8000}", True, 8000),
        ("{tier: 'admitted[1]', atLeast: 0}", False, None),
        ("{status: feasible}", True, "feasible"),
        ("{status: infeasible}", False, "feasible"),
        ("{policy: apart, result: waived}", True, "waived"),
        ("{policy: apart, result: fail}", False, "waived"),
    ],
)
def test_expectations_say_whether_they_hold_and_what_was_found(
    tmp_path: Path, expected: str, ok: bool, actual: str | int | None
) -> None:
    (check,) = judged(tmp_path, expected)
    assert (check.ok, check.actual) == (ok, actual)


@pytest.mark.parametrize(
    "expected",
    ["{workload: pair, admitted: none}", "{summary: moves, atMost: 9}", "{policy: apart, result: pass}"],
)
def test_without_a_plan_nothing_is_known_but_the_status(tmp_path: Path, expected: str) -> None:
    question = asked(tmp_path, f"  expect:\n  - {expected}\n  - {{status: infeasible}}\n")
    checks = run(question, no_plan, base=greedy_plan(question.base)).checks
    assert [(check.ok, check.actual) for check in checks] == [(False, None), (True, "infeasible")]


def test_expectations_are_judged_on_the_scenario(tmp_path: Path) -> None:
    (check,) = judged(tmp_path, "{workload: search/web, admitted: none}", patches="[{scale: {workload: search/web, "
                      "replicas: 0}}]")  # fmt: skip
    assert (check.ok, check.actual) == (False, "full")


def test_expectations_read_as_words(tmp_path: Path) -> None:
    checks = judged(tmp_path, "{summary: moves, atMost: 4}", "{policy: apart, result: pass}")
    assert [str(check.expectation) for check in checks] == ["moves at most 4", "policy apart pass"]


@pytest.fixture
def valid(root: Path) -> Callable[[WhatIfResult], dict[str, Any]]:
    """Return a result's document after a check against the schemas, by a library of its own."""
    schemas = [
        json.loads(file.read_text(encoding="utf-8")) for file in sorted((root / "schemas").glob("*.schema.json"))
    ]
    rules = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((root / "schemas/rules").glob("*.json"))]
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in (*schemas, *rules)
    )
    schema = next(each for each in schemas if each["title"] == "WhatIfResult")
    validator = jsonschema.Draft202012Validator(schema, registry=registry)

    def check(result: WhatIfResult) -> dict[str, Any]:
        document = json.loads(json.dumps(result.to_document()))
        validator.validate(document)
        spec: dict[str, Any] = document["spec"]
        return spec

    return check


def test_the_document_follows_its_schema(tmp_path: Path, valid: Callable[[WhatIfResult], dict[str, Any]]) -> None:
    policy = (
        "{kind: Policy, metadata: {name: more}, spec: {rule: {quota: {limit: {gpus: 12.5}}}, enforcement: audit}}"
    )
    scenario = f"  patches: [{{set: {policy}}}, {FAIL}]\n  expect:\n  - {{summary: gpusAllocated, atMost: 10.5}}\n"
    question = asked(tmp_path, scenario)
    spec = valid(run(question, greedy_plan))
    assert spec["scenario"] == "case"
    assert [list(patch) for patch in spec["patches"]] == [["set"], ["fail"]]
    assert spec["expectations"][0]["expect"]["atMost"] == 10.5
    valid(run(question, no_plan, base=greedy_plan(question.base)))


def test_the_document_tells_of_each_side_what_stands_in_no_plan_file(
    tmp_path: Path, valid: Callable[[WhatIfResult], dict[str, Any]]
) -> None:
    question = patched(tmp_path, "{scale: {workload: search/web, replicas: 90}}")
    spec = valid(run(question, greedy_plan))
    assert "admitted" not in spec["base"]
    assert spec["result"]["admitted"]["search/web"]["of"] == 90
    assert spec["result"]["admitted"]["search/web"]["reasons"]
    assert spec["result"]["policies"]["apart"]["result"] == "waived"
    nothing = replace(no_plan(question.changed), conflict=("apart",))
    spec = valid(run(question, lambda _: nothing, base=greedy_plan(question.base)))
    assert spec["result"]["conflict"] == ["apart"]


def test_documents_stay_as_they_are(tmp_path: Path) -> None:
    documents = documents_of(tmp_path, "  patches: [{drop: {workload: pair}}]\n")
    before = [document.value for document in documents.documents]
    prepare(documents, scenario_of(documents), as_of=AS_OF)
    assert [document.value for document in documents.documents] == before


def test_gpus_that_are_cut_anew_send_away_what_the_base_plan_has_there(tmp_path: Path) -> None:
    cut = "{repartition: {nodes: {groups: [h100]}, instances: [4g.40gb@0, 3g.40gb@4]}}"
    solver = Solver()
    result = run(patched(tmp_path, cut), solver)
    gpus = [place for place in result.base.placements.values() if place.gpus]
    assert gpus
    assert len(solver.asked[1].current.gpus) == 16
    today = judge(solver.asked[1])
    assert set(today.lost.values()) == set(gpus)


@pytest.mark.parametrize(("first", "number"), [(True, 16), (False, 18)])
def test_nodes_that_are_added_later_are_not_cut(tmp_path: Path, first: bool, number: int) -> None:
    patches = [
        "{repartition: {nodes: {groups: [h100]}, instances: [4g.40gb@0, 3g.40gb@4]}}",
        "{add: {group: h100, nodes: 1}}",
    ]
    solver = Solver()
    run(patched(tmp_path, *(patches if first else reversed(patches))), solver)
    assert len(solver.asked[1].current.gpus) == number


def test_nodes_that_are_cut_may_fail(tmp_path: Path) -> None:
    cut = "{repartition: {nodes: {groups: [h100]}, instances: [4g.40gb@0, 3g.40gb@4]}}"
    result = run(patched(tmp_path, cut, FAIL), greedy_plan)
    assert verify(result.spec, result.result).ok


def test_gpus_repartitioned_can_be_expected(tmp_path: Path) -> None:
    bounds = ("{summary: gpusRepartitioned, atMost: 0}", "{summary: gpusRepartitioned, atLeast: 1}")
    assert [(check.ok, check.actual) for check in judged(tmp_path, *bounds)] == [(True, 0), (False, 0)]
    cut = "[{repartition: {nodes: {groups: [h100]}, instances: [7g.80gb]}}]"
    found = judged(tmp_path, *bounds, patches=cut)
    assert [check.ok for check in found] == [False, True]


def test_gpus_that_only_the_scenario_cuts_are_a_difference(tmp_path: Path) -> None:
    result = run(patched(tmp_path, "{repartition: {nodes: {groups: [h100]}, instances: [7g.80gb]}}"), greedy_plan)
    assert "gpusRepartitioned" not in result.base.summary
    assert result.diff is not None
    assert result.diff.delta["gpusRepartitioned"] == result.result.summary["gpusRepartitioned"] > 0


def test_what_the_base_plan_has_cut_is_not_cut_back(tmp_path: Path) -> None:
    """Documents tell one instance today, the base plan makes two of it, and the scenario is about another node."""
    question = patched(tmp_path, FAIL)
    gpu = f"{question.base.cluster.nodes[0].name}/0"
    sides = [
        replace(side, current=replace(side.current, gpus={gpu: (Instance("7g.80gb", 0),)}))
        for side in (question.base, question.changed)
    ]
    halves = Instance("4g.40gb", 0), Instance("3g.40gb", 4)
    base, solver = replace(greedy_plan(question.base), gpus={gpu: halves}), Solver()
    run(replace(question, base=sides[0], changed=sides[1]), solver, base=base)
    assert solver.asked[0].current.gpus[gpu] == halves
