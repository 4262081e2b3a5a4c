"""What a workload lacks, in numbers, and ways out: those that help, and that the fewest nodes are the fewest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.specs import make_spec, node, policy, request, workload

from dovetail.documents import DocumentSet
from dovetail.engine.ladder import solve
from dovetail.plan import Plan
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid
from dovetail.rules.reserve import Reserve
from dovetail.rules.spread import Spread
from dovetail.spec import (
    Current,
    NodeGroup,
    NodeSelector,
    Policy,
    PresentReplica,
    ReplicaId,
    Slo,
    Spec,
    WorkloadSelector,
)
from dovetail.whatif import Add
from dovetail.whynot import Explanation, Way, applying, shortages, ways
from dovetail_cli.project import Places
from dovetail_cli.render.whynot import of_workload


def spec_of(*policies: Policy, gpus: int = 8) -> Spec:
    """Return two nodes of 8 GPUs: a big job that needs both, and small work that runs before it."""
    nodes = [node(name, gpus, group="n") for name in ("n-000", "n-001")]
    works = [workload("big", 2, gpus=8, type="gang", priority=5), workload("small", gpus=2, priority=9)]
    spec = make_spec(nodes, works, list(policies), levels=("node",))
    group = NodeGroup("n", replace(nodes[0], name="n"), ("n-000", "n-001"), True)
    return replace(spec, cluster=replace(spec.cluster, groups=(group,)))


def found(spec: Spec, name: str, most: int = 12) -> tuple[list[Way], int]:
    asked: list[Spec] = []

    def plan(changed: Spec) -> Plan:
        asked.append(changed)
        return solve(changed)

    return list(ways(spec, solve(spec), spec.by_id[name], plan, most)), len(asked)


def test_numbers_say_what_is_missing() -> None:
    spec = spec_of()
    (short,) = shortages(spec, solve(spec), spec.by_id["big"])
    assert (short.missing, short.nodes, short.able, short.open) == (2, 2, 2, 2)
    assert (short.free, short.most, short.fit) == (14_000, 8, 1)
    assert shortages(spec, solve(spec), spec.by_id["small"]) == ()


def test_what_is_held_free_is_not_idle() -> None:
    spec = spec_of(policy("spare", Reserve(replicas=1, request=request(8))))
    plan = solve(spec)
    assert plan.admitted["big"].reasons == ("DT4101", "DT4107")
    (short,) = shortages(spec, plan, spec.by_id["big"])
    assert (short.free, short.held, short.most, short.fit) == (6_000, 8_000, 6, 0)
    told = of_workload(Explanation(spec, plan, spec.by_id["big"]), Places(DocumentSet((), Path())))
    assert "6 GPUs idle there beside 8 that policies hold free; the best node has 6 that fit\n" in told


def test_of_a_rate_is_told_what_is_missing_and_what_would_serve_it() -> None:
    """All 18 replicas are what the slowest host would take; of them 8 serve 480 of 600 on the fast one."""
    slo = Slo(600_000, {"H100-80GB": 60_000, "A100-80GB": 35_000}, open=True)
    work = replace(workload("serve", 18, type="service", gpus=1), slo=slo)
    spec = make_spec([node("n", 8, accelerator="H100-80GB")], [work])
    plan = solve(spec)
    (short,) = shortages(spec, plan, work)
    assert (short.missing, short.rate) == (4, (120_000, 2))
    told = of_workload(Explanation(spec, plan, work), Places(DocumentSet((), Path())))
    assert told.startswith("dovetail explain: serve   8 replicas admitted, serving 480 of 600   plan")
    assert "    missing  120/s, which would take 2 to 4 replicas of 1 GPU" in told


@pytest.mark.parametrize(("fast", "rate"), [(60_000, (120_000, 2)), (0, None)])
def test_hosts_where_a_replica_sustains_nothing_do_not_count_in_what_is_missing(
    fast: int, rate: tuple[int, int] | None
) -> None:
    slo = Slo(600_000, {"H100-80GB": fast, "A100-80GB": 0}, open=True)
    work = replace(workload("serve", 10, type="service", gpus=1), slo=slo)
    spec = make_spec([node("n", 8, accelerator="H100-80GB")], [work])
    (short,) = shortages(spec, solve(spec), work)
    assert short.rate == rate


def test_one_node_more_is_the_least_that_helps() -> None:
    told, _ = found(spec_of(), "big")
    assert [(str(way.patch), way.helps, way.least) for way in told] == [("1 more node in n", True, True)]


@pytest.mark.parametrize(
    ("helping", "asked", "number", "least"),
    [
        (set(range(1, 17)), [1], 1, True),
        ({1, *range(4, 17)}, [1], 1, True),
        (set(range(2, 17)), [1, 16, 2], 2, True),
        (set(range(3, 17)), [1, 16, 2, 4, 3], 3, True),
        ({3, *range(5, 17)}, [1, 16, 2, 4, 8, 6, 5], 5, False),
        (set(range(14, 17)), [1, 16, 2, 4, 8, 12, 14, 13], 14, False),
        ({16}, [1, 16, 2, 4, 8, 12, 14, 15], 16, False),
        ({2, 3}, [1, 16], 16, False),
    ],
)
def test_small_numbers_of_nodes_are_tried_first(
    helping: set[int], asked: list[int], number: int, least: bool
) -> None:
    spec = spec_of()
    plan, tried = solve(spec), []

    def planned(changed: Spec) -> Plan:
        tried.append(len(changed.cluster.nodes) - 2)
        admitted = {} if tried[-1] in helping else plan.admitted
        return replace(plan, admitted=admitted)

    (way,) = ways(spec, plan, spec.by_id["big"], planned, 12)
    assert tried == asked
    assert (str(way.patch), way.helps) == (str(Add("n", number)), number in helping)
    assert way.least is least


def test_a_policy_in_the_way_is_found_among_others() -> None:
    quota = policy("few", Quota((("gpus", 4000),)), workloads=WorkloadSelector(names=("big",)))
    other = policy("other", Quota((("gpus", 1000),)), workloads=WorkloadSelector(names=("none",)))
    spec = spec_of(quota, other, gpus=16)
    told, _ = found(spec, "big")
    assert [each.name for each in applying(spec, spec.by_id["big"])] == ["few"]
    assert [(str(way.patch), way.helps) for way in told][:1] == [("policy few dropped", True)]
    assert {way.helps for way in told[1:]} == {False}
    assert all(way.certain for way in told)


def test_a_quota_that_leaves_enough_is_no_way_out() -> None:
    quota = policy("ample", Quota((("gpus", 16000),)), workloads=WorkloadSelector(names=("big",)))
    told, _ = found(spec_of(quota), "big")
    assert [str(way.patch) for way in told] == ["1 more node in n"]


def test_a_policy_that_keeps_others_where_they_are_comes_last() -> None:
    nodes = [node(name, 2) for name in ("n-000", "n-001")]
    works = [workload("big", gpus=2, priority=5), workload("small", 2, gpus=1, priority=9)]
    spec = make_spec(nodes, works, [policy("even", Spread("node", max_per_domain=1))])
    told, _ = found(spec, "big")
    assert [(str(way.patch), way.helps) for way in told] == [("policy even dropped", True)]


def test_a_budget_of_moves_binds_where_something_runs() -> None:
    idle = spec_of(policy("still", Move(max_moves=0)))
    runs = replace(idle, current=Current((PresentReplica(ReplicaId("small", "", 0), "n-000", (0, 1)),)))
    told = [[each.name for each in applying(spec, spec.by_id["big"])] for spec in (idle, runs)]
    assert told == [[], ["still"]]


def test_closed_nodes_are_counted() -> None:
    closed = policy("not-there", Forbid(), nodes=NodeSelector(names=("n-001",)))
    spec = spec_of(closed)
    (short,) = shortages(spec, solve(spec), spec.by_id["big"])
    assert (short.able, short.open) == (2, 1)


def test_work_of_no_higher_priority_may_have_to_go() -> None:
    told, _ = found(spec_of(), "small")
    assert told  # it is admitted; each way is a plan in which it still is
    assert {way.helps for way in told} == {True}
    told, _ = found(spec_of(), "big")
    assert not any("small" in str(way.patch) for way in told)


def test_no_more_plans_are_made_than_allowed() -> None:
    for most in (0, 1, 3):
        told, asked = found(spec_of(), "big", most)
        assert asked <= most
        assert len(told) <= most
