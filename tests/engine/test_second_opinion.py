from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from tests.support.random_specs import specs
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import second_opinion as module
from dovetail.engine.ladder import solve
from dovetail.engine.second_opinion import confirm_infeasible, second_opinion, with_second_opinion
from dovetail.engine.solvers.answer import Answer, BackendTooLarge, Verdict
from dovetail.engine.solvers.pyomo_backend import solve_pyomo
from dovetail.plan.model import TierResult
from dovetail.problem import Problem, compile_problem
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.spec import Spec
from dovetail.verify import verify


def two_nodes(*, must: bool = False) -> Spec:
    """Return 16 GPUs on two nodes, and jobs of 6, 6 and 4 GPUs: enough in total, too little in place."""
    return make_spec(
        [node("a"), node("b", price=3)],
        [workload("six", 2, gpus=6), workload("four", gpus=4)],
        [policy("all", Admission())] if must else [],
    )


def problem_of(spec: Spec) -> Problem:
    return compile_problem(context_of(spec))


def tier(name: str, value: int, bound: int | None, sense: str = "max") -> TierResult:
    proof = "none" if bound is None else "solver"
    return TierResult(name, value, bound, "", sense, proof)  # type: ignore[arg-type]


def opinion_on(*tiers: TierResult) -> bool:
    return second_opinion(problem_of(two_nodes()), tiers).agrees


def test_agrees_with_the_optimum_and_names_the_engine() -> None:
    opinion = second_opinion(
        context_of(two_nodes()), [tier("admitted[0]", 12_000, 12_000), tier("cost", 3, 3, "min")]
    )
    assert opinion.agrees
    assert opinion.tiers == {"admitted[0]": 12_000, "cost": 3}
    assert opinion.engine.startswith("HiGHS 1.")
    assert " through Pyomo 6." in opinion.engine


@pytest.mark.parametrize(
    ("admitted", "cost"),
    [
        ((12_000, None), (3, 0)),
        ((12_000, 16_000), (3, 3)),
        ((10_000, 16_000), (3, 3)),
        ((12_000, 12_000), (4, 0)),
        ((12_000, 12_000), (4, None)),
    ],
)
def test_agrees_with_a_tier_that_is_not_proved(
    admitted: tuple[int, int | None], cost: tuple[int, int | None]
) -> None:
    assert opinion_on(tier("admitted[0]", *admitted), tier("cost", *cost, "min"))


@pytest.mark.parametrize(
    ("admitted", "cost"),
    [
        ((11_999, 11_999), (3, 3)),
        ((12_001, 12_001), (3, 3)),
        ((12_001, 16_000), (3, 3)),
        ((12_001, None), (3, 3)),
        ((10_000, 11_999), (3, 3)),
        ((12_000, 12_000), (2, 2)),
        ((12_000, 12_000), (2, 0)),
        ((12_000, 12_000), (2, None)),
        ((12_000, 12_000), (5, 4)),
    ],
)
def test_contradicts_a_value_out_of_reach_and_a_bound_that_is_beaten(
    admitted: tuple[int, int | None], cost: tuple[int, int | None]
) -> None:
    assert not opinion_on(tier("admitted[0]", *admitted), tier("cost", *cost, "min"))


def test_tiers_must_be_those_of_the_problem() -> None:
    for tiers in ([tier("admitted[0]", 12_000, 12_000)], []):
        with pytest.raises(ValueError, match="not those of the problem"):
            opinion_on(*tiers)


def test_after_a_better_value_within_the_bound_nothing_is_compared() -> None:
    opinion = second_opinion(
        problem_of(two_nodes()), [tier("admitted[0]", 10_000, 16_000), tier("cost", 1, 1, "min")]
    )
    assert opinion.agrees
    assert not opinion.conclusive
    assert opinion.tiers == {"admitted[0]": 12_000, "cost": None}


def test_without_time_left_it_is_inconclusive() -> None:
    tiers = [tier("admitted[0]", 12_000, 12_000), tier("cost", 3, 3, "min")]
    for infeasible in (False, True):
        opinion = second_opinion(problem_of(two_nodes()), tiers, seconds=0, infeasible=infeasible)
        assert opinion.agrees
        assert not opinion.conclusive
        assert opinion.tiers == {"admitted[0]": None, "cost": None}


def test_a_plan_gets_the_proof_of_both_engines() -> None:
    plan = solve(two_nodes())
    told = with_second_opinion(context_of(two_nodes()), plan)
    assert told.second_opinion is not None
    assert told.second_opinion.agrees
    assert {each.proof for each in told.tiers} <= {"two-engines", "trivial"}
    assert "two-engines" in {each.proof for each in told.tiers}
    assert verify(two_nodes(), told).ok


def test_an_unfinished_tier_is_none_and_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*given: object, **more: object) -> Answer:
        answer = solve_pyomo(*given, **more)  # type: ignore[arg-type]
        return answer if given[2] == "max" else Answer(Verdict.FEASIBLE, answer.values, 0)

    monkeypatch.setattr(module, "solve_pyomo", slow)
    problem = problem_of(two_nodes())
    proved = second_opinion(problem, [tier("admitted[0]", 12_000, 12_000), tier("cost", 3, 3, "min")])
    unproved = second_opinion(problem, [tier("admitted[0]", 12_000, 12_000), tier("cost", 3, 0, "min")])
    assert proved.tiers == unproved.tiers == {"admitted[0]": 12_000, "cost": None}
    assert proved.agrees
    assert unproved.agrees
    assert not proved.conclusive
    assert not unproved.conclusive


def test_infeasible_is_confirmed_by_proof_only(monkeypatch: pytest.MonkeyPatch) -> None:
    told = confirm_infeasible(problem_of(two_nodes(must=True)))
    assert told is not None
    assert told.agrees
    assert told.conclusive
    assert confirm_infeasible(problem_of(two_nodes())) is None
    assert confirm_infeasible(problem_of(two_nodes(must=True)), largest=2) is None
    monkeypatch.setattr(module, "solve_pyomo", lambda *_, **__: Answer(Verdict.UNKNOWN))
    assert confirm_infeasible(problem_of(two_nodes(must=True))) is None


def test_a_plan_that_says_infeasible() -> None:
    wrong = second_opinion(problem_of(two_nodes()), [], infeasible=True)
    right = second_opinion(problem_of(two_nodes(must=True)), [], infeasible=True)
    assert not wrong.agrees
    assert wrong.tiers == right.tiers
    assert wrong.conclusive
    assert right.conclusive
    assert right.agrees
    assert right.tiers == {"admitted[0]": None, "cost": None}


def test_a_plan_where_there_is_none() -> None:
    tiers = [tier("admitted[0]", 12_000, 12_000), tier("cost", 3, 3, "min")]
    assert not second_opinion(problem_of(two_nodes(must=True)), tiers).agrees


def test_nothing_to_optimise_is_agreed_on() -> None:
    opinion = second_opinion(problem_of(make_spec([node("a")])), [])
    assert opinion.agrees
    assert opinion.tiers == {}


def test_a_large_model_is_refused_with_its_size() -> None:
    spec = make_spec(
        [node(f"n{i:04}") for i in range(2000)], [workload(f"w{i:02}", 8, share=100 + i) for i in range(40)]
    )
    with pytest.raises(BackendTooLarge, match=r"640,000 variables; .* up to 20,000") as caught:
        second_opinion(problem_of(spec), [])
    assert (caught.value.variables, caught.value.largest) == (640_000, 20_000)


def test_the_size_is_checked_on_the_built_model_too() -> None:
    spec = make_spec([node("a", gpus=2)], [workload("w", 4, share=400)])
    with pytest.raises(BackendTooLarge) as caught:
        second_opinion(problem_of(spec), [], largest=2)
    assert caught.value.variables > 2


def test_both_engines_have_the_same_optima_on_random_specs() -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=40)
    @given(specs())
    def compare(spec: Spec) -> None:
        plan = solve(spec)
        context = context_of(spec)
        infeasible = plan.outcome.status == "infeasible"
        opinion = second_opinion(context, plan.tiers, infeasible=infeasible)
        assert plan.outcome.status in ("optimal", "infeasible")
        assert opinion.agrees, (plan.tiers, opinion)
        if not infeasible:
            assert opinion.tiers == {t.name: t.value for t in plan.tiers}
        replicas = sum(w.replicas for w in spec.workloads)
        seen["specs"] += 1
        seen["work left out"] += len(plan.placements) < replicas
        seen["policies"] += any(p.enforcement.kind != "audit" for p in spec.policies)
        seen["running"] += bool(context.today.present())

    compare()
    assert seen["specs"] >= 35
    assert seen["work left out"] >= 20
    assert seen["policies"] >= 14
    assert seen["running"] >= 14


def test_pyomo_and_highs_are_loaded_by_the_call_alone(root: Path) -> None:
    code = """
import sys
from dovetail.engine.second_opinion import confirm_infeasible
solvers = {"pyomo", "highspy", "ortools", "pandas"}
assert solvers.isdisjoint(sys.modules), solvers & set(sys.modules)
from dovetail.problem import compile_problem
from dovetail.rules import context_of
from tests.support.specs import make_spec, node
assert confirm_infeasible(compile_problem(context_of(make_spec([node("a")])))) is None
assert {"pyomo", "highspy"} <= set(sys.modules)
assert "ortools" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
