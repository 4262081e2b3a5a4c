"""How conflicts are told: as faults with the places of all policies in them, before any search."""

from __future__ import annotations

import pytest
from tests.build.text import AS_OF, SMALL, document, documents, policy, workload

from dovetail.build import assemble, contradictions
from dovetail.engine import solve
from dovetail.faults import Fault

GANG = workload("type: gang\nreplicas: 2\nrequest: {gpus: 8, cpu: 1}", "train")
RUN = policy("rule: {admission: {}}", name="all-run")
NONE = policy("rule: {quota: {limit: {gpus: 15}}}", name="few")
FORBID = policy("match: {nodes: {groups: [g]}}\nrule: {forbid: {}}", name="nowhere")


def told(*texts: str) -> tuple[Fault, ...]:
    given = documents(SMALL, GANG, *texts)
    return contradictions(given, assemble(given, as_of=AS_OF).spec)


def test_both_places_are_told() -> None:
    (fault,) = told(RUN, NONE)
    assert (fault.code, fault.severity) == ("DT1622", "error")
    assert fault.message == (
        "'few' cannot hold together with 'all-run' (0.yaml:20:10): train needs 16 GPUs, and 'all' may hold 15 GPUs"
    )
    assert fault.position is not None
    assert fault.source_line == "  rule: {quota: {limit: {gpus: 15}}}"


@pytest.mark.parametrize(
    ("cpu", "limit", "amounts"),
    [
        ("617283.456", 1234567.89, "need 1,234,568.912 cores, and 'all' may hold 1,234,567.89 cores"),
        ("999999", 1999999.5, "need 2,000,000 cores, and 'all' may hold 1,999,999.5 cores"),
    ],
)
def test_amounts_are_told_exactly(cpu: str, limit: float, amounts: str) -> None:
    huge = workload(f"type: gang\nreplicas: 2\nrequest: {{gpus: 1, cpu: {cpu}}}", "huge")
    quota = policy(f"rule: {{quota: {{limit: {{cpu: {limit}}}}}}}", name="few")
    messages = [fault.message for fault in told(RUN, quota, huge)]
    assert any(amounts in message for message in messages), messages


def test_one_policy_that_asks_too_much_of_the_cluster_is_a_warning() -> None:
    huge = workload("type: gang\nreplicas: 5\nrequest: {gpus: 8, cpu: 1}", "huge")
    (fault,) = told(RUN, huge)
    assert (fault.code, fault.severity) == ("DT1624", "warning")
    assert fault.message.startswith("'all-run' cannot hold: ")


def test_what_nothing_demands_is_a_warning() -> None:
    assert [(each.code, each.severity) for each in told(NONE)] == [("DT1920", "warning")]
    assert [(each.code, each.severity) for each in told(FORBID)] == [("DT1920", "warning")]
    assert (
        told(FORBID)[0].message == "'nowhere' never lets train run: no node is left that can host a replica of train"
    )


@pytest.mark.parametrize("kind", ["audit", "{soft: {weight: 9}}"])
def test_only_hard_policies_contradict_each_other(kind: str) -> None:
    assert told(RUN.replace("enforcement: hard", f"enforcement: {kind}"), RUN.replace("all-run", "other")) == ()
    assert told(RUN, NONE.replace("enforcement: hard", f"enforcement: {kind}")) == ()


def test_policies_that_are_kept_are_not_told() -> None:
    assert told(RUN, NONE.replace("15", "16")) == ()


def test_what_never_moves_from_where_it_must_not_be_is_a_warning() -> None:
    never = policy("rule: {move: {never: true}}", name="stay")
    today = document("Placement", "now", "placements:\n  train#0: {node: g-000, gpus: [0, 1, 2, 3, 4, 5, 6, 7]}")
    assert [each.code for each in told(FORBID, today)] == []
    assert [each.code for each in told(never, today)] == []
    (fault,) = told(FORBID, never, today)
    assert (fault.code, fault.severity) == ("DT1921", "warning")
    assert "'nowhere' is not mended beside 'stay' (0.yaml:" in fault.message
    assert "train#0 runs on g-000, which 'nowhere' closes to it, and may not move" in fault.message


def test_an_elastic_gang_is_not_said_never_to_run_because_it_could_not_at_its_widest() -> None:
    wide = "type: gang\nreplicas: {min: 1, max: 4, step: 1}\nrequest: {gpus: 8, cpu: 1}"
    assert told(NONE.replace("15", "16"), workload(wide, "wide")) == ()


def test_one_conflict_is_told_once_for_all_its_workloads() -> None:
    others = [workload("type: gang\nrequest: {gpus: 1}", f"w{index}") for index in range(5)]
    assert [each.code for each in told(RUN, FORBID, *others)] == ["DT1621"]


def test_what_a_workload_demands_of_topology_is_told_at_its_place() -> None:
    whole = workload("type: gang\nreplicas: 2\nrequest: {gpus: 8, cpu: 1}\ntopology: {within: node}", "whole")
    (fault,) = [each for each in told(RUN, whole) if each.severity == "error"]
    assert fault.code == "DT1628"
    assert "'workload-topology' (0.yaml:" in fault.message
    assert "whole needs 16 GPUs in one node, and the most that one has open is 8" in fault.message


RACKS = policy("rule: {reserve: {domains: 5, of: node}}", name="spare")
PLACES = policy("rule: {reserve: {replicas: 9, request: {gpus: 4}}}", name="room")
WITHIN = policy("rule: {reserve: {replicas: 3, request: {gpus: 4}, within: node}}", name="near")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (RACKS, "'spare' cannot hold: 5 domains of level node are held free, and an empty cluster has 4"),
        (PLACES, "'room' cannot hold: 9 places are held free, and an empty cluster has 8"),
        (WITHIN, "'near' cannot hold: 3 places are held free, and an empty cluster has 2"),
    ],
)
def test_more_held_free_than_an_empty_cluster_has_is_told_and_there_is_no_plan(given: str, why: str) -> None:
    found = [fault for fault in told(given) if fault.code == "DT1632"]
    assert [(fault.message, fault.severity) for fault in found] == [(why, "warning")]
    spec = assemble(documents(SMALL, GANG, given), as_of=AS_OF).spec
    assert solve(spec).outcome.status == "infeasible"
    soft = assemble(documents(SMALL, GANG, given.replace("hard", "{soft: {weight: 1}}")), as_of=AS_OF).spec
    assert solve(soft).outcome.status == "optimal"


def test_what_runs_excuses_what_is_held_free_and_that_nothing_mends_it_is_told() -> None:
    today = document(
        "Placement",
        "now",
        "placements:\n  train#0: {node: g-000, gpus: [0, 1, 2, 3, 4, 5, 6, 7]}\n"
        "  train#1: {node: g-001, gpus: [0, 1, 2, 3, 4, 5, 6, 7]}",
    )
    assert [fault.code for fault in told(PLACES, today)] == ["DT1922"]
    (fault,) = told(RACKS, today)
    assert fault.message == (
        "'spare' is excused by what runs today, and never mended: "
        "5 domains of level node are held free, and an empty cluster has 4"
    )
    spec = assemble(documents(SMALL, GANG, RACKS, today), as_of=AS_OF).spec
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert plan.policies["spare"].violation == plan.policies["spare"].excused == 3


def test_what_an_empty_cluster_has_is_held_free() -> None:
    given = documents(SMALL, GANG, PLACES.replace("replicas: 9", "replicas: 4"))
    spec = assemble(given, as_of=AS_OF).spec
    assert [fault.code for fault in contradictions(given, spec)] == []
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert len(plan.held["room"].held) == 4


CHAT = workload("type: service\nreplicas: 4\nrequest: {mig: 1g.10gb, cpu: 1}", "chat")
SURVIVES = policy("match: {workloads: {names: [chat]}}\nrule: {survive: {of: node}}", name="any-node")
IN_FULL = policy("match: {workloads: {names: [chat]}}\nrule: {admission: {}}", name="all-chat")


def test_instances_that_nothing_has_to_spare_are_told_and_nobody_is_on_them() -> None:
    (fault,) = told(CHAT, SURVIVES)
    assert (fault.code, fault.severity) == ("DT1920", "warning")
    assert "no replica of chat could restart after a failure that 'any-node' lets it survive" in fault.message
    plan = solve(assemble(documents(SMALL, GANG, CHAT, SURVIVES), as_of=AS_OF).spec)
    assert plan.outcome.status == "optimal"
    assert plan.admitted["chat"].state == "none"


def test_who_must_run_and_could_not_restart_is_a_contradiction() -> None:
    (fault,) = told(CHAT, SURVIVES, IN_FULL)
    assert (fault.code, fault.severity) == ("DT1633", "error")
    spec = assemble(documents(SMALL, GANG, CHAT, SURVIVES, IN_FULL), as_of=AS_OF).spec
    assert solve(spec).outcome.status == "infeasible"


def test_instances_of_nodes_that_are_cut_alike_are_to_spare() -> None:
    alike = SMALL.replace("sharing: {mechanism: fraction}", "migStrategy: single")
    given = documents(alike, GANG, CHAT, SURVIVES)
    spec = assemble(given, as_of=AS_OF).spec
    assert contradictions(given, spec) == ()
    assert sum(replica.workload == "chat" for replica in solve(spec).placements) == 4
