"""What runs goes back to its place where that is free, once a search is over; plans of parts alone verify."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from tests.support.medium_specs import medium
from tests.support.mig_specs import card, mig_request, tiny_mig
from tests.support.mixed_specs import mixed
from tests.support.specs import make_spec, node, place, policy, workload
from tests.support.tiny_squads import tiny_squads

from dovetail.engine import ladder, solve
from dovetail.engine.bounds import Bounds
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.returning import free_spots, returned, stayed
from dovetail.engine.going_back import go_back
from dovetail.engine.incumbent import forget
from dovetail.engine.record import Record
from dovetail.mig import parse_instance
from dovetail.model.score import hard_policies, owed, view_of
from dovetail.model.state import Fill, Slot, State, slot_of, today_state
from dovetail.placement import Place
from dovetail.problem import Present, Problem, compile_problem
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.rules.survive import Survive
from dovetail.spec import (
    Cluster,
    Current,
    Group,
    Node,
    PresentReplica,
    ReplicaId,
    Request,
    Role,
    Spec,
    Topology,
    Workload,
    WorkloadSelector,
)
from dovetail.spec.cluster import Unit
from dovetail.verify import lines, verify


def problem_of(work: list[Workload], running: dict[str, Place], nodes: int = 2) -> Problem:
    return compile_problem(context_of(make_spec([node(f"n{i}", 2) for i in range(nodes)], work, running=running)))


def back(problem: Problem, state: State) -> State:
    found = returned(problem, state, free_spots(problem, state), Stop())
    assert found is not None
    return found


def moves(problem: Problem, state: State) -> int:
    view = view_of(problem, state)
    return sum(len(view.moved(workload)) for workload in problem.spec.workloads)


def without(state: State, index: int, where: Present) -> State:
    """Return a state without one replica that stays on its place."""
    fill = state.fill(index).copy()
    fill.kept[where] -= 1
    fill.slots[Slot(where.shape)] -= 1
    return state.with_fills({index: Fill(+fill.slots, +fill.kept)})


def test_who_was_evicted_though_there_is_room_goes_back() -> None:
    running = {f"w#{i}": place(f"n{i}", 0, 1) for i in (0, 1)}
    problem = problem_of([workload("w", 2, gpus=2, preemptible=True)], running)
    today = today_state(problem)
    (where,) = problem.present[0]
    evicted = without(today, 0, where)
    assert sum(evicted.admitted().values()) == 1
    after = back(problem, evicted)
    assert sum(after.admitted().values()) == 2
    assert moves(problem, after) == 0


def test_who_was_to_move_stays_where_it_runs() -> None:
    problem = problem_of([workload("w", 1, gpus=2)], {"w#0": place("n0", 0, 1)})
    (where,) = problem.present[0]
    moved = without(today_state(problem), 0, where)
    elsewhere = Fill()
    elsewhere.slots[Slot(where.shape)] = 1
    moved = moved.with_fills({1: elsewhere})
    assert moves(problem, moved) == 1
    assert moves(problem, back(problem, moved)) == 0


def test_gangs_go_back_as_a_whole_or_not_at_all() -> None:
    gang = workload("g", 2, gpus=2, type="gang", preemptible=True)
    running: dict[str, Place] = {f"g#{i}": place(f"n{i}", 0, 1) for i in (0, 1)}
    problem = problem_of([gang, workload("v", 1, gpus=1, priority=9)], running)
    shape = problem.shapes_of_role["v", ""]
    away = State()
    assert sum(back(problem, away).admitted().values()) == 2
    other = Fill()
    other.slots[Slot(shape)] = 1
    taken = away.with_fills({1: other})
    assert returned(problem, taken, free_spots(problem, taken), Stop()) is None


@pytest.mark.parametrize("work", [workload("w", 3, gpus=1), workload("w", 3, share=600)], ids=["whole", "share"])
def test_who_came_where_an_equal_one_left_is_that_one(work: Workload) -> None:
    """Two run, one moved away, and the one that waited came to that very place: nobody needs to move."""
    running = {f"w#{i}": place("n1", i) for i in (0, 1)}
    problem = problem_of([work], running)
    today = today_state(problem)
    fill = today.fill(1).copy()
    left = next(present for present in problem.present[1] if present.gpus == (1,))
    fill.kept[left] -= 1
    elsewhere = Fill(Counter({slot_of(problem, 0, left): 1}))
    state = today.with_fills({0: elsewhere, 1: Fill(fill.slots, +fill.kept)})
    assert moves(problem, state) == 1
    after = stayed(problem, state)
    assert (moves(problem, after), after.admitted()) == (0, state.admitted())
    assert stayed(problem, after) is after


def test_in_a_gang_of_groups_nobody_is_taken_for_another() -> None:
    groups = Topology(groups=(Group("node", of=2),))
    gang = workload("g", 4, gpus=1, type="gang", topology=groups)
    running = {"g#0": place("n0", 0), "g#1": place("n0", 1), "g#2": place("n1", 0), "g#3": place("n1", 1)}
    problem = problem_of([gang], running)
    fill = today_state(problem).fill(0).copy()
    fill.kept.clear()
    state = today_state(problem).with_fills({0: fill})
    assert stayed(problem, state) is state


def test_who_came_to_the_instance_that_an_equal_one_left_is_that_one() -> None:
    one = card("A30-24GB")
    work = [Workload("w", "", "w", "job", (Role("", 3, mig_request("A30-24GB", "1g.6gb"), 1),))]
    rows = tuple(PresentReplica(ReplicaId("w", "", i), "n1", (0,), f"1g.6gb@{i}") for i in (0, 1))
    layout = tuple(parse_instance(f"1g.6gb@{i}") for i in range(4))
    nodes = tuple(Node(f"n{i}", "g", 10_000, 4096, 1, "A30-24GB") for i in (0, 1))
    cluster = Cluster("c", ("node",), nodes, reconfiguration="gpu")
    spec = Spec("s", cluster, {one.name: one}, tuple(work), current=Current(rows, gpus={"n1/0": layout}))
    problem = compile_problem(context_of(spec))
    fill = today_state(problem).fill(1).copy()
    left = next(present for present in problem.present[1] if present.instance == "1g.6gb@1")
    fill.kept[left] -= 1
    elsewhere = Fill(Counter({slot_of(problem, 0, left): 1}))
    state = today_state(problem).with_fills({0: elsewhere, 1: Fill(fill.slots, +fill.kept)})
    assert moves(problem, state) == 1
    assert moves(problem, stayed(problem, state)) == 0


def beside_cut_gpus(unit: Unit, *, stays: bool = True) -> tuple[Problem, State]:
    """Return two nodes that are cut in part, of which whoever else ran on the first one has left for the second."""
    one = card("A30-24GB")
    part, whole = mig_request("A30-24GB", "1g.6gb"), Request(gpus=1)
    asked = {"stays": Role("", 1, part, 1), "part": Role("", 1, part, 1), "whole": Role("", 1, whole, 1)}
    work = tuple(Workload(name, "", name, "job", (role,)) for name, role in sorted(asked.items()))
    ran = {"stays": ((0,), "1g.6gb@0"), "part": ((0,), "1g.6gb@1"), "whole": ((1,), "")}
    rows = tuple(PresentReplica(ReplicaId(name, "", 0), "n0", *ran[name]) for name in sorted(ran))
    layout = tuple(parse_instance(f"1g.6gb@{i}") for i in range(4))
    nodes = tuple(Node(f"n{i}", "g", 10_000, 4096, 2, "A30-24GB") for i in (0, 1))
    cluster = Cluster("c", ("node",), nodes, reconfiguration=unit)
    spec = Spec("s", cluster, {one.name: one}, work, current=Current(rows, gpus={"n0/0": layout}))
    problem = compile_problem(context_of(spec))
    fill, elsewhere = today_state(problem).fill(0).copy(), Fill()
    for left in problem.present[0]:
        if not stays or problem.shapes[left.shape].workload.id != "stays":
            fill.kept[left] -= 1
            fill.slots[slot_of(problem, 0, left)] -= 1
            elsewhere.slots[slot_of(problem, 1, left)] += 1
    return problem, today_state(problem).with_fills({0: Fill(+fill.slots, +fill.kept), 1: elsewhere})


@pytest.mark.parametrize("unit", ["node", "gpu", "instance"])
def test_who_ran_on_a_node_with_cut_gpus_goes_back_to_its_gpu_or_instance(unit: Unit) -> None:
    problem, state = beside_cut_gpus(unit)
    assert moves(problem, state) == 2
    after = back(problem, state)
    assert moves(problem, after) == 0
    assert after.fill(0).kept == today_state(problem).fill(0).kept


def test_nobody_goes_back_where_another_layout_of_the_node_may_restart_all() -> None:
    problem, state = beside_cut_gpus("node", stays=False)
    assert returned(problem, state, free_spots(problem, state), Stop()) is None


def test_nobody_goes_back_to_an_instance_that_others_are_on() -> None:
    problem, state = beside_cut_gpus("gpu")
    field = Field(problem, state)
    for instance in (parse_instance(f"1g.6gb@{start}") for start in range(1, 4)):
        assert field.cuts.may_stay(0, 0, instance)
        field.cuts.stay(0, 0, instance)
        assert not field.cuts.may_stay(0, 0, instance)
    assert not field.cuts.may_stay(0, 0, parse_instance("2g.12gb@0"))
    assert not field.cuts.may_stay(0, 1, parse_instance("1g.6gb@0"))


def test_nothing_goes_back_where_others_are() -> None:
    work = [workload("w", 1, gpus=2, preemptible=True), workload("v", 1, gpus=1, priority=9)]
    problem = problem_of(work, {"w#0": place("n0", 0, 1)}, 1)
    other = Fill()
    other.slots[Slot(problem.shapes_of_role["v", ""])] = 1
    taken = State().with_fills({0: other})
    assert returned(problem, taken, free_spots(problem, taken), Stop()) is None


ALONE = [
    (tiny_mig, 339, 0.01),
    (tiny_squads, 69, 0.05),
    (mixed, 983922, 0.1),
    (mixed, 985169, 0.1),
    (medium, 107, 0.02),
]


@pytest.mark.parametrize(("made", "seed", "work"), ALONE)
def test_plans_of_parts_alone_verify(
    monkeypatch: pytest.MonkeyPatch, made: Callable[[int], Spec], seed: int, work: float
) -> None:
    """A share came back to a GPU as an instance that it had tried; names moved who may not be moved.

    Nothing is left to decide where no GPU can be cut for anybody; no LP tells what idle GPU is good for beside held
    places; who gives way together may be away from all nodes while others are looked at.
    """
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)
    spec = made(seed)
    found = verify(spec, solve(spec, Limits(work=work)))
    assert found.ok, list(lines(found))


def test_who_moved_goes_back_where_a_failure_takes_nobody_though_no_gpu_is_idle() -> None:
    """Each node has half a GPU in use once `w` is back, so that `web` restarts beside another wherever it fails."""
    work = [
        workload("web", share=500, type="service"),
        workload("w", share=500, checkpoint_every=3600),
        workload("new", share=500),
    ]
    rule = policy("any-node", Survive(of="node"), workloads=WorkloadSelector(names=("web",)))
    running = {"web#0": place("n0", 0), "w#0": place("n1", 0)}
    nodes = [node(f"n{i}", 1) for i in range(3)]
    problem = compile_problem(context_of(make_spec(nodes, work, [rule], running=running)))
    web, w, new = (Slot(problem.shapes_of_role[name, ""], 0) for name in ("web", "w", "new"))
    stays = today_state(problem).fill(0)
    best = Record(problem, Bounds(problem, Stop()), Reporter(), forget, 0.0)
    best.state = State({0: stays, 2: Fill(Counter({w: 1, new: 1}))})
    assert stays.slots == {web: 1}
    assert returned(problem, best.state, free_spots(problem, best.state), Stop()) is None
    go_back(best, Stop())
    assert moves(problem, best.state) == 0
    assert best.state.admitted().total() == 3
    assert not owed(problem, best.state, hard_policies(problem))
