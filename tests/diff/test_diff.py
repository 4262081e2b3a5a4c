"""The difference of two plans: who is named, with what, and at what cost."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from dovetail.diff import Change, PlanDiff, diff
from dovetail.placement import Place
from dovetail.plan import AdmissionResult, Outcome, Plan, PolicyResult, TierResult
from dovetail.spec import ReplicaId


def places(**rows: tuple[str, ...]) -> dict[ReplicaId, Place]:
    """`places(web=("n1:0", "n2:0,1", "-"))`: one entry per index, node and GPUs, `-` for not admitted."""
    found = {}
    for workload, entries in rows.items():
        for index, entry in enumerate(entries):
            node, _, gpus = entry.partition(":")
            if node != "-":
                found[ReplicaId(workload, "", index)] = Place(node, tuple(map(int, filter(None, gpus.split(",")))))
    return found


def plan(
    admitted: dict[str, AdmissionResult] | None = None,
    policies: dict[str, PolicyResult] | None = None,
    tiers: tuple[TierResult, ...] = (),
    **rows: tuple[str, ...],
) -> Plan:
    placements = places(**rows)
    return Plan(
        "demo",
        "sha256:" + "0" * 64,
        Outcome("optimal"),
        tiers=tiers,
        summary={"moves": 0, "gpusAllocated": Decimal(len(placements)) / 2},
        placements=placements,
        admitted=admitted or {},
        policies=policies or {},
    )


def waiting(of: int, *reasons: str, replicas: int = 0) -> AdmissionResult:
    return AdmissionResult("partial" if replicas else "none", replicas, of, reasons)


def only(found: PlanDiff) -> Change:
    (change,) = found.changes
    return change


def kinds(found: PlanDiff) -> list[tuple[str, str]]:
    return [(change.workload, change.kind) for change in found.changes]


def test_a_plan_does_not_differ_from_itself() -> None:
    same = plan(web=("n1:0", "n2:0"), admitted={"big": waiting(4)})
    found = diff(same, same)
    assert not found
    assert found.changes == ()
    assert found.policies == ()
    assert found.delta == {}
    assert found.unchanged == 2


def test_a_workload_that_got_in_is_added_and_says_what_kept_it_out() -> None:
    found = only(diff(plan(job=("-",), admitted={"job": waiting(2, "DT4999")}), plan(job=("n1:0", "n1:1"))))
    assert (found.kind, found.replicas, found.gpus, found.shape) == ("add", 2, 2, "2x GPU")
    assert found.why == "was: DT4999"


def test_a_workload_that_is_new_is_added_as_new() -> None:
    assert only(diff(plan(), plan(job=("n1:0",)))).why == "new"


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ({}, "2 of 12 admitted (new): DT4999"),
        ({"job": waiting(3, "DT4998")}, "2 of 12 admitted (was 0 of 3): DT4999"),
    ],
)
def test_a_workload_that_got_in_with_a_part_says_so_and_why(before: dict[str, AdmissionResult], why: str) -> None:
    after = plan(job=("n1:0", "n1:1"), admitted={"job": waiting(12, "DT4999", replicas=2)})
    found = only(diff(plan(admitted=before), after))
    assert (found.kind, found.replicas, found.in_part) == ("add", 2, True)
    assert (found.why, found.reasons) == (why, ("DT4999",))


def test_moves_tell_nodes_and_group_replicas_of_one_place() -> None:
    before = plan(job=("n1:0", "n1:0", "n1:0", "n3:1"))
    after = plan(job=("n2:0", "n2:0", "n1:0", "n4:1"))
    found = only(diff(before, after))
    assert (found.kind, found.replicas) == ("move", 3)
    assert found.nodes_before() == ("n1", "n3")
    assert found.nodes_after() == ("n2", "n4")
    assert [row.replica for row in found.rows] == ["job#0-1", "job#3"]


def test_a_change_of_gpus_on_the_same_node_is_a_move() -> None:
    assert only(diff(plan(job=("n1:0",)), plan(job=("n1:1",)))).kind == "move"


def test_scaling_up_and_moving_are_told_apart() -> None:
    found = diff(plan(web=("n1:0",)), plan(web=("n2:0", "n3:0")))
    assert kinds(found) == [("web", "move"), ("web", "resize")]
    assert found.changes[1].why == "replicas 1 -> 2"
    assert found.changes[1].replicas == 1


def test_scaling_down_is_no_eviction() -> None:
    found = diff(plan(web=("n1:0", "n2:0")), plan(web=("n1:0",)))
    assert kinds(found) == [("web", "resize")]
    assert found.cost.evicted_workloads == 0


def test_a_replica_that_is_still_declared_is_evicted() -> None:
    after = plan(web=("n1:0", "-"), admitted={"web": waiting(2, "DT4999", replicas=1)})
    found = diff(plan(web=("n1:0", "n2:0")), after)
    assert kinds(found) == [("web", "evict")]
    assert found.changes[0].reasons == ("DT4999",)
    assert (found.cost.evicted_workloads, found.cost.evicted_replicas) == (1, 1)


def test_a_workload_that_is_no_longer_declared_is_removed() -> None:
    found = diff(plan(old=("n1:0",)), plan())
    assert kinds(found) == [("old", "remove")]
    assert found.cost.evicted_workloads == 0


@pytest.mark.parametrize("before", [None, waiting(1), waiting(2, "DT4999")])
def test_a_workload_waits_anew_when_anything_about_it_is_new(before: AdmissionResult | None) -> None:
    base = plan(admitted={"big": before} if before else {})
    assert kinds(diff(base, plan(admitted={"big": waiting(2)}))) == [("big", "wait")]


def test_figures_are_subtracted_exactly() -> None:
    found = diff(plan(web=("n1:0",)), plan(web=("n1:0", "n2:0")))
    assert found.delta == {"gpusAllocated": Decimal("0.5")}


def test_tiers_of_either_side_are_listed() -> None:
    def tier(name: str, value: int) -> TierResult:
        return TierResult(name, value, value, "moves", "min", "solver")

    found = diff(plan(tiers=(tier("a", 1), tier("b", 2))), plan(tiers=(tier("b", 3), tier("c", 4))))
    assert [(t.name, t.before, t.after) for t in found.tiers] == [("b", 2, 3), ("c", None, 4), ("a", 1, None)]


def test_failures_of_hard_policies_come_first() -> None:
    def fail(enforcement: Any) -> PolicyResult:
        return PolicyResult(enforcement, "fail", 1, "replicas")

    after = plan(policies={"a": fail("audit"), "b": fail("soft"), "c": fail("hard")})
    found = diff(plan(), after)
    assert found.failures == ("c", "b", "a")
    assert [(p.name, p.before, p.after) for p in found.policies] == [(n, None, "fail") for n in "abc"]


def test_the_order_does_not_depend_on_the_order_of_rows() -> None:
    one = plan(b=("n1:0",), a=("n1:1",), c=("n2:0", "n2:1"))
    other = plan(c=("n3:0", "n3:1"), a=("n1:2",), b=("n1:3",))
    shuffled = plan(b=("n1:3",), a=("n1:2",), c=("n3:0", "n3:1"))
    assert diff(one, other) != diff(one, one)
    assert diff(one, other).changes == diff(one, shuffled).changes
    assert [change.workload for change in diff(one, other).changes] == ["a", "b", "c"]


def test_the_document_holds_what_its_schema_says(root: Path) -> None:
    registry: Registry[Any] = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema))
        for schema in (json.loads(f.read_text(encoding="utf-8")) for f in (root / "schemas").glob("*.schema.json"))
    )
    before = plan(web=("n1:0", "n2:0"), old=("n1:1",), admitted={"big": waiting(2, "DT4101")})
    after = plan(
        web=("n3:0", "-"), admitted={"web": waiting(2, "DT4101", replicas=1), "big": waiting(3)}, new=("n1:1",)
    )
    document = diff(before, after).to_document()
    schema = json.loads((root / "schemas/plandiff.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema, registry=registry).validate(json.loads(json.dumps(document)))
    assert [c["change"] for c in document["spec"]["changes"]] == ["wait", "add", "remove", "move", "evict"]


def test_a_workload_that_asks_for_more_and_gets_none_is_told() -> None:
    found = only(diff(plan(web=("n1:0",)), plan(web=("n1:0",), admitted={"web": waiting(3, "DT4999", replicas=1)})))
    assert (found.kind, found.replicas, found.rows) == ("resize", 0, ())
    assert found.why == "1 of 3 admitted (was 1 of 1): DT4999"


def test_a_part_that_is_another_one_than_before_is_told_as_a_part() -> None:
    before = plan(web=("n1:0", "-"), admitted={"web": waiting(2, "DT4999", replicas=1)})
    after = plan(web=("-", "n1:0"), admitted={"web": waiting(2, "DT4999", replicas=1)})
    found = diff(before, after).changes
    assert [change.why for change in found if change.kind == "resize"] == [
        "1 of 2 admitted, others than before: DT4999"
    ]


def test_other_reasons_alone_are_no_change_of_what_runs() -> None:
    before = plan(web=("n1:0",), admitted={"web": waiting(3, "DT4998", replicas=1)})
    after = plan(web=("n1:0",), admitted={"web": waiting(3, "DT4999", replicas=1)})
    assert not diff(before, after)


def test_a_tier_that_only_one_side_has_is_no_difference() -> None:
    tier = TierResult("disruption.moves", 0, 0, "replicas", "min", "solver")
    assert not diff(plan(web=("n1:0",)), plan(tiers=(tier,), web=("n1:0",)))
