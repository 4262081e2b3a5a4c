"""Ranks for launchers: every placed replica of a gang once, in the order that `show --by gang` tells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.plans import greedy_plan, plan_for
from tests.support.specs import grouped_gang, make_spec, node, place, request, role, workload
from tests.support.tiny_gangs import tiny_gangs
from tests.test_schemas import faults

from dovetail.exporters.ranks import RANKS_FILE, export_ranks
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.spec import ReplicaId, Spec


def exported(spec: Spec, plan: Plan) -> Mapping[str, list[dict[str, Any]]]:
    """Return the ranks of an export by gang; it fits its schema."""
    text = export_ranks(spec, plan)[RANKS_FILE]
    document = json.loads(text)
    assert faults("ranklist.schema.json", document) == []
    assert document["spec"]["inputs"] == plan.inputs
    rows = [line for line in text.splitlines() if line.startswith('      {"rank"')]
    assert len(rows) == sum(len(gang["ranks"]) for gang in document["spec"]["gangs"])
    return {gang["gang"]: gang["ranks"] for gang in document["spec"]["gangs"]}


def test_a_rank_has_its_node_its_gpus_with_their_ranks_and_its_domains() -> None:
    roles = [role("lead", 1, request(0)), role("work", 2, request(2))]
    nodes = [node("n0", 4, domains={"rack": "r0"}), node("n1", 4)]
    spec = make_spec(nodes, [workload("train", type="gang", roles=roles)], levels=("rack", "node"))
    places = {
        ReplicaId("train", "lead", 0): place("n0"),
        ReplicaId("train", "work", 0): place("n0", 1, 3),
        ReplicaId("train", "work", 1): place("n1", 0, 1),
    }
    home = {"domains": {"rack": "r0"}}
    assert exported(spec, plan_for(spec, places)) == {
        "train": [
            {"rank": 0, "replica": "train.lead#0", "node": "n0", **home},
            {"rank": 1, "replica": "train.work#0", "node": "n0", "gpus": [1, 3], "gpuRanks": [0, 1], **home},
            {"rank": 2, "replica": "train.work#1", "node": "n1", "gpus": [0, 1], "gpuRanks": [2, 3], "domains": {}},
        ]
    }


def test_ranks_go_group_by_group() -> None:
    spec, places = grouped_gang()
    told = [row["replica"] for row in exported(spec, plan_for(spec, places))["g"]]
    assert told == ["g.lead#0", "g.work#0", "g.work#1", "g.lead#1", "g.work#2", "g.work#3"]


def test_an_instance_is_told() -> None:
    spec = make_spec([node("a", 2)], [workload("g", type="gang", replicas=2)])
    places = {ReplicaId("g", "", i): Place("a", (i,)) for i in range(2)}
    cut = {who: where._replace(instance="1g.10gb@6") for who, where in places.items()}
    plan = replace(plan_for(spec, places), placements=cut)
    assert [row["instance"] for row in exported(spec, plan)["g"]] == ["1g.10gb@6"] * 2


def test_work_that_is_no_gang_and_a_gang_without_a_place_have_no_ranks() -> None:
    work = [workload("job", 1), workload("web", type="service", replicas=3), workload("g", type="gang", replicas=2)]
    spec = make_spec([node("a", 8)], work)
    job = {ReplicaId("job", "", 0): place("a", 0)} | {ReplicaId("web", "", i): place("a", 1 + i) for i in range(3)}
    assert exported(spec, plan_for(spec, job)) == {}


@pytest.mark.parametrize("seed", range(30))
def test_ranks_count_every_placed_replica_of_a_gang_once(seed: int) -> None:
    spec = tiny_gangs(seed)
    plan = greedy_plan(spec)
    found = exported(spec, plan)
    for ranks in found.values():
        assert [row["rank"] for row in ranks] == list(range(len(ranks)))
        gpu_ranks = [number for row in ranks for number in row.get("gpuRanks", ())]
        assert gpu_ranks == list(range(len(gpu_ranks)))
    told = {row["replica"]: (row["node"], tuple(row.get("gpus", ()))) for ranks in found.values() for row in ranks}
    gangs = {each.id for each in spec.workloads if each.type == "gang" or each.gathers}
    assert told == {
        str(who): (where.node, where.gpus) for who, where in plan.placements.items() if who.workload in gangs
    }
