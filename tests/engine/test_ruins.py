"""Ruin and recreate: what came anew is placed so that more is admitted or less is useless; nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from tests.oracle.test_fragmentation import judged
from tests.support.crowded_specs import crowded
from tests.support.mig_specs import tiny_mig
from tests.support.mixed_specs import mixed
from tests.support.served_specs import rated, served, service
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import make_spec, node, place, policy, request, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.bounds import Bounds
from dovetail.engine.budget import Budget
from dovetail.engine.generation.idle_ruins import IdleRuins
from dovetail.engine.generation.waiting_ruins import WaitingRuins
from dovetail.engine.incumbent import forget
from dovetail.engine.record import Record
from dovetail.engine.recreating import Recreating
from dovetail.engine.start import start
from dovetail.model.legal import legalise
from dovetail.model.score import hard_policies, owed, view_of
from dovetail.model.state import Fill, Slot, State
from dovetail.objectives.fragmentation import Fragmentation
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Reporter, Stop
from dovetail.rules import context_of
from dovetail.rules.quota import Quota
from dovetail.spec import Expected, Objective, Request, Share, Spec
from dovetail.verify import verify

TIERS = ("admitted", "disruption", "fragmentation")
WHOLE_NODES = (Expected(Request(gpus=4), (), 1),)


def useless(problem: Problem, state: State) -> int:
    """Return the value of the tier, as plans tell it."""
    tier = next(tier for tier in problem.tiers if isinstance(tier, Fragmentation))
    return tier.measure(view_of(problem, state), problem.context)


def worth(problem: Problem, state: State) -> list[int]:
    """Return what is admitted, band by band."""
    counted = [tier for tier in problem.tiers if tier.kind == "admitted"]
    return [tier.measure(view_of(problem, state), problem.context) for tier in counted]


def anew(problem: Problem, state: State, number: int, *, in_use: bool = False) -> State:
    ruins = IdleRuins(problem, state, Random(1), in_use=in_use)
    ruins.attempts(number, lambda: False)
    return ruins.state()


@pytest.mark.parametrize("made", [tiny, tiny_mig, tiny_sharing, mixed, crowded])
def test_no_attempt_makes_more_useless_or_changes_what_is_admitted_or_stays(made: Callable[[int], Spec]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(40):
        problem = compile_problem(context_of(judged(made(seed), seed)))
        if not any(isinstance(tier, Fragmentation) for tier in problem.tiers):
            continue
        before, unpaid = start(problem, None, Stop())
        if unpaid:
            continue
        after = anew(problem, before, 60)
        assert after.admitted() == before.admitted(), seed
        assert {n: fill.kept for n, fill in after.fills.items() if fill.kept} == {
            n: fill.kept for n, fill in before.fills.items() if fill.kept
        }, seed
        # Beside instances and clients that stay, patterns may tell less of what is useless than there is.
        if not problem.present:
            seen["judged"] += 1
            seen["better"] += useless(problem, after) < useless(problem, before)
            assert useless(problem, after) <= useless(problem, before), seed
    assert seen["judged"] >= 10, seen


def halves(count: int, nodes: int) -> Problem:
    """Return nodes of four GPUs, on the first of which a replica runs, and shares of half a GPU that come anew."""
    work = [
        workload("runs", roles=[role("", 1, request(2))]),
        workload("new", roles=[role("s", count, Request(share=Share(500, modes=("fraction",))))]),
    ]
    runs = {"runs#0": place("n0", 0, 1)}
    objective = Objective(tiers=TIERS, future_mix=WHOLE_NODES)
    every = [node(f"n{i}", 4, mechanism="fraction") for i in range(nodes)]
    return compile_problem(context_of(make_spec(every, work, objective=objective, running=runs)))


def spread(problem: Problem, count: int) -> State:
    """Return what runs, and a half on each of the nodes after the first."""
    (half,) = (shape.index for shape in problem.shapes if shape.request.share)
    begun, _ = start(problem, None, Stop())
    first = Fill(Counter({s: n for s, n in begun.fill(0).slots.items() if s.shape != half}), begun.fill(0).kept)
    return State({0: first} | {i: Fill(Counter({Slot(half, 0): 1})) for i in range(1, count + 1)})


def test_what_came_anew_goes_beside_what_runs() -> None:
    """Two GPUs of the first node are free, which no whole node is lost by."""
    problem = halves(4, 6)
    after = anew(problem, spread(problem, 4), 200)
    assert [node for node, fill in after.fills.items() if fill.slots] == [0]
    assert useless(problem, after) == 0


def test_where_nodes_cost_none_is_taken_into_use() -> None:
    """The fifth half has no room beside the others, and stays on a node in use."""
    problem = halves(5, 9)
    before = spread(problem, 5)
    after = anew(problem, before, 200, in_use=True)
    assert {n for n, fill in after.fills.items() if fill.slots} <= {
        n for n, fill in before.fills.items() if fill.slots
    }
    assert useless(problem, after) == 1000 * 3 + 500


def thirds() -> Spec:
    """Return three GPUs with shares that run, the first with room for both that come anew; 0.4 are expected."""

    def share(milli: int) -> Request:
        return Request(share=Share(milli, modes=("fraction",)))

    work = [
        workload("most", roles=[role("", 2, share(500))]),
        workload("less", roles=[role("", 1, share(400))]),
        workload("new", roles=[role("n", 2, share(300))]),
    ]
    runs = {"less#0": place("a", 0), "most#0": place("b", 0), "most#1": place("c", 0)}
    objective = Objective(tiers=TIERS, future_mix=(Expected(share(400), (), 1),))
    return make_spec([node(n, 1, mechanism="fraction") for n in "abc"], work, objective=objective, running=runs)


def test_replicas_come_to_a_node_together_that_none_would_come_to_alone() -> None:
    """One on the first GPU leaves 0.3 that is useless, on any other 0.2; two leave nothing there."""
    problem = compile_problem(context_of(thirds()))
    before, _ = start(problem, None, Stop())
    after = anew(problem, before, 60)
    assert (useless(problem, before), useless(problem, after)) == (400, 0)


def test_a_plan_beside_what_runs_is_the_same_each_time_and_holds() -> None:
    plans = [solve(thirds(), Limits(work=1.0)) for _ in range(2)]
    assert plans[0].placements == plans[1].placements
    assert verify(thirds(), plans[0]).ok
    assert next(tier.value for tier in plans[0].tiers if tier.name == "fragmentation") == 0


def in_place(problem: Problem, state: State, number: int) -> State:
    ruins = WaitingRuins(problem, state, Random(1))
    ruins.attempts(number, lambda: False)
    return ruins.state()


@pytest.mark.parametrize("made", [tiny, tiny_mig, tiny_sharing, mixed, crowded, rated])
def test_no_attempt_admits_less_or_breaks_a_rule_or_changes_what_stays(made: Callable[[int], Spec]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(60):
        problem = compile_problem(context_of(made(seed)))
        before, unpaid = start(problem, None, Stop())
        if unpaid:
            continue
        after = legalise(problem, in_place(problem, before, 80))
        assert {n: fill.kept for n, fill in after.fills.items() if fill.kept} == {
            n: fill.kept for n, fill in before.fills.items() if fill.kept
        }, seed
        assert worth(problem, after) >= worth(problem, before), seed
        assert not owed(problem, after, looked_at(problem)), seed
        seen["better"] += worth(problem, after) > worth(problem, before)
    assert seen["better"], seen


def looked_at(problem: Problem) -> frozenset[str]:
    """Return the hard policies that are looked at where replicas are placed, and not where a state is offered."""
    hard = (policy for policy in problem.spec.policies if policy.name in hard_policies(problem))
    return frozenset(p.name for p in hard if not p.rule.searches and p.rule.kind != "admission")


def below_a_limit() -> Spec:
    """Return two nodes of four GPUs, and a quota of six GPUs: two are in use, and work of two GPUs or one waits."""
    work = [
        workload("runs", roles=[role("", 2, request(1))]),
        workload("dear", roles=[role("d", 2, request(2), value=6000)]),
        workload("cheap", roles=[role("c", 4, request(1), value=1000)]),
    ]
    runs = {"runs#0": place("n0", 0), "runs#1": place("n1", 0)}
    policies = [policy("most", Quota((("gpus", 6000),)))]
    return make_spec([node(f"n{i}", 4) for i in range(2)], work, policies=policies, running=runs)


def test_who_waits_takes_the_place_of_who_is_worth_less_below_a_limit_and_nobody_moves() -> None:
    problem = compile_problem(context_of(below_a_limit()))
    by_name = {shape.workload.id: shape.index for shape in problem.shapes}
    begun, _ = start(problem, None, Stop())
    runs, cheap = by_name["runs"], by_name["cheap"]
    worse = State(
        {i: Fill(Counter({Slot(runs): 1, Slot(cheap): 2}), begun.fill(i).kept) for i in range(2)},
    )
    after = in_place(problem, worse, 200)
    assert after.admitted() == {runs: 2, by_name["dear"]: 2}
    assert [fill.kept for fill in after.fills.values()] == [begun.fill(i).kept for i in range(2)]


def test_who_waits_comes_to_a_node_from_which_others_find_a_place_elsewhere() -> None:
    """One of four GPUs has room once those of one GPU are together."""
    work = [workload("large", roles=[role("l", 1, request(4))]), workload("small", roles=[role("s", 4, request(1))])]
    problem = compile_problem(context_of(make_spec([node("a", 4), node("b", 4)], work)))
    large, small = (shape.index for shape in problem.shapes)
    spread = State({i: Fill(Counter({Slot(small): 2})) for i in range(2)})
    assert in_place(problem, spread, 100).admitted() == {large: 1, small: 4}


def one_card() -> tuple[Problem, int, int]:
    """Return a GPU that holds instances for seven of one slice, and two services that ask for all of it each."""
    work = [service(name, 700, {"1g.10gb": 100}, value=value) for name, value in (("cheap", 50), ("dear", 100))]
    problem = compile_problem(context_of(served(1, 1, work)))
    cheap, dear = (shape.index for shape in problem.shapes)
    return problem, cheap, dear


def instances(shapes: Mapping[int, int]) -> State:
    """Return replicas on the smallest instances of the first GPU, so many of each shape."""
    return State({0: Fill(Counter({Slot(shape, 0, "1g.10gb"): count for shape, count in shapes.items()}))})


def test_what_costs_later_bands_little_is_found_before_what_costs_them_much() -> None:
    """A GPU that an earlier band asks for is one of eight that one job has, or of one of eight jobs."""
    work = [workload("all", gpus=8), *(workload(f"one-{i}", gpus=1) for i in range(8))]
    spec = make_spec([node("a"), node("b")], [*work, workload("first", gpus=1, priority=900)])
    problem = compile_problem(context_of(spec))
    slot = {shape.members[0].workload.id: Slot(shape.index) for shape in problem.shapes}
    many = Counter(slot[shape.members[0].workload.id] for shape in problem.shapes if shape.request.gpus == 8)
    ones = Counter({slot["one-0"]: 8})
    dear = 0
    for seed in range(20):
        ruins = WaitingRuins(problem, State({0: Fill(many), 1: Fill(ones)}), Random(seed))
        while ruins.state().admitted()[slot["first"].shape] == 0:
            ruins.attempts(1, lambda: False)
        dear += ruins.state().admitted()[slot["all"].shape] == 0
    assert dear <= 3


def test_who_was_taken_off_for_a_limit_in_vain_is_found_again() -> None:
    """Below its quota `first` has a place only where two others are; who is drawn twice in vain is there again."""
    work = [workload(name, 2, gpus=1, cpu=cpu) for cpu, name in enumerate("abc", 1)]
    nodes = [node("both", 2), *(node(f"n{i}", 1) for i in range(4))]
    quota = policy("quota", Quota((("gpus", 6000),)))
    problem = compile_problem(context_of(make_spec(nodes, [*work, workload("first", gpus=2, priority=900)], [quota])))
    a, b, c = (Slot(problem.shapes_of_role[name, ""]) for name in "abc")
    begun = State({i: Fill(Counter(there)) for i, there in enumerate(((a, b), (a,), (b,), (c,), (c,)))})
    first = problem.shapes_of_role["first", ""]
    for seed in range(12):
        ruins = WaitingRuins(problem, begun, Random(seed))
        ruins.attempts(500, lambda: False)
        assert ruins.state().admitted()[first] == 1, seed


def test_several_that_are_too_small_by_themselves_go_for_one_below_a_limit() -> None:
    work = [workload(f"one-{i}", gpus=1, cpu=i) for i in range(1, 4)]
    quota = policy("quota", Quota((("gpus", 3000),)))
    spec = make_spec([node("a", 2), node("b", 2)], [*work, workload("first", gpus=2, priority=900)], [quota])
    problem = compile_problem(context_of(spec))
    slots = [Slot(problem.shapes_of_role[each.id, ""]) for each in work]
    ruins = WaitingRuins(problem, State({0: Fill(Counter(slots[:2])), 1: Fill(Counter(slots[2:]))}), Random(1))
    assert ruins.attempts(200, lambda: False)
    admitted = ruins.state().admitted()
    assert (admitted[problem.shapes_of_role["first", ""]], admitted.total()) == (1, 2)


def test_nobody_comes_of_a_band_of_which_no_plan_has_more_until_any_of_it_is_lost() -> None:
    """The first band has the only node to itself; one more of it waits, and none of the second ever had a place."""
    work = [workload("first", 3, gpus=1, priority=900), workload("second", 1, gpus=1, accelerators=("L4",))]
    problem = compile_problem(context_of(make_spec([node("a", 2)], work)))
    first = problem.shapes_of_workload["first"][0]
    state = State({0: Fill(Counter({Slot(first): 2}))})
    assert not WaitingRuins(problem, state, Random(1)).over
    band = problem.tiers[0].name
    assert not WaitingRuins(problem, state, Random(1), closed={band}).over  # for the other band
    both = {tier.name for tier in problem.tiers if tier.kind == "admitted"}
    ruins = WaitingRuins(problem, state, Random(1), closed=both)
    assert ruins.over
    ruins.shake(1)
    assert not ruins.over


def test_a_service_that_waits_takes_the_place_of_one_whose_rate_is_worth_less() -> None:
    problem, cheap, dear = one_card()
    assert in_place(problem, instances({cheap: 7}), 200).admitted() == {dear: 7}


def test_a_state_that_lacks_a_little_of_a_band_and_has_more_of_later_ones_is_taken_once_that_is_made_up_for() -> None:
    """The first band lacks a thousandth: that is one replica, in place of one of the seven hundred in the second."""
    work = [workload("first", 1000, gpus=1, priority=900), workload("second", 1000, gpus=1, priority=500)]
    problem = compile_problem(context_of(make_spec([node(f"n{i:03}", 8) for i in range(213)], work)))
    first, second = (shape.index for shape in problem.shapes)
    best = Record(problem, Bounds(problem, Stop()), Reporter(), forget, 0.0)
    best.state = State({i: Fill(Counter({Slot(first): 8})) for i in range(125)})
    nearly = State(
        {
            **{i: Fill(Counter({Slot(first): 8})) for i in range(124)},
            124: Fill(Counter({Slot(first): 7, Slot(second): 1})),
            **{i: Fill(Counter({Slot(second): 8})) for i in range(125, 213)},
        }
    )
    assert not best.offer(nearly)
    assert Recreating(best, Stop()).offered(nearly, Budget(60.0))
    assert best.state.admitted() == {first: 1000, second: 704}


def two_halves(**more: Any) -> Problem:
    """Return two nodes of four GPUs on which two replicas of one GPU run each, and work for a whole node."""
    work = [
        workload("large", roles=[role("l", 1, request(4))]),
        workload("small", roles=[role("s", 4, request(1))], **more),
    ]
    runs = {f"small.s#{i}": place("ab"[i // 2], i % 2) for i in range(4)}
    return compile_problem(context_of(make_spec([node("a", 4), node("b", 4)], work, running=runs)))


def displaced(problem: Problem) -> State:
    before, _ = start(problem, None, Stop())
    ruins = WaitingRuins(problem, before, Random(1), frozenset())
    ruins.attempts(200, lambda: False)
    return ruins.state()


def test_what_runs_makes_way_where_more_is_admitted_and_as_few_move_as_will_do() -> None:
    problem = two_halves()
    large, small = (shape.index for shape in problem.shapes)
    after = displaced(problem)
    assert after.admitted() == {large: 1, small: 4}
    assert sum(fill.kept.total() for fill in after.fills.values()) == 2


def test_who_may_not_move_makes_no_way() -> None:
    problem = two_halves(movable=False)
    assert displaced(problem) == start(problem, None, Stop())[0]


@pytest.mark.parametrize("made", [tiny, tiny_mig, tiny_sharing, mixed, crowded, rated])
def test_nobody_who_runs_is_lost_or_moves_for_nothing(made: Callable[[int], Spec]) -> None:
    for seed in range(40):
        problem = compile_problem(context_of(made(seed)))
        before, unpaid = start(problem, None, Stop())
        if unpaid or not problem.present:
            continue
        after = displaced(problem)
        assert all(after.admitted()[s] >= min(n, before.admitted()[s]) for s, n in problem.running.items()), seed
        assert worth(problem, after) > worth(problem, before) or after.kept() == before.kept(), seed


def test_who_runs_and_has_moved_is_not_lost_to_what_is_worth_more() -> None:
    dearer = workload("dear", roles=[role("d", 2, request(1), value=6000)])
    work = [workload("runs", roles=[role("r", 1, request(1))]), dearer]
    spec = make_spec([node("a", 1), node("b", 1)], work, running={"runs.r#0": place("a", 0)})
    problem = compile_problem(context_of(spec))
    runs, dear = (shape.index for shape in problem.shapes)
    moved = State({0: Fill(Counter({Slot(dear): 1})), 1: Fill(Counter({Slot(runs): 1}))})
    assert in_place(problem, moved, 100).admitted() == {runs: 1, dear: 1}
