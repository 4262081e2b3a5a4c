from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from dovetail.engine.solvers import pyomo_backend
from dovetail.engine.solvers.answer import Verdict
from dovetail.engine.solvers.pyomo_backend import satisfies, set_objective, solve_pyomo, to_pyomo
from dovetail.linear import Linear, Literal, Model, Row
from dovetail.progress import Stop


def knapsack(items: int, seed: int = 1) -> tuple[Model, Linear]:
    """Return a model with several knapsack rows, hard to close where there are many items."""
    draw = random.Random(seed)
    model = Model()
    variables = [model.boolean() for _ in range(items)]
    for _ in range(8):
        model.require(Linear({v: draw.randint(20, 90) for v in variables}), upper=25 * items)
    return model, Linear({v: draw.randint(20, 90) for v in variables})


def test_optimises_in_both_senses() -> None:
    model = Model()
    x, y = model.integer(-3, 7), model.integer(0, 5)
    model.require(Linear({x: 2, y: 3}), lower=-4, upper=17)
    objective = Linear({x: 1, y: 1}, constant=10)
    most = solve_pyomo(model, objective, "max")
    least = solve_pyomo(model, objective, "min")
    assert (most.verdict, most.bound) == (Verdict.OPTIMAL, 18)
    assert (least.verdict, least.bound) == (Verdict.OPTIMAL, 8)
    assert most.values is not None
    assert satisfies(model, most.values)


def test_a_variable_that_nothing_names_is_at_its_least() -> None:
    model = Model()
    model.integer(4, 9)
    x = model.integer(0, 2)
    assert solve_pyomo(model, Linear.of(x), "max").values == [4, 2]


@pytest.mark.parametrize("objective", [Linear(), Linear(constant=-5)])
def test_without_rows_and_terms_anything_is_optimal(objective: Linear) -> None:
    model = Model()
    model.integer(1, 3)
    answer = solve_pyomo(model, objective, "min")
    assert (answer.verdict, answer.values, answer.bound) == (Verdict.OPTIMAL, [1], objective.constant)


def test_infeasible_rows() -> None:
    model = Model()
    x = model.integer(0, 10)
    model.require(Linear({x: 2}), lower=5, upper=5)
    assert solve_pyomo(model, Linear.of(x), "max").verdict is Verdict.INFEASIBLE


def test_a_false_row_of_constants_is_infeasible() -> None:
    model = Model()
    x = model.integer(0, 10)
    model.require(Linear(constant=3), upper=2)
    assert solve_pyomo(model, Linear.of(x), "max").verdict is Verdict.INFEASIBLE
    assert not satisfies(model, [0])


def test_the_multiplier_of_a_conditional_row_is_the_least_that_bounds_allow() -> None:
    model = Model()
    x = model.integer(0, 7)
    flag = model.boolean()
    model.require(Linear.of(x), upper=2, when=Literal(flag))
    model.require(Linear.of(x), lower=3, when=~Literal(flag))
    rows = [str(row.expr) for row in to_pyomo(model).rows.values()]
    assert rows == ["x[0] + 5*x[1]  <=  7", "3  <=  x[0] + 3*x[1]"]


def test_a_conditional_row_that_always_holds_needs_no_row() -> None:
    model = Model()
    x = model.integer(0, 7)
    model.require(Linear.of(x), lower=0, upper=7, when=Literal(model.boolean()))
    assert len(to_pyomo(model).rows) == 0


def test_a_conditional_row_may_name_its_own_literal_or_nothing() -> None:
    model = Model()
    x, own, never = model.integer(0, 4), model.boolean(), model.boolean()
    model.require(Linear({x: 1, own: 2}), upper=3, when=Literal(own))
    model.require(Linear(), lower=1, when=Literal(never))
    assert solve_pyomo(model, Linear({x: 1, own: 9, never: 99}), "max").values == [1, 1, 0]


def test_another_objective_takes_the_place_of_the_first() -> None:
    model = Model()
    x = model.integer(0, 3)
    concrete = to_pyomo(model)
    set_objective(concrete, Linear.of(x), "max")
    set_objective(concrete, Linear.of(x, 2), "min")
    assert str(concrete.objective.expr) == "2*x[0]"


def random_model(draw: random.Random) -> tuple[Model, Linear]:
    """Return a model of at most 4,000 assignments, with rows of all kinds."""
    model = Model()
    flags = [model.boolean() for _ in range(2)]
    for _ in range(draw.randint(2, 4)):
        low = draw.randint(-3, 1)
        model.integer(low, low + draw.randint(0, 4))
    every = range(len(model.lower))
    for _ in range(draw.randint(2, 6)):
        terms = {v: draw.randint(-4, 6) for v in every if draw.random() < 0.7}
        row = Linear(terms, draw.randint(-2, 2))
        low, high = sorted(draw.randint(*model.range_of(row)) for _ in range(2))
        sides = draw.choice([(low, None), (None, high), (low, high), (high, high)])
        when = Literal(draw.choice(flags), draw.random() < 0.5) if draw.random() < 0.5 else None
        model.require(row, *sides, when)
    return model, Linear({v: draw.randint(-5, 5) for v in every}, draw.randint(-9, 9))


def exhaustive(model: Model, objective: Linear, sense: str) -> int | None:
    """Return the optimum by trying every assignment; rows are judged without the code under test."""
    ranges = [range(low, high + 1) for low, high in zip(model.lower, model.upper, strict=True)]
    if model.infeasible:
        return None
    found = [
        objective.value(list(v)) for v in itertools.product(*ranges) if all(allows(row, v) for row in model.rows)
    ]
    return (max if sense == "max" else min)(found, default=None)


def allows(row: Row, values: tuple[int, ...]) -> bool:
    if row.when is not None and bool(values[row.when.variable]) != row.when.positive:
        return True
    total = sum(c * values[v] for v, c in zip(row.variables, row.coefficients, strict=True))
    low = total if row.lower is None else row.lower
    high = total if row.upper is None else row.upper
    return low <= total <= high


def test_random_models_have_the_optimum_of_all_assignments() -> None:
    seen: Counter[str] = Counter()
    for seed in range(80):
        draw = random.Random(seed)
        model, objective = random_model(draw)
        sense = draw.choice(["max", "min"])
        expected = exhaustive(model, objective, sense)
        answer = solve_pyomo(model, objective, sense)
        if expected is None:
            assert answer.verdict is Verdict.INFEASIBLE, seed
        else:
            assert (answer.verdict, answer.bound) == (Verdict.OPTIMAL, expected), seed
            assert answer.values is not None
            assert satisfies(model, answer.values)
        seen["infeasible" if expected is None else "feasible"] += 1
        loose = Model(model.lower, model.upper, model.names, [r for r in model.rows if r.when is None])
        seen["conditional rows bind"] += exhaustive(loose, objective, sense) != expected
    assert seen["feasible"] >= 40
    assert seen["infeasible"] >= 10
    assert seen["conditional rows bind"] >= 20


def test_a_solution_that_rounding_breaks_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    x = model.integer(0, 9)
    model.require(Linear.of(x, 2), upper=7)
    monkeypatch.setattr(pyomo_backend, "_rounded", lambda *_: [4])
    answer = solve_pyomo(model, Linear.of(x), "max")
    assert (answer.verdict, answer.values, answer.bound) == (Verdict.UNKNOWN, None, None)


def test_an_optimum_that_rounding_moves_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    x = model.integer(0, 9)
    model.require(Linear.of(x, 2), upper=7)
    monkeypatch.setattr(pyomo_backend, "_rounded", lambda *_: [2])
    answer = solve_pyomo(model, Linear.of(x), "max")
    assert (answer.verdict, answer.values, answer.bound) == (Verdict.FEASIBLE, [2], 3)


def test_satisfies_judges_bounds_and_rows_exactly() -> None:
    model = Model()
    x, flag = model.integer(0, 10**15), model.boolean()
    model.require(Linear.of(x, 10**6), upper=10**18, when=Literal(flag))
    assert satisfies(model, [10**12, 1])
    assert not satisfies(model, [10**12 + 1, 1])
    assert satisfies(model, [10**12 + 1, 0])
    assert not satisfies(model, [-1, 0])


def test_a_search_cut_short_gives_a_valid_bound() -> None:
    model, objective = knapsack(48)
    proved = solve_pyomo(model, objective, "max")
    short = solve_pyomo(model, objective, "max", nodes=1)
    assert proved.verdict is Verdict.OPTIMAL
    assert short.verdict is Verdict.FEASIBLE
    assert proved.bound is not None
    assert short.bound is not None
    assert short.values is not None
    assert objective.value(short.values) <= proved.bound <= short.bound


def test_a_stop_ends_the_search() -> None:
    model, objective = knapsack(200)
    stop = Stop()
    stop.set()
    assert solve_pyomo(model, objective, "max", stop=stop).verdict in (Verdict.FEASIBLE, Verdict.UNKNOWN)


def test_equal_models_give_equal_answers_and_print_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    model, objective = knapsack(30)
    assert solve_pyomo(model, objective, "max") == solve_pyomo(model, objective, "max")
    assert capfd.readouterr() == ("", "")
