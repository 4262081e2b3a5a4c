"""Nodes are planned anew with all that runs on them: nobody is lost who must stay, and who need not move does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.support.mixed_specs import mixed
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import make_spec, node, place, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import ladder, repacking, solve
from dovetail.engine.budget import Budget
from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.staying import settled_on
from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.engine.generation.released import Released, movable_of
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import NO_GPU, Fill, Slot, State, today_state
from dovetail.placement import Place
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of
from dovetail.rules.move import Move
from dovetail.rules.spread import Spread
from dovetail.spec import EqualParts, Node, Policy, Setting, Spec, Workload, WorkloadSelector
from dovetail.verify import verify

OLD, NEW = "A100-40GB", "H100-80GB"


def fleet(old: int = 16, new: int = 2, gpus: int = 8) -> list[Node]:
    """Return nodes of two kinds: old ones with two GPUs, new ones with more."""
    few = [node(f"old{i:02}", 2, accelerator=OLD) for i in range(old)]
    return [*few, *(node(f"new{i}", gpus, accelerator=NEW) for i in range(new))]


def half_full(spots: int = 16, *, big: int = 2, policies: Sequence[Policy] = (), **more: object) -> Spec:
    """Return old nodes with an idle GPU each, new ones full of what may be on either, and work for whole new ones."""
    anywhere = workload("anywhere", spots, gpus=1, **more)  # type: ignore[arg-type]
    held = workload("held", 16, gpus=1, accelerators=(OLD,))
    where = {f"anywhere#{i}": place(f"new{i // 8}", i % 8) for i in range(spots)}
    where |= {f"held#{i}": place(f"old{i:02}", 0) for i in range(16)}
    work = [anywhere, held, workload("big", big, gpus=8, priority=900, accelerators=(NEW,))]
    return make_spec(fleet(), work, policies, running=where)


def begun(spec: Spec) -> tuple[Problem, State]:
    problem = compile_problem(context_of(spec))
    return problem, legalise(problem, construct(problem, today_state(problem), Stop()))


def planned(spec: Spec) -> tuple[Problem, list[State]]:
    """Return the states that nodes planned anew come to from what construction begins; no move is limited."""
    problem, state = begun(spec)
    movable = movable_of(problem, state)
    assert movable is not None
    rows = FleetBounds(problem, Stop()).rows
    found = Released(problem, state, rows, Stop(), state, movable=movable).run(Budget(20.0, None))
    states = [legalise(problem, each) for each in found]
    for each in states:
        view = view_of(problem, each)
        assert sound(problem, view)
        assert not debt(problem, view, hard_policies(problem))
    return problem, states


def values(problem: Problem, state: State) -> dict[str, int]:
    view = view_of(problem, state)
    return {tier.name: tier.measure(view, problem.context) for tier in problem.tiers}


def test_all_make_way_at_once_and_nobody_else_moves() -> None:
    problem, (*_, state) = planned(half_full())
    told = values(problem, state)
    assert told["admitted[900]"] == 16_000
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 16)


def test_what_is_protected_comes_before_all_that_waits() -> None:
    """Nothing of the lowest band may go, whatever a higher one would gain: two GPUs of old nodes are too few."""
    spec = half_full(18, big=2)
    where = {f"anywhere#{i}": place(f"new{i // 8}", i % 8) for i in range(16)} | {
        "anywhere#16": place("old00", 1),
        "anywhere#17": place("old01", 1),
        **{f"held#{i}": place(f"old{i:02}", 0) for i in range(16)},
    }
    problem, (*_, state) = planned(make_spec(spec.cluster.nodes, spec.workloads, running=where))
    told = values(problem, state)
    assert told["admitted[0]"] == 34_000
    assert told["admitted[900]"] == 8_000
    assert told["disruption.evicted"] == 0


def test_a_mixture_leaves_nobody_out_who_is_protected_for_work_that_is_worth_more_per_gpu() -> None:
    """What runs on the new node is worth little, and what waits for it a hundred times what its GPUs usually are."""
    where = {f"low#{i}": place("new0", i) for i in range(8)}
    low = workload("low", 8, gpus=1, value=1, accelerators=(NEW,))
    big = workload("big", 1, gpus=8, priority=900, value=800_000, accelerators=(NEW,))
    problem, state = begun(make_spec(fleet(2, 1), [low, big], running=where))
    movable = movable_of(problem, state)
    assert movable is not None
    released = Released(problem, state, FleetBounds(problem, Stop()).rows, Stop(), state, movable=movable)
    list(released.run(Budget(20.0, None)))
    assert [released.planned[s] for s in problem.shapes_of_workload["low"]] == [8]


def test_what_may_not_move_stays() -> None:
    problem, states = planned(half_full(movable=False))
    assert all(values(problem, state)["disruption.moves"] == 0 for state in states)
    assert all(values(problem, state)["admitted[900]"] == 0 for state in states)


def test_nothing_is_planned_anew_where_moves_are_limited() -> None:
    problem, state = begun(half_full(policies=[policy("few", Move(max_moves=20))]))
    assert movable_of(problem, state) is None
    problem, state = begun(half_full(policies=[policy("soft", Move(max_moves=20), enforcement="audit")]))
    assert movable_of(problem, state) == frozenset(shape.index for shape in problem.shapes)


def test_nodes_stay_where_what_they_hold_could_not_be_spread_evenly_otherwise() -> None:
    """A node that is planned anew gives way to a higher band, and domains beside it hold what must be even."""
    even = policy("even", Spread(over="node", max_skew=1), workloads=WorkloadSelector(names=("even",)))
    work = [
        workload("even", 6, gpus=1),
        workload("pinned", 1, gpus=1, movable=False),
        workload("free", 1, gpus=1),
        workload("big", 3, gpus=1, priority=900),
    ]
    today = {"pinned#0": place("a", 0), "free#0": place("b", 0)}
    problem = compile_problem(context_of(make_spec([node("a", 4), node("b", 4)], work, [even], running=today)))
    slot = Slot(next(s.index for s in problem.shapes if s.workload.id == "even"), NO_GPU)
    begin = today_state(problem)
    fills = {i: Fill(begin.fill(i).slots + Counter({slot: 3}), begin.fill(i).kept) for i in (0, 1)}
    state = begin.with_fills(fills)
    rows = FleetBounds(problem, Stop()).rows
    movable = movable_of(problem, state)
    assert movable is not None
    released = Released(problem, state, rows, Stop(), state, movable=movable)
    assert [lot.nodes for lot in released.rows.lots] == [(1,)]
    found = released.filled([])
    assert not debt(problem, view_of(problem, found), hard_policies(problem))
    assert found.admitted()[slot.shape] == 6


def settled(today: Mapping[str, Place], work: Iterable[Workload], wanted: Mapping[tuple[str, int], int]) -> Fill:
    """Return what `settled_on` makes of a node; `wanted` counts replicas by workload and GPU, -1 for whole ones."""
    problem = compile_problem(context_of(make_spec([node("n", 4)], work, running=today)))
    shape = {s.workload.id: s.index for s in problem.shapes}
    fill = Fill()
    for (name, gpu), count in wanted.items():
        fill.slots[Slot(shape[name], gpu)] += count
    return settled_on(problem, 0, fill)


def test_shares_stay_on_the_gpu_where_the_like_share_one() -> None:
    work = [workload("s", 4, share=250), workload("t", 2, share=500)]
    today = {"s#0": place("n", 3), "s#1": place("n", 3), "t#0": place("n", 1)}
    found = settled(today, work, {("s", 0): 3, ("t", 2): 1})
    assert sorted((slot.gpu, n) for slot, n in found.slots.items()) == [(1, 1), (3, 3)]
    assert sorted((each.gpus, n) for each, n in found.kept.items()) == [((1,), 1), ((3,), 2)]


def test_shares_that_come_leave_whole_gpus_to_those_who_have_them() -> None:
    work = [workload("w", 2, gpus=1), workload("s", 1, share=250)]
    found = settled({"w#0": place("n", 0), "w#1": place("n", 1)}, work, {("w", -1): 2, ("s", 0): 1})
    assert sorted(each.gpus for each in found.kept) == [(0,), (1,)]
    assert {slot.gpu for slot in found.slots} == {-1, 2}


def test_who_is_wanted_no_longer_is_not_kept() -> None:
    work = [workload("w", 2, gpus=2), workload("c", 3)]
    today = {"w#0": place("n", 0, 1), "w#1": place("n", 2, 3), "c#0": place("n"), "c#1": place("n")}
    found = settled(today, work, {("w", -1): 1, ("c", -1): 3})
    assert sorted((each.gpus, n) for each, n in found.kept.items()) == [((), 2), ((0, 1), 1)]


@pytest.mark.parametrize(("clients", "kept"), [(2, 2), (3, 0)])
def test_clients_of_gpus_that_are_set_anew_are_not_in_place(clients: int, kept: int) -> None:
    desk = node("n", 2, mechanism="devicePlugin", sharing=EqualParts())
    today = {"s#0": place("n", 1), "s#1": place("n", 1)}
    spec = make_spec([desk], [workload("s", 4, share=250)], running=today)
    spec = replace(spec, current=replace(spec.current, settings={"n/1": Setting("mps", 2)}))
    fill = Fill(Counter({Slot(0, 0): clients}))
    found = settled_on(compile_problem(context_of(spec)), 0, fill)
    assert found.slots == {Slot(0, 1): clients}
    assert found.kept.total() == kept


@pytest.fixture
def at_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nodes be planned anew on fleets of any size, however little waits, and nothing be solved exactly."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    for module in (ladder, repacking):
        monkeypatch.setattr(module, "EXACT_VARIABLES", 0)
    monkeypatch.setattr(repacking, "MUCH", -1.0)


@pytest.mark.usefixtures("at_all_events")
@pytest.mark.parametrize("family", [tiny, mixed, tiny_sharing])
def test_random_plans_verify(family: object) -> None:
    for seed in range(12):
        spec: Spec = family(seed)  # type: ignore[operator]
        source = Random(f"released {seed}")
        work = [
            replace(w, priority=source.choice((100, 500, 900)), preemptible=source.random() < 0.5)
            for w in spec.workloads
            if not w.holds
        ]
        spec = replace(spec, workloads=tuple(work))
        plan = solve(spec, Limits(work=0.3))
        assert plan.outcome.status in ("feasible", "optimal", "unknown", "infeasible")
        assert plan.outcome.status in ("unknown", "infeasible") or verify(spec, plan).ok
