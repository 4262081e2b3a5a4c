"""Solutions that are refused one by one: each is another one, and in the end there is none."""

from __future__ import annotations

from tests.support.specs import make_spec, node, workload

from dovetail.engine.budget import Budget
from dovetail.engine.exact import climb
from dovetail.engine.named import climb_named
from dovetail.engine.solvers.answer import Verdict
from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Spec

BUDGET = Budget(10.0)


def problem_of(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def test_every_solution_comes_once() -> None:
    problem = problem_of(make_spec([node("a", 1), node("b", 2)], [workload("w", 2, gpus=1)]))
    refused: list[State] = []
    while len(refused) < 20:
        part = PartModel(problem, range(2), State())
        for state in refused:
            part.refuse(state)
        found = climb(part, (), None, None, BUDGET, Stop())
        if found.verdict is Verdict.INFEASIBLE:
            break
        refused.append(found.state)
    held = [tuple(sum(state.fill(index).counts().values()) for index in range(2)) for state in refused]
    assert sorted(held) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_what_names_keep_is_proved_by_one_climb() -> None:
    problem = problem_of(make_spec([node("a", 1), node("b", 2)], [workload("w", 4, gpus=1)]))
    found = climb_named(problem, frozenset(), None, BUDGET, Stop())
    assert found.verdict is Verdict.OPTIMAL
    assert found.tiers[0].value == 3000
