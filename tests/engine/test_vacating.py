"""Gangs that wait have nodes vacated for them: who left goes on elsewhere, and nobody goes who need not."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from tests.support.at_work import GANG, HIGH, LOW, on, ones, planned, racks, running, stepped
from tests.support.specs import node, place, policy, request, role, workload
from tests.support.tiny_gangs import tiny_gangs

from dovetail.engine import ladder, solve
from dovetail.engine.construction import vacating
from dovetail.engine.construction.vacating import with_gangs
from dovetail.model.score import better
from dovetail.model.state import State
from dovetail.placement import Place, View
from dovetail.problem import Problem
from dovetail.progress import Limits
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.spec import Group, NodeSelector, Policy, Spec, Topology, Workload, WorkloadSelector
from dovetail.verify import verify


def after(spec: Spec) -> tuple[dict[str, int], View]:
    """Return the values of the tiers, and the view, of what construction begins and gangs have room made in."""
    return stepped(spec, with_gangs)


def gang(replicas: int = 2, within: str | None = "rack", **more: Any) -> Workload:
    return workload("gang", replicas, gpus=4, topology=Topology(within), **{**GANG, **HIGH, **more})


def test_the_domain_is_vacated_that_the_fewest_must_leave() -> None:
    where = running(w="x0 x0 x1", v="y0 y1")
    told, view = after(planned(racks(x=2, y=2, z=1), [*ones(w=3, v=2), gang()], where))
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 2)
    assert on(view, "gang") == ["y0", "y1"]
    assert on(view, "w") == ["x0", "x0", "x1"]


def test_others_make_room_for_who_left_where_fewer_move_in_all() -> None:
    """In rack y nobody who leaves is without a place, but there are three of them."""
    where = running(w="x1", v="p0 p0 p0 p0", u="y0 y0 y1")
    only = policy(
        "w", Forbid(), workloads=WorkloadSelector(names=("w",)), nodes=NodeSelector(names=("y0", "y1", "z0"))
    )
    told, view = after(planned(racks(x=2, y=2, p=1, z=1), [*ones(w=1, v=4, u=3), gang()], where, only))
    assert on(view, "gang") == ["x0", "x1"]
    assert on(view, "w") == ["p0"]
    assert on(view, "v").count("p0") == 3
    assert told["disruption.moves"] == 2


def test_who_runs_without_giving_way_keeps_a_gang_out() -> None:
    where = running(w="x0 x1", v="y0 y0 y0 y0")
    _, view = after(planned(racks(x=2, y=1), [*ones(w=2, v=4), gang(within=None)], where))
    assert not on(view, "gang")
    assert on(view, "w") == ["x0", "x1"]


def test_who_gives_way_to_a_higher_priority_goes_only_where_nothing_else_will_do() -> None:
    where = running(w="x0 x1", v="y0 y0 y0")
    low = workload("w", 2, gpus=1, **LOW)
    told, view = after(planned(racks(x=2, y=1), [low, *ones(v=3), gang()], where))
    assert on(view, "gang") == ["x0", "x1"]
    assert on(view, "w") == ["y0"]
    assert (told["disruption.evicted"], told["disruption.moves"]) == (1, 1)


def test_who_gives_way_and_may_not_move_has_no_place_elsewhere() -> None:
    """Two of x0 may give way or stay; they took the place of another one on y0, and no plan at all came of it."""
    where = {"a#0": place("x0", 0), "b#0": place("x0", 1, 2), "c#0": place("x0", 3), "d#0": place("y0", 0, 1, 2, 3)}
    gives_way: dict[str, Any] = {"preemptible": True, "priority": 500}
    work = [
        workload("a", 1, gpus=1, movable=False, **LOW),
        workload("b", 1, gpus=2, priority=500),
        workload("c", 1, gpus=1, movable=False, **gives_way),
        workload("d", 1, gpus=4, **gives_way),
        workload("gang", 2, gpus=2, **GANG, **HIGH),
    ]
    told, view = after(planned(racks(x=1, y=1), work, where))
    assert told["admitted[900]"] == 4000
    assert {*on(view, "a"), *on(view, "c")} <= {"x0"}


def test_work_of_the_same_priority_does_not_give_way() -> None:
    where = running(w="x0 x1", v="y0 y0 y0 y0")
    same = workload("w", 2, gpus=1, preemptible=True, **HIGH)
    _, view = after(planned(racks(x=2, y=1), [same, *ones(v=4), gang()], where))
    assert not on(view, "gang")


def test_a_domain_that_is_kept_untouched_is_not_tried() -> None:
    """It is idle, so that its nodes would come first, and whoever leaves others opens none of them."""
    where = running(w="y0 y1", v="z0")
    free = policy("a-rack", Reserve(domains=1, of="rack"))
    told, view = after(planned(racks(x=4, y=2, z=1), [*ones(w=2, v=1), gang(within=None)], where, free))
    assert on(view, "gang") == ["y0", "y1"]
    assert on(view, "w") == ["z0", "z0"]
    assert told["disruption.moves"] == 2


def test_a_gang_gives_way_as_a_whole() -> None:
    low = workload("old", 3, gpus=4, **{**GANG, **LOW})
    where = {f"old#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2"))}
    told, view = after(planned(racks(x=3, y=1), [low, gang()], where))
    assert (len(on(view, "gang")), on(view, "old")) == (2, [])
    assert told["disruption.evicted"] == 1


def test_a_gang_that_lost_a_node_goes_on_where_it_was() -> None:
    """Rack `x` has no free node, but somebody there may be elsewhere."""
    nodes = [*racks(x=4, y=1), node("gone", 4, down=True, domains={"rack": "x"})]
    own = {f"gang#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2", "gone"))}
    told, view = after(planned(nodes, [*ones(w=2), gang(4)], {**own, **running(w="x3 x3")}))
    assert on(view, "gang") == ["x0", "x1", "x2", "x3"]
    assert on(view, "w") == ["y0", "y0"]
    assert told["disruption.evicted"] == 0
    assert told["disruption.moves"] == 2


def drained(*names: str) -> Policy:
    return policy("drained", Forbid(), nodes=NodeSelector(names=names))


def test_a_gang_on_a_drained_node_goes_to_another_rack_that_others_leave() -> None:
    where = {**running(w="y1"), "gang#0": place("x0", 0, 1, 2, 3), "gang#1": place("x1", 0, 1, 2, 3)}
    told, view = after(planned(racks(x=2, y=2, z=1), [*ones(w=1), gang()], where, drained("x0")))
    assert on(view, "gang") == ["y0", "y1"]
    assert (told["mend"], told["disruption.evicted"], told["disruption.moves"]) == (0, 0, 3)


def test_of_a_gang_on_a_drained_node_the_others_stay() -> None:
    """Within the rack there is one node that somebody can leave."""
    own = {f"gang#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2"))}
    where = {**own, **running(w="x3")}
    told, view = after(planned(racks(x=4, y=3), [*ones(w=1), gang(3)], where, drained("x1")))
    assert on(view, "gang") == ["x0", "x2", "x3"]
    assert (told["mend"], told["disruption.moves"]) == (0, 2)


def test_a_gang_that_may_not_move_stays_on_a_drained_node() -> None:
    own = {f"gang#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1"))}
    told, view = after(planned(racks(x=2, y=2), [gang(movable=False)], own, drained("x1")))
    assert on(view, "gang") == ["x0", "x1"]
    assert (told["mend"], told["disruption.moves"]) == (1, 0)


def test_gangs_that_are_not_to_share_a_rack_any_more_part() -> None:
    apart = policy("apart", Separate("tenant", "rack"))
    gangs = [replace(gang(), id=f"{name}/gang", tenant=name) for name in ("a", "b")]
    own = {f"{name}/gang#{i}": place(f"x{2 * at + i}", 0, 1, 2, 3) for at, name in enumerate("ab") for i in (0, 1)}
    told, view = after(planned(racks(x=4, y=2), gangs, own, apart))
    assert sorted(on(view, "a/gang") + on(view, "b/gang"))[2:] == ["y0", "y1"]
    assert (told["mend"], told["disruption.moves"]) == (0, 2)


def test_new_work_does_not_use_up_the_quota_of_a_gang_that_lost_a_node() -> None:
    nodes = [*racks(x=4, y=2), node("gone", 4, down=True, domains={"rack": "x"})]
    own = {f"gang#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2", "gone"))}
    quota = policy("quota", Quota((("gpus", 16_000),)), workloads=WorkloadSelector(names=("gang", "new")))
    work = [*ones(w=1, new=8), gang(4)]
    told, view = after(planned(nodes, work, {**own, **running(w="x3")}, quota))
    assert on(view, "gang") == ["x0", "x1", "x2", "x3"]
    assert not on(view, "new")
    assert told["disruption.moves"] == 1


def test_no_more_move_than_a_policy_lets_move() -> None:
    where = running(w="x0 x1", v="y0 y1")
    work = [*ones(w=2, v=2), gang()]
    few, enough = (policy("few", Move(max_moves=most)) for most in (1, 2))
    assert not on(after(planned(racks(x=2, y=2), work, where, few))[1], "gang")
    assert on(after(planned(racks(x=2, y=2), work, where, enough))[1], "gang")


def test_groups_have_domains_of_their_own_vacated() -> None:
    """Each pair of the gang has to be in one rack: none has two free nodes."""
    topology = Topology(groups=(Group("rack", 2),))
    grouped = workload("gang", 4, gpus=4, topology=topology, **{**GANG, **HIGH})
    where = running(w="x0 y0 z0 z1")
    told, view = after(planned(racks(x=2, y=2, z=2), [*ones(w=4), grouped], where))
    assert on(view, "gang") == ["x0", "x1", "y0", "y1"]
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 2)


def elastic(name: str, most: int, least: int, step: int = 1, **more: Any) -> Workload:
    """Return an elastic gang that keeps within a rack, each of its replicas on a node of its own."""
    roles = [role("", most, request(4), least=least, step=step)]
    return replace(workload(name, roles=roles, topology=Topology("rack"), **{**GANG, **more}), min_replicas=least)


def nodes_of(name: str, *hosts: str) -> dict[str, Place]:
    return {f"{name}#{i}": place(host, 0, 1, 2, 3) for i, host in enumerate(hosts)}


def test_an_elastic_gang_grows_in_its_domain_where_others_give_way() -> None:
    low = [workload(name, 1, gpus=4, **LOW) for name in ("a", "b", "c")]
    where = {**nodes_of("gang", "x0"), **nodes_of("a", "x1"), **nodes_of("b", "x2"), **nodes_of("c", "y0")}
    told, view = after(planned(racks(x=3, y=1), [elastic("gang", 6, 1, 2, **HIGH), *low], where))
    assert on(view, "gang") == ["x0", "x1", "x2"], "by a whole step, and not into the other rack"
    assert (on(view, "c"), told["disruption.evicted"]) == (["y0"], 2)


def test_an_elastic_gang_grows_where_others_move_and_nobody_gives_way() -> None:
    """It lost its third node; the one that is left of its rack has somebody who may be elsewhere."""
    nodes = [*racks(x=3, y=1), node("gone", 4, down=True, domains={"rack": "x"})]
    where = {**nodes_of("gang", "x0", "x1", "gone"), **running(w="x2")}
    told, view = after(planned(nodes, [*ones(w=1), elastic("gang", 3, 1, **HIGH)], where))
    assert on(view, "gang") == ["x0", "x1", "x2"]
    assert on(view, "w") == ["y0"]
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 1)


def test_a_gang_that_waits_has_room_before_one_that_grows() -> None:
    """Both are worth as much for each replica, and there is one node that somebody may leave."""
    where = {**nodes_of("gang", "x0"), **running(w="x1 x1 y0 y0")}
    waiting = workload("new", 2, gpus=2, topology=Topology("node"), **{**GANG, **HIGH})
    _, view = after(planned(racks(x=2, y=1), [*ones(w=4), waiting, elastic("gang", 2, 1, **HIGH)], where))
    assert len(set(on(view, "new"))) == 1
    assert on(view, "gang") == ["x0"]


def test_a_new_elastic_gang_has_as_much_as_others_give_way_for() -> None:
    low = workload("a", 1, gpus=4, **LOW)
    where = {**nodes_of("a", "x0"), **nodes_of("stay", "x1", "y0"), **nodes_of("more", "x2")}
    work = [
        low,
        *(workload(name, n, gpus=4) for name, n in (("stay", 2), ("more", 1))),
        elastic("gang", 3, 1, **HIGH),
    ]
    _, view = after(planned(racks(x=3, y=1), work, where))
    assert on(view, "gang") == ["x0"]


def test_an_elastic_gang_gives_way_by_as_much_as_has_to_go() -> None:
    where = nodes_of("old", "x0", "x1", "x2", "x3")
    old = elastic("old", 4, 2, 2, **LOW)
    told, view = after(planned(racks(x=4), [old, gang(2)], where))
    assert (len(on(view, "gang")), len(on(view, "old"))) == (2, 2)
    assert (told["disruption.evicted"], told["disruption.moves"]) == (1, 0)


def test_a_gang_that_spoils_a_plan_does_not_keep_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """What makes a plan worse in a tier before admission is rare; here it is said to be the gang `worse`."""

    def not_worse(problem: Problem, found: State, state: State, unpaid: frozenset[str]) -> bool:
        worse = problem.shapes_of_role["worse", ""]
        return not found.admitted()[worse] and better(problem, found, state, unpaid)

    monkeypatch.setattr(vacating, "better", not_worse)
    worse = replace(gang(), id="worse", name="worse")
    where = running(w="x0 x1", v="y0 y1")
    _, view = after(planned(racks(x=2, y=2, z=1), [*ones(w=2, v=2), gang(), worse], where))
    assert len(on(view, "gang")) == 2
    assert not on(view, "worse")


def graded(seed: int) -> Spec:
    """Return a random Spec of gangs with priorities, some of whose work gives way."""
    rng = Random(f"graded {seed}")
    base = tiny_gangs(seed)
    work = [
        replace(each, priority=rng.choice((100, 500, 900)), preemptible=rng.random() < 0.5) for each in base.workloads
    ]
    return replace(base, workloads=tuple(work))


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the search from solving the whole at once."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("seed", range(60))
def test_plans_of_random_gangs_stand_where_nodes_are_vacated(seed: int) -> None:
    spec = graded(seed)
    plan = solve(spec, Limits(work=0.5))
    if plan.outcome.status in ("feasible", "optimal"):
        assert verify(spec, plan).ok
