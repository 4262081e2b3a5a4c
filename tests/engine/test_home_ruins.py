"""Who moved stays where it runs, once what came anew has found other places for that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from tests.support.crowded_specs import crowded
from tests.support.mixed_specs import mixed
from tests.support.ruined import tried
from tests.support.sharing_specs import tiny_sharing
from tests.support.specs import CARD, make_spec, node, place, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine.construction.construct import construct
from dovetail.engine.generation.home_ruins import HomeRuins
from dovetail.model.legal import legalise
from dovetail.model.state import Fill, Slot, State
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.rules.require import Forbid
from dovetail.spec import NodeSelector, Spec

OTHER = "A100-40GB"


def away(problem: Problem, state: State) -> int:
    """Return how many are not where they run today."""
    return sum(problem.running.values()) - sum(Counter(state.kept()).values())


def test_who_moved_stays_once_two_who_came_anew_change_places() -> None:
    """Only `x` and `y` have the card that `lost` needs: it is on `x`, `new` on `y`, and who ran on `x` has moved."""
    work = [
        workload("runs", gpus=1),
        workload("lost", gpus=1, accelerators=(CARD,)),
        workload("new", gpus=1),
    ]
    nodes = [node("x", 1), node("y", 1), node("z", 1, accelerator=OTHER)]
    problem = compile_problem(context_of(make_spec(nodes, work, running={"runs#0": place("x", 0)})))
    runs, lost, new = (Slot(problem.shapes_of_role[name, ""]) for name in ("runs", "lost", "new"))
    begun = State({0: Fill(Counter({lost: 1})), 1: Fill(Counter({new: 1})), 2: Fill(Counter({runs: 1}))})
    assert away(problem, begun) == 1
    ruins = HomeRuins(problem, begun, Random(1))
    assert ruins.attempts(20, lambda: False)
    assert ruins.over
    after = {problem.nodes[index].name: +fill.slots for index, fill in ruins.state().fills.items()}
    assert after == {"x": {runs: 1}, "y": {lost: 1}, "z": {new: 1}}
    assert away(problem, ruins.state()) == 0


@pytest.mark.parametrize(("frugal", "stay"), [(True, {"b"}), (False, {"a", "b"})])
def test_nobody_stays_whom_nodes_cost_more_for_where_that_comes_first(*, frugal: bool, stay: set[str]) -> None:
    """Where `a` ran is idle by now; where `b` ran somebody came who may have its place on `z`."""
    work = [workload(name, 1, gpus=1, cpu=cpu) for cpu, name in enumerate(("a", "b", "rest"), 1)]
    work.append(workload("new", 2, gpus=1))
    nodes = [node(name, gpus, price=10) for name, gpus in (("x", 1), ("y", 2), ("z", 3))]
    where = {f"{name}#0": place(host, 0) for name, host in (("a", "x"), ("b", "y"), ("rest", "z"))}
    problem = compile_problem(context_of(make_spec(nodes, work, running=where)))
    a, b, rest, new = (Slot(problem.shapes_of_role[name, ""]) for name in ("a", "b", "rest", "new"))
    kept = Counter(problem.present[2])
    begun = State({1: Fill(Counter({new: 2})), 2: Fill(Counter({a: 1, b: 1, rest: 1}), kept)})
    ruins = HomeRuins(problem, begun, Random(1), frugal=frugal)
    assert ruins.attempts(100, lambda: False)
    after = ruins.state()
    there = {name for name, slot in (("a", a), ("b", b)) if slot.shape in after.kept()}
    assert there == stay
    assert after.admitted() == begun.admitted()


def test_who_left_a_place_where_a_hard_policy_would_not_have_it_does_not_come_back() -> None:
    drained = policy("drained", Forbid(), nodes=NodeSelector(names=("x",)))
    work = [workload("misplaced", gpus=1), workload("moved", gpus=1)]
    where = {"misplaced#0": place("x", 0), "moved#0": place("y", 0)}
    nodes = [node("x", 1), node("y", 1), node("z", 2)]
    problem = compile_problem(context_of(make_spec(nodes, work, [drained], running=where)))
    misplaced, moved = (Slot(problem.shapes_of_role[name, ""]) for name in ("misplaced", "moved"))
    ruins = HomeRuins(problem, State({2: Fill(Counter({misplaced: 1, moved: 1}))}), Random(1))
    assert ruins.attempts(20, lambda: False)
    after = {problem.nodes[index].name: +fill.slots for index, fill in ruins.state().fills.items()}
    assert after == {"y": {moved: 1}, "z": {misplaced: 1}}


@pytest.mark.parametrize("made", [tiny, tiny_sharing, mixed, crowded])
def test_more_stay_and_nothing_of_what_is_admitted_changes(made: Callable[[int], Spec]) -> None:
    """From states in which all was placed as if nothing ran."""
    seen: Counter[bool] = Counter()
    for seed in range(150):
        problem = compile_problem(context_of(made(seed)))
        begun = legalise(problem, construct(problem, State({}), Stop()))
        ruins = HomeRuins(problem, begun, Random(seed))
        if ruins.over:
            continue
        seen[tried(problem, begun, ruins, 20, away, seed)] += 1
    assert seen[True] >= 3, seen
