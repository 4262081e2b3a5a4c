"""Ruin and recreate: what came anew is placed so that less idle GPU is useless, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from tests.oracle.test_fragmentation import judged
from tests.support.crowded_specs import crowded
from tests.support.mig_specs import tiny_mig
from tests.support.mixed_specs import mixed
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import make_spec, node, place, request, role, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import solve
from dovetail.engine.generation.ruins import Ruins
from dovetail.engine.start import start
from dovetail.model.score import view_of
from dovetail.model.state import Fill, Slot, State
from dovetail.objectives.fragmentation import Fragmentation
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Limits, Stop
from dovetail.rules import context_of
from dovetail.spec import Expected, Objective, Request, Share, Spec
from dovetail.verify import verify

TIERS = ("admitted", "disruption", "fragmentation")
WHOLE_NODES = (Expected(Request(gpus=4), (), 1),)


def useless(problem: Problem, state: State) -> int:
    """Return the value of the tier, as plans tell it."""
    tier = next(tier for tier in problem.tiers if isinstance(tier, Fragmentation))
    return tier.measure(view_of(problem, state), problem.context)


def anew(problem: Problem, state: State, number: int, *, in_use: bool = False) -> State:
    ruins = Ruins(problem, state, Random(1), in_use=in_use)
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
