"""Ranks follow the tree where nobody of a gang runs; whichever of several equally good orders that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations

import pytest
from tests.support.plans import plan_for
from tests.support.specs import grouped_gang, make_spec, node, place, places, request, role, workload

from dovetail.engine import solve
from dovetail.placement import Place
from dovetail.plan import Plan, digest, outside_digest
from dovetail.rules import policy_of
from dovetail.spec import Current, Group, Spec, Topology, Workload
from dovetail.verify import lines, verify

PREFER = Topology(prefer="rack")
ROWS = {"g#0": place("n0", 0, 1), "g#1": place("n0", 2, 3), "g#2": place("n1", 0, 1), "g#3": place("n2", 0, 1)}


def spec_of(gang: Workload, running: Mapping[str, Place] | None = None) -> Spec:
    """Return a gang on two racks of two nodes."""
    nodes = [node(f"n{i}", 4, domains={"rack": f"r{i // 2}"}) for i in range(4)]
    held = policy_of([gang])
    return make_spec(nodes, [gang], [held] if held else [], running=running)


def four(topology: Topology = PREFER, **more: object) -> Workload:
    """Return a gang of four."""
    return workload("g", 4, gpus=2, type="gang", topology=topology, **more)  # type: ignore[arg-type]


def astray(spec: Spec, plan: Plan) -> list[str]:
    """Return what breaks, nothing but ranks."""
    verification = verify(spec, plan)
    assert {check.name for check in verification.checks if not check.ok} <= {"ranks"}, list(lines(verification))
    return [finding.detail for check in verification.checks for finding in check.findings]


def swapped(one: str, other: str) -> dict[str, Place]:
    return {**ROWS, one: ROWS[other], other: ROWS[one]}


@pytest.mark.parametrize(("one", "other"), [("g#0", "g#3"), ("g#1", "g#3"), ("g#1", "g#2")])
def test_two_ranks_that_change_places_across_domains_are_refused(one: str, other: str) -> None:
    spec = spec_of(four())
    assert astray(spec, plan_for(spec, places(ROWS))) == []
    (said,) = astray(spec, plan_for(spec, places(swapped(one, other))))
    assert "which replicas before it have left" in said


def test_orders_that_are_as_good_are_accepted_and_no_others() -> None:
    spec = spec_of(four())
    good = 0
    for order in permutations(ROWS.values()):
        rows = dict(zip(ROWS, order, strict=True))
        nodes = "".join(place.node[1] for place in order)
        whole = nodes in ("0012", "1002", "2001", "2100")  # racks one after the other, and so the nodes of each
        assert (astray(spec, plan_for(spec, places(rows))) == []) is whole
        good += whole
    assert good == 8  # each way round of the two on one node


def test_places_within_a_domain_may_change_hands() -> None:
    spec = spec_of(four())
    assert astray(spec, plan_for(spec, places(swapped("g#0", "g#1")))) == []


def test_what_runs_keeps_its_index_and_others_take_what_is_left() -> None:
    spec = spec_of(four(movable=False), {"g#1": ROWS["g#3"]})
    assert astray(spec, plan_for(spec, places(swapped("g#1", "g#3")))) == []


def test_without_the_state_ranks_that_do_not_follow_are_left_open() -> None:
    there = spec_of(four())
    there = replace(there, current=replace(there.current, from_outside=True))
    plan = plan_for(there, places(swapped("g#1", "g#3")))
    plan = replace(plan, inputs=digest(there), current=outside_digest(there))
    assert len(astray(there, plan)) == 1
    part = verify(replace(there, current=Current()), plan)
    assert part.ok
    assert {check.name: check.unchecked for check in part.without_state}["ranks"] == ("g",)


def test_each_role_of_groups_follows_the_tree_on_its_own() -> None:
    spec, rows = grouped_gang()
    held = policy_of(spec.workloads)
    assert held is not None
    spec = replace(spec, policies=(held,))
    assert astray(spec, plan_for(spec, rows)) == []


def test_islands_are_domains_too() -> None:
    host = node("n", 4, islands=((0, 2), (1, 3)))
    spec = make_spec([host], [workload("g", 4, gpus=1, type="gang", topology=Topology(prefer="island"))])
    good = places({f"g#{i}": place("n", gpu) for i, gpu in enumerate((1, 3, 0, 2))})
    assert astray(spec, plan_for(spec, good)) == []
    assert len(astray(spec, plan_for(spec, places({f"g#{i}": place("n", i) for i in range(4)})))) == 1


def test_groups_that_may_be_there_in_part_are_asked_nothing() -> None:
    pairs = Topology(groups=(Group("rack", 4), Group("node", 1, minimum=2)))
    spec = spec_of(four(pairs, min_replicas=2))
    rows = {"g#0": place("n0", 0, 1), "g#1": place("n1", 0, 1), "g#2": place("n0", 2, 3), "g#3": place("n1", 2, 3)}
    assert "ranks" not in {check.name for check in verify(spec, plan_for(spec, places(rows))).checks if not check.ok}


def test_the_engine_follows_the_tree_whatever_order_nodes_have() -> None:
    roles = [role("lead", 2, request(1)), role("work", 4, request(1))]
    gang = workload("g", roles=roles, type="gang", communicates=True)
    nodes = [node(f"n{i}", 2, domains={"rack": f"r{i % 2}"}) for i in range(4)]
    for order in permutations(nodes):
        spec = make_spec(order, [gang])
        assert astray(spec, solve(spec)) == []
