"""Gangs make way for what waits and may only be where they are, if they can be elsewhere as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.at_work import GANG, on, ones, planned, racks, running, stepped
from tests.support.specs import node, place, policy, workload

from dovetail.engine import ladder, solve
from dovetail.engine.bounds import Bounds
from dovetail.engine.construction.making_way import with_gangs_making_way
from dovetail.model.state import State
from dovetail.placement import Place, View
from dovetail.progress import Limits
from dovetail.rules.quota import Quota
from dovetail.rules.require import Require
from dovetail.spec import Node, NodeSelector, Policy, Spec, Topology, Workload, WorkloadSelector

NODES = racks(x=2, y=2)


def gang(**more: Any) -> Workload:
    return workload("gang", 2, gpus=4, **{**GANG, "topology": Topology("rack"), **more})


def today(*names: str) -> dict[str, Place]:
    return {f"gang#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(names)}


def certified(*names: str) -> Policy:
    """Say that `w` has to be on some nodes."""
    nodes = NodeSelector(names=names)
    return policy("certified", Require(), workloads=WorkloadSelector(names=("w",)), nodes=nodes)


def after(spec: Spec) -> tuple[dict[str, int], View]:
    """Return the values of the tiers, and the view, of what construction begins and gangs make way in."""
    return stepped(spec, with_gangs_making_way)


def test_a_gang_goes_to_another_rack_for_what_has_to_be_where_it_is() -> None:
    told, view = after(planned(NODES, [*ones(w=2), gang()], today("x0", "x1"), certified("x0")))
    assert on(view, "gang") == ["y0", "y1"]
    assert on(view, "w") == ["x0", "x0"]
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 2)


def test_the_part_of_it_stays_that_may() -> None:
    loose = gang(topology=None)
    told, view = after(planned(NODES, [*ones(w=2), loose], today("x0", "x1"), certified("x0")))
    assert on(view, "gang")[0] == "x1"
    assert on(view, "w") == ["x0", "x0"]
    assert told["disruption.moves"] == 1


def test_others_make_way_for_the_gang_in_turn() -> None:
    where = {**today("x0", "x1"), **running(v="y0")}
    spec = planned(racks(x=2, y=2, z=1), [*ones(w=2, v=1), gang()], where, certified("x0"))
    told, view = after(spec)
    assert on(view, "gang") == ["y0", "y1"]
    assert on(view, "w") == ["x0", "x0"]
    assert told["disruption.moves"] == 3


@pytest.mark.parametrize(
    ("nodes", "more", "policies"),
    [
        pytest.param(racks(x=2, y=1), {}, (), id="there is no other rack for it"),
        pytest.param(NODES, {"movable": False}, (), id="it may not move"),
        pytest.param(NODES, {}, (policy("quota", Quota((("gpus", 8_000),))),), id="the quota is full"),
    ],
)
def test_it_stays_where_that_leads_to_nothing(
    nodes: list[Node], more: dict[str, Any], policies: tuple[Policy, ...]
) -> None:
    spec = planned(nodes, [*ones(w=2), gang(**more)], today("x0", "x1"), certified("x0"), *policies)
    told, view = after(spec)
    assert on(view, "gang") == ["x0", "x1"]
    assert not on(view, "w")
    assert told["disruption.moves"] == 0


def test_its_quota_is_not_used_up_by_what_takes_its_place() -> None:
    quota = policy("quota", Quota((("gpus", 9_000),)))
    spec = planned(NODES, [*ones(w=4), gang()], today("x0", "x1"), certified("x0"), quota)
    _, view = after(spec)
    assert on(view, "gang") == ["y0", "y1"]
    assert on(view, "w") == ["x0"]


def test_it_is_handed_out_before_any_bound_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who interrupts a large search while it looks for bounds has what made room by then."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    spec = planned(NODES, [*ones(w=2), gang()], today("x0", "x1"), certified("x0"))
    kept: list[State] = []
    known: list[int] = []
    stand = Bounds.stand

    def counted(bounds: Bounds, *given: Any, **more: Any) -> None:
        known.append(len(kept))
        stand(bounds, *given, **more)

    monkeypatch.setattr(Bounds, "stand", counted)
    solve(spec, Limits(work=0.1), keep=lambda state, tiers: kept.append(state))
    assert sum(kept[known[0] - 1].admitted().values()) == 4


def large(replicas: int = 3) -> Workload:
    """Return a gang that waits, and needs as many nodes of one rack."""
    return workload("large", replicas, gpus=4, **{**GANG, "topology": Topology("rack")})


def test_a_gang_goes_to_another_rack_for_one_that_only_this_one_has_nodes_for() -> None:
    told, view = after(planned(racks(x=3, y=2), [gang(), large()], today("x0", "x1")))
    assert on(view, "large") == ["x0", "x1", "x2"]
    assert on(view, "gang") == ["y0", "y1"]
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 2)


def test_others_make_way_for_a_gang_that_makes_way_for_one() -> None:
    where = {**today("x0", "x1"), **running(v="y0")}
    told, view = after(planned(racks(x=3, y=2, z=1), [*ones(v=1), gang(), large()], where))
    assert on(view, "large") == ["x0", "x1", "x2"]
    assert on(view, "gang") == ["y0", "y1"]
    assert on(view, "v") == ["z0"]
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 3)


def test_a_gang_that_lost_a_node_takes_the_rack_of_one_that_its_own_has_room_for() -> None:
    lost = {f"large#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("y0", "y1", "gone"))}
    nodes = [*racks(x=3, y=2), node("gone", 4, down=True, domains={"rack": "y"})]
    told, view = after(planned(nodes, [gang(), large()], {**today("x0", "x1"), **lost}))
    assert on(view, "large") == ["x0", "x1", "x2"]
    assert on(view, "gang") == ["y0", "y1"]
    assert told["disruption.evicted"] == 0


@pytest.mark.parametrize("more", [{"movable": False}, {"preemptible": False}])
def test_a_gang_stays_that_may_not_move_or_has_no_other_rack(more: dict[str, bool]) -> None:
    spare = 2 if "movable" in more else 1
    told, view = after(planned(racks(x=3, y=spare), [gang(**more), large()], today("x0", "x1")))
    assert on(view, "gang") == ["x0", "x1"]
    assert not on(view, "large")
    assert told["disruption.moves"] == 0
