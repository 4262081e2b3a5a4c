"""A plan whose bound says that no more can be had is refused where a workload more, or a move less, plainly can."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, request, role, workload
from tests.verify.test_without_state import documents, moved_outside

from dovetail.placement import Place
from dovetail.rules.quota import Quota
from dovetail.rules.survive import Survive
from dovetail.spec import Spec, Topology
from dovetail.verify import verify


def told(spec: Spec, rows: Mapping[str, Place], status: str = "optimal") -> list[str]:
    """Return what the check of bounds finds of a plan; nothing else is wrong with it."""
    verification = verify(spec, plan_for(spec, places(rows), status))  # type: ignore[arg-type]
    assert {check.name for check in verification.checks if not check.ok} <= {"tier-bounds"}
    return [f"{each.subject} {each.detail}" for check in verification.checks for each in check.findings]


def test_work_that_waits_and_has_room_refutes_the_bound() -> None:
    spec = make_spec([node("n", 2)], [workload("w", 3, gpus=1)])
    room = "w has room beside all that is admitted"
    assert told(spec, {}) == [f"admitted[0] has bound 0, and 1000 can be had: {room}"]
    assert told(spec, {"w#0": place("n", 1)}) == [f"admitted[0] has bound 1000, and 2000 can be had: {room}"]
    assert told(spec, {"w#0": place("n", 1), "w#1": place("n", 0)}) == []


def test_a_bound_that_leaves_room_is_asked_nothing() -> None:
    assert told(make_spec([node("n", 2)], [workload("w", 3, gpus=1)]), {}, "feasible") == []


def test_work_without_gpus_counts_as_well() -> None:
    assert told(make_spec([node("n", 0, cpu=1000)], [workload("w", 1, cpu=1000)]), {})
    assert not told(make_spec([node("n", 0, cpu=1000)], [workload("w", 1, cpu=1001)]), {})


def test_a_gang_is_tried_as_a_whole_domain_by_domain() -> None:
    racks = [node(f"{rack}{i}", 1, domains={"rack": rack}) for rack in "ab" for i in range(2)]
    gang = workload("g", type="gang", roles=[role("", 2, request(1))], topology=Topology(within="rack"))
    spec = make_spec(racks, [gang, workload("w", 1, gpus=1)], levels=("rack", "node"))
    assert told(spec, {"w#0": place("a0", 0)})
    spec = make_spec(racks[1:3], [gang], levels=("rack", "node"))
    assert not told(spec, {})


def test_of_several_roles_one_may_have_room() -> None:
    work = workload("w", roles=[role("large", 1, request(4)), role("small", 1, request(1))])
    spec = make_spec([node("n", 2)], [work])
    assert told(spec, {}) == ["admitted[0] has bound 0, and 1000 can be had: w has room beside all that is admitted"]
    assert told(spec, {"w.small#0": place("n", 0)}) == []


def test_a_hard_policy_that_it_would_break_is_a_reason() -> None:
    work = [workload("w", 2, gpus=1)]
    assert not told(make_spec([node("n", 2)], work, [policy("q", Quota((("gpus", 0),)))]), {})
    assert told(make_spec([node("n", 2)], work, [policy("q", Quota((("gpus", 1000),)))]), {})


def test_nothing_is_asked_beside_a_hard_policy_that_searches() -> None:
    spec = make_spec([node("n", 2)], [workload("w", 3, gpus=1)], [policy("s", Survive(of="node"))])
    assert not told(spec, {})


def test_who_moves_for_nothing_refutes_the_bound_of_moves() -> None:
    work = [workload("w", 2, gpus=1, checkpoint_every=3_600_000), workload("x", 1, gpus=2)]
    running = {"w#0": place("a", 0), "w#1": place("b", 0)}
    spec = make_spec([node("a", 2), node("b", 2)], work, running=running)
    rows = {"w#0": place("b", 1), "w#1": place("b", 0), "x#0": place("a", 0, 1)}
    assert told(spec, rows) == []
    other = {"w#0": place("a", 1), "w#1": place("b", 1)}
    spec = make_spec([node("a", 2), node("b", 2)], work[:1], running=running)
    (found,) = told(spec, other)
    assert "w#0 could stay where it runs" in found
    assert told(spec, {**other, "w#0": place("a", 0)})
    assert told(spec, running) == []


def test_a_plan_that_breaks_a_rule_is_told_that_alone() -> None:
    spec = make_spec([node("n", 4)], [workload("g", type="gang", roles=[role("", 2, request(1))])])
    found = verify(spec, plan_for(spec, places({"g#0": place("n", 0)})))
    assert [check.name for check in found.checks if not check.ok] == ["atomic"]


def test_without_the_state_it_is_named_and_not_checked() -> None:
    spec = make_spec([node("n", 2)], [workload("w", 3, gpus=1)], running={"w#0": place("n", 0)})
    rows = places({"w#0": place("n", 0)})
    outside, plan = moved_outside(spec, plan_for(spec, rows))
    (check,) = (check for check in verify(documents(outside), plan).checks if check.name == "tier-bounds")
    assert (check.ok, check.unchecked) == (True, ("w",))
