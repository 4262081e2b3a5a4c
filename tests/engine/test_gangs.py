"""Gangs on tiny ragged trees: the engine's optimum is brute force's, tier by tier, and its plans verify."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.oracle.sample import Case, cases
from tests.support.specs import CARD, make_spec, node, place, replica, request, role, workload
from tests.support.tiny_gangs import LEVELS, in_cores, tiny_gangs
from tests.support.tiny_squads import thin_squads, tiny_squads

from dovetail.engine import solve
from dovetail.engine.construction.construct import construct
from dovetail.model.score import view_of
from dovetail.model.state import today_state
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of, policy_of
from dovetail.rules.topology import Topology as Rule
from dovetail.spec import Group, Node, Spec, Topology, Workload
from dovetail.verify import lines, verify

SLICE = 40
CAMPAIGN_FIRST = int(os.environ.get("DOVETAIL_SEED", "10000"))


@cache
def shared() -> list[Case]:
    """Return the slice."""
    return list(cases(0, SLICE, tiny_gangs))


def best_without_proof(case: Case) -> bool:
    """Tell whether a plan says that it may not be the best one, where groups may run in part, and its bounds hold.

    Rows of groups with a minimum do not tell who is evicted with a group that is given up, so the bound stays below.
    """
    told = {tier.name: tier.value for tier in case.plan.tiers}
    best = case.optimum is not None and (told == case.optimum.by_name or bounds_hold(case, case.optimum.by_name))
    running = {present.replica for present in case.spec.current.replicas}
    loose = [w for w in case.spec.workloads if w.topology is not None and w.topology.loose]
    in_part = any(r in running for workload in loose for r in workload.replica_ids())
    return in_part and best and case.plan.outcome.status == "feasible"


def bounds_hold(case: Case, optimum: Mapping[str, int]) -> bool:
    """Tell whether the bound of the first tier that is not at its optimum leaves room for it."""
    for tier in case.plan.tiers:
        if tier.value != optimum[tier.name]:
            sign = 1 if tier.sense == "max" else -1
            return tier.bound is not None and sign * tier.bound >= sign * optimum[tier.name]
    return True


def faults_of(case: Case) -> list[str]:
    """Return how a case disagrees with brute force or fails to verify."""
    found = [] if best_without_proof(case) else [case.difference()]
    verification = verify(case.spec, case.plan)
    if not verification.ok:
        found.append(f"seed {case.seed}: " + "; ".join(lines(verification)))
    return [fault for fault in found if fault is not None]


def test_the_engine_finds_the_optimum_of_every_tier_and_its_plans_verify() -> None:
    assert [fault for case in shared() for fault in faults_of(case)] == []


def test_a_group_that_lost_its_place_is_replaced_before_another_one_moves() -> None:
    assert [fault for case in cases(11269, 1, tiny_gangs) for fault in faults_of(case)] == []


@pytest.mark.parametrize("seed", [11847, 11929, 12085])
def test_what_runs_in_part_keeps_its_place_where_that_is_best(seed: int) -> None:
    assert [fault for case in cases(seed, 1, tiny_gangs) for fault in faults_of(case)] == []


@pytest.mark.parametrize("seed", [1460, 1607, 1656, 1735, 2196, 2533, 3383])
def test_it_is_known_who_goes_on_where_places_are_shared_and_groups_are_given_up(seed: int) -> None:
    assert [case.difference() for case in cases(seed, 1, in_cores)] == [None]


def test_groups_that_share_a_place_stay_or_go_on_their_own() -> None:
    """One group is torn and cannot go on; the other one stays, though both have a replica at one place."""
    elastic = role("", 4, request(0, cpu=1000), least=2, step=2)
    gang = workload("g", roles=[elastic], topology=Topology(groups=(Group("rack", 2),)), type="gang")
    nodes = [replace(n, cpu=cores * 1000) for n, cores in zip(racks(1, 1, gpus=0), (1, 2), strict=True)]
    running = {"g#0": place("r1-0"), "g#1": place("r0-0"), "g#2": place("r1-0")}
    _, plan = planned(nodes, [replace(gang, min_replicas=2)], running)
    assert plan.placements == {replica("g#2"): place("r1-0"), replica("g#3"): place("r1-0")}


def test_another_group_comes_where_one_that_may_not_move_is_preempted() -> None:
    elastic = role("", 4, request(1), least=2, step=2)
    more: dict[str, Any] = {"topology": Topology(groups=(Group("rack", 2),)), "preemptible": True}
    gang = replace(workload("g", roles=[elastic], type="gang", **more), min_replicas=2)
    high = workload("h", roles=[role("", 2, request(1), accelerators=("L4",))], type="gang", priority=9)
    nodes = [replace(n, accelerator=a) for n, a in zip(racks(1, 1, gpus=2), ("L4", CARD), strict=True)]
    _, plan = planned(nodes, [gang, high], {"g#0": place("r0-0", 0), "g#1": place("r0-0", 1)})
    assert of(plan, "h#0", "h#1", "g#2", "g#3") == ["r0-0", "r0-0", "r1-0", "r1-0"]


@pytest.mark.campaign
@pytest.mark.parametrize("made", [tiny_gangs, in_cores])
@pytest.mark.parametrize("chunk", range(10))
def test_the_engine_finds_the_optimum_on_thousands(chunk: int, made: Callable[[int], Spec]) -> None:
    first = CAMPAIGN_FIRST + chunk * 250
    print(f"seeds {first} to {first + 249}")
    assert [fault for case in cases(first, 250, made) for fault in faults_of(case)] == []


# By hand: what a repair keeps, how an elastic gang grows, what a construction finds at once.


def racks(*sizes: int, gpus: int = 8) -> list[Node]:
    """Return nodes of ragged racks, two racks to a block."""
    where = [(f"b{r // 2}", f"b{r // 2}/r{r}", i) for r, size in enumerate(sizes) for i in range(size)]
    return [node(f"{rack[-2:]}-{i}", gpus, domains={"block": block, "rack": rack}) for block, rack, i in where]


def planned(nodes: list[Node], work: list[Workload], running: Mapping[str, Place] | None = None) -> tuple[Spec, Plan]:
    """Return a Spec and its plan, proved and verified."""
    held = policy_of(work)
    spec = make_spec(nodes, work, [held] if held else [], running=running, levels=LEVELS)
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert verify(spec, plan).ok
    return spec, plan


def of(plan: Plan, *names: str) -> list[str]:
    """Return the nodes of some replicas."""
    return [plan.placements[replica(name)].node for name in names]


ALL = tuple(range(8))
GANG: dict[str, Any] = {"type": "gang", "communicates": True, "checkpoint_every": 600_000}


def test_a_repair_keeps_the_rest_and_replaces_what_failed() -> None:
    gang = workload("g", 4, gpus=8, topology=Topology("block", groups=(Group("rack", 2),)), **GANG)
    running = {f"g#{i}": place(n, *ALL) for i, n in enumerate(("r0-0", "r0-1", "r1-0", "r1-1"))}
    nodes = [replace(n, down=n.name == "r1-1") for n in racks(2, 3, 3)]
    _, plan = planned(nodes, [gang], running)
    assert of(plan, "g#0", "g#1", "g#2", "g#3") == ["r0-0", "r0-1", "r1-0", "r1-2"]
    assert {tier.name: tier.value for tier in plan.tiers}["disruption.moves"] == 0


def test_a_group_moves_as_a_whole_where_its_rack_has_no_room_left() -> None:
    gang = workload("g", 4, gpus=8, topology=Topology(groups=(Group("rack", 2),)), **GANG)
    running = {f"g#{i}": place(n, *ALL) for i, n in enumerate(("r0-0", "r0-1", "r1-0", "r1-1"))}
    nodes = [replace(n, down=n.name == "r1-1") for n in racks(2, 2, 2)]
    _, plan = planned(nodes, [gang], running)
    assert of(plan, "g#0", "g#1", "g#2", "g#3") == ["r0-0", "r0-1", "r2-0", "r2-1"]


@pytest.mark.parametrize(("movable", "wide"), [(False, 4), (True, 8)])
def test_an_elastic_gang_grows_by_steps_as_far_as_there_is_room(movable: bool, wide: int) -> None:
    elastic = role("", 8, request(8), least=2, step=2)
    gang = workload("g", roles=[elastic], topology=Topology("rack"), movable=movable, **GANG)
    running = {"g#0": place("r0-0", *ALL), "g#1": place("r0-1", *ALL)}
    _, plan = planned(racks(5, 8), [replace(gang, min_replicas=2)], running)
    assert len(plan.placements) == wide
    assert movable or of(plan, "g#0", "g#1") == ["r0-0", "r0-1"]


@pytest.mark.parametrize(
    ("others", "wanted", "minutes", "moves"), [([node("b", 2)], 4, 6, 2), ([], 2, 5, 0)], ids=["moves", "stays"]
)
def test_an_elastic_gang_that_shrinks_loses_its_work_once(
    others: list[Node], wanted: int, minutes: int, moves: int
) -> None:
    gang = workload("g", roles=[role("", 4, request(1), least=2, step=2)], preemptible=True, restart=60_000, **GANG)
    work = [replace(gang, min_replicas=2), workload("big", gpus=wanted, priority=9)]
    _, plan = planned([node("a", 4), *others], work, {f"g#{i}": place("a", i) for i in range(4)})
    told = {tier.name: tier.value for tier in plan.tiers}
    assert told["disruption.evicted"] == 1
    assert told["disruption.gpuTimeLost"] == 4 * 1000 * 60 * minutes
    assert told["disruption.moves"] == moves


def test_ranks_follow_the_tree_whatever_the_order_of_nodes() -> None:
    nodes = racks(2, 2)
    mixed = [nodes[0], nodes[2], nodes[1], nodes[3]]
    _, plan = planned(mixed, [workload("g", 4, gpus=8, **GANG)])
    assert of(plan, "g#0", "g#1", "g#2", "g#3") == ["r0-0", "r0-1", "r1-0", "r1-1"]


def test_leaders_are_with_their_workers() -> None:
    parts = [role("lead", 2, request(0)), role("work", 6, request(4))]
    group = Group("rack", roles={"lead": 1, "work": 3})
    _, plan = planned(racks(2, 2), [workload("g", roles=parts, topology=Topology(groups=(group,)), **GANG)])
    for lead, work in ((0, (0, 1, 2)), (1, (3, 4, 5))):
        names = [f"g.lead#{lead}", *(f"g.work#{i}" for i in work)]
        assert len({name[:2] for name in of(plan, *names)}) == 1


def test_a_construction_takes_the_rack_that_fits_best_at_once() -> None:
    work = [workload(f"g{n}", n, gpus=8, topology=Topology("rack"), **GANG) for n in (2, 3, 5, 7)]
    held = policy_of(work)
    assert held is not None
    spec = make_spec(racks(7, 3, 5, 2), work, [held], levels=LEVELS)
    problem = compile_problem(context_of(spec))
    view = view_of(problem, construct(problem, today_state(problem), Stop()))
    assert len(view.places) == 17


def test_the_verifier_catches_gangs_where_models_forget_them(monkeypatch: pytest.MonkeyPatch) -> None:
    gang = workload("g", 4, gpus=8, topology=Topology("rack"), type="gang")
    held = policy_of([gang])
    assert held is not None
    spec = make_spec(racks(3, 3), [gang], [held], levels=LEVELS)
    assert solve(spec).placements == {}
    monkeypatch.setattr(Rule, "encode", lambda self, part, scope: {})
    broken = verify(spec, solve(spec))
    assert {check.name for check in broken.checks if not check.ok} == {"hard-policies"}


# Groups that may be there in part (decision 0048).


def squads(count: int, *groups: Group, **more: Any) -> Workload:
    """Return a gang of one role in groups, with the floors that these give it."""
    nest = Topology(groups=groups).nests[0]
    least = nest.floor("", count, True)
    own = role("", count, request(4), least=least, step=nest.unit(""))
    gang = workload("g", roles=[own], topology=Topology(groups=groups), **{**GANG, **more})
    return replace(gang, min_replicas=least or 0)


EIGHTS = (Group("rack", 8), Group("node", 2, minimum=3))


def test_groups_fill_up_as_far_as_there_is_room_and_each_has_its_minimum() -> None:
    _, plan = planned(racks(4, 3, 2), [squads(16, *EIGHTS)])
    own = of(plan, *(str(each) for each in plan.placements))
    assert (len(own), sum(name.startswith("r0") for name in own), sum(name.startswith("r1") for name in own)) == (
        14,
        8,
        6,
    )
    assert [each.ordinal for each in plan.placements if plan.placements[each].node.startswith("r1")] == list(
        range(8, 14)
    )


def test_a_gang_without_its_minimum_in_every_group_is_not_admitted_at_all() -> None:
    _, plan = planned(racks(4, 2, 2), [squads(16, *EIGHTS)])
    assert not plan.placements


FOURS = (Group("rack", 8), Group("node", 2, minimum=2))


@pytest.mark.parametrize(("rest", "minimum", "admitted"), [(2, None, 0), (3, None, 30), (2, 3, 24), (2, 4, 0)])
def test_three_full_groups_do_not_stand_for_four_that_must_be_there(
    rest: int, minimum: int | None, admitted: int
) -> None:
    """Three racks have room for eight each, as many as four groups have at the least."""
    _, plan = planned(racks(4, 4, 4, rest), [squads(32, replace(EIGHTS[0], minimum=minimum), EIGHTS[1])])
    assert len(plan.placements) == admitted


def test_in_one_rack_as_many_places_are_named_for_as_many_groups_as_must_be_there() -> None:
    """A rack with room for twelve holds one full group and half of another, or three halves."""
    _, plan = planned(racks(6), [squads(24, *FOURS)])
    assert [sum(each.ordinal // 8 == group for each in plan.placements) for group in range(3)] == [4, 4, 4]


def test_what_runs_of_too_few_groups_competes_anew() -> None:
    """One of two groups has lost its rack: what is left would be enough replicas, but not enough groups."""
    running = {f"g#{i}": place(f"r0-{i // 2}", *range(4 * (i % 2), 4 * (i % 2) + 4)) for i in range(8)}
    urgent = workload("urgent", 4, gpus=8, priority=9, type="gang")
    _, plan = planned(racks(4, 1), [squads(16, *FOURS), urgent], running)
    assert {each.workload for each in plan.placements} == {"urgent"}


def test_groups_that_lost_their_places_come_back_to_where_there_is_most_room() -> None:
    """Of the group of which two ran both come back, in the rack of two; the other rack has room for one."""
    groups = Group("rack", 2), Group("node", 1, minimum=1)
    running = {f"g#{i}": place("gone", i) for i in range(2)}
    nodes = [*racks(1, 2, gpus=4), node("gone", 4, down=True, domains={"block": "b9", "rack": "b9/r9"})]
    nodes = [replace(each, gpus=1) if each.name != "gone" else each for each in nodes]
    gang = squads(4, *groups)
    gang = replace(gang, roles=(replace(gang.roles[0], request=request(1)),))
    _, plan = planned(nodes, [gang], running)
    assert of(plan, "g#0", "g#1") == ["r1-0", "r1-1"]


@pytest.mark.parametrize("movable", [True, False])
def test_who_lost_its_place_is_replaced_before_another_one_moves(movable: bool) -> None:
    """Beside what runs in the rack of two one place is free: for the lost one, not for one of another rack."""
    own = role("", 4, request(8), least=2, step=2)
    job = workload("w", roles=[own], type="job", topology=Topology("rack"), movable=movable, min_replicas=2)
    running = {f"w#{i}": place(n, *ALL) for i, n in enumerate(("r0-0", "r1-0", "r2-0", "r3-0"))}
    nodes = [replace(n, down=n.name == "r3-0") for n in racks(2, 1, 1, 1)]
    _, plan = planned(nodes, [job], running)
    assert {str(each): at.node for each, at in plan.placements.items()} == {"w#0": "r0-0", "w#3": "r0-1"}
    assert plan.summary["moves"] == 0


def test_neighbours_in_rank_are_in_one_island_whatever_its_gpus() -> None:
    odd = (0, 2), (1, 3)
    nodes = [replace(each, islands=odd, sockets=odd) for each in racks(2, gpus=4)]
    _, plan = planned(nodes, [workload("g", 8, gpus=1, **GANG)])
    found = [plan.placements[replica(f"g#{i}")] for i in range(8)]
    assert [at.gpus[0] for at in found] == [0, 2, 1, 3] * 2
    assert [at.node for at in found] == ["r0-0"] * 4 + ["r0-1"] * 4


def test_a_group_that_loses_a_pair_goes_on_with_the_others() -> None:
    running = {f"g#{i}": place(f"r0-{i // 2}", *range(4 * (i % 2), 4 * (i % 2) + 4)) for i in range(8)}
    nodes = [replace(n, down=n.name == "r0-1") for n in racks(4, 2)]
    _, plan = planned(nodes, [squads(8, *EIGHTS)], running)
    assert [each.ordinal for each in plan.placements] == [0, 1, 4, 5, 6, 7]


def test_three_levels_have_minima_of_their_own() -> None:
    groups = (Group("block", 8), Group("rack", 4, minimum=1), Group("node", 2, minimum=1))
    _, plan = planned(racks(1, 0, 2), [squads(16, *groups)])
    assert sorted(of(plan, *(str(each) for each in plan.placements))) == ["r0-0"] * 2 + ["r2-0"] * 2 + ["r2-1"] * 2


@cache
def partly_there() -> list[Case]:
    """Return the slice of groups that may be there in part."""
    return list(cases(0, 8, tiny_squads))


def test_groups_that_may_be_there_in_part_are_planned_as_brute_force_does() -> None:
    assert [fault for case in partly_there() for fault in faults_of(case)] == []


def test_as_many_groups_are_there_as_must_be_as_brute_force_says() -> None:
    assert [fault for case in cases(0, 20, thin_squads) for fault in faults_of(case)] == []


@pytest.mark.parametrize("seed", [3102, 3360, 3936, 4146, 5379])
def test_groups_in_part_have_a_home_each_and_names_are_no_worse_than_what_was_known(seed: int) -> None:
    assert [fault for case in cases(seed, 1, tiny_squads) for fault in faults_of(case)] == []


@pytest.mark.campaign
@pytest.mark.parametrize("chunk", range(4))
def test_groups_that_may_be_there_in_part_agree_on_hundreds(chunk: int) -> None:
    first = CAMPAIGN_FIRST + chunk * 100
    for draw in (tiny_squads, thin_squads):
        assert [fault for case in cases(first, 100, draw) for fault in faults_of(case)] == []


def test_construction_seats_groups_within_islands_at_once() -> None:
    halves = (tuple(range(4)), tuple(range(4, 8)))
    nodes = [replace(each, islands=halves) for each in racks(2, 2)]
    threes = workload("threes", 12, gpus=1, topology=Topology(groups=(Group("island", 3),)), **GANG)
    tight = workload("tight", 2, gpus=2, topology=Topology("island"), **GANG)
    work = [with_levels(threes), with_levels(tight)]
    held = policy_of(work)
    problem = compile_problem(context_of(make_spec(nodes, work, [held] if held else [], levels=LEVELS)))
    view = view_of(problem, construct(problem, today_state(problem), Stop()))
    assert len(view.places) == 14
    assert not Rule().check(view, problem.context.scopes["workload-topology"])


def with_levels(gang: Workload) -> Workload:
    """Return a gang whose replicas keep within an island each, as documents make them."""
    roles = tuple(replace(each, request=replace(each.request, within=("island",))) for each in gang.roles)
    return replace(gang, roles=roles)


@pytest.mark.parametrize("stays", [0, 1])
def test_a_group_of_which_somebody_runs_and_may_not_move_is_nowhere_else(stays: int) -> None:
    """Where one group has room goes on who runs there, be it the first one or not; the other one cannot."""
    groups = Topology(groups=(Group("rack", 2),))
    gang = workload("g", roles=[role("", 4, request(1), least=2, step=2)], topology=groups, type="gang")
    nodes = [*racks(1, gpus=1), *racks(0, 1, gpus=2)]
    ends, goes_on = f"g#{2 * (1 - stays)}", f"g#{2 * stays}"
    running = {ends: place("r0-0", 0), goes_on: place("r1-0", 0)}
    work = [replace(gang, min_replicas=2)]
    held = policy_of(work)
    assert held is not None
    spec = make_spec(nodes, work, [held], running=running, levels=LEVELS)
    plan = solve(spec)
    assert plan.placements == {replica(goes_on): place("r1-0", 0), replica(f"g#{2 * stays + 1}"): place("r1-0", 1)}
    assert verify(spec, plan).ok


@pytest.mark.parametrize(("gpus", "there"), [(1, 2), (2, 4)])
def test_a_gang_of_any_width_is_placed_in_the_level_that_it_demands(gpus: int, there: int) -> None:
    gang = workload("g", roles=[role("", 4, request(1), least=0, step=2)], topology=Topology("rack"), type="gang")
    work = [replace(gang, min_replicas=0)]
    held = policy_of(work)
    assert held is not None
    spec = make_spec(racks(2, gpus=gpus), work, [held], levels=LEVELS)
    plan = solve(spec)
    assert len(plan.placements) == there
    assert verify(spec, plan).ok
