"""The LP over patterns: solved one way or the other, and in whole numbers."""

from __future__ import annotations

from math import inf

import pytest
from tests.engine.test_generate import ALL, fleet, master_of, worth
from tests.support.specs import make_spec, node, workload

from dovetail.engine.budget import Budget
from dovetail.engine.contents.patterns import Mixture, Wish
from dovetail.engine.generation import master as lp
from dovetail.engine.generation.diving import Chosen, dive
from dovetail.engine.generation.master import Master
from dovetail.engine.generation.pricing import Pricing
from dovetail.model.state import Slot
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of


def mixed(seed: int) -> tuple[Master, Pricing, Mixture]:
    """Return a fleet's LP, what prices its patterns, and its solution with all of these."""
    problem = fleet(seed)
    master = master_of(problem)
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    return master, pricing, pricing.settle(master, pricing.solve(master), 30, inf)


def dived(seed: int) -> tuple[Master, Pricing, Mixture, Chosen, float]:
    """Return the same, and what a dive chooses and that is worth; the LP has its patterns, and nothing is settled."""
    master, pricing, mixture = mixed(seed)
    known = dive(master, mixture, pricing)[0]
    reached = worth(master, known)
    master.reset()
    for column, _ in known:
        master.add(column.lot, column.pattern)
    master.refresh()
    return master, pricing, mixture, known, reached


@pytest.mark.parametrize("most", [0, 3])
def test_an_lp_that_takes_many_steps_is_solved_from_scratch(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = mixed(1)[2].value
    monkeypatch.setattr(lp, "_MOST_STEPS", (most, lp._MOST_STEPS[1]))
    assert mixed(1)[2].value == pytest.approx(at_once)


def test_an_lp_that_has_no_end_is_worth_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    master = mixed(1)[0]
    monkeypatch.setattr(lp, "_MOST_STEPS", (0, 0))
    master.refresh()
    master._highs.clearSolver()
    found = master.solve()
    assert (found.value, found.uses, found.admitted) == (-inf, {}, {})
    monkeypatch.undo()
    assert master.solve().value > 0


@pytest.mark.parametrize("seed", range(4))
def test_whole_numbers_from_a_known_solution_on_are_no_worse_than_it(seed: int) -> None:
    master, pricing, mixture, known, reached = dived(seed)
    found = pricing.whole(master, pricing.solve(master), inf, known)
    assert reached - 1e-3 <= found.value <= mixture.value + 1e-3
    assert found.value == pytest.approx(
        sum(master.wish.worth.get(s, 0.0) * n for s, n in found.admitted.items()), rel=1e-6
    )


@pytest.mark.parametrize("seed", range(2, 6))
def test_patterns_that_lose_too_much_are_in_no_better_solution(seed: int) -> None:
    master, pricing, _, known, reached = dived(seed)
    fractions = pricing.solve(master)
    found = [pricing.whole(master, fractions, inf, known, least) for least in (-inf, reached)]
    assert found[1].value == pytest.approx(found[0].value, abs=master.wish.grain)
    assert len(master._best(fractions, (), 0.0)) < len(master._best(fractions, (), inf))


def test_where_time_left_no_lp_all_patterns_are_chosen_among() -> None:
    master, _, mixture = mixed(1)
    lots = len(master.rows.lots)
    late = Mixture(-inf, {}, [{} for _ in range(lots)], [0.0] * lots, master.wish, {}, 0)
    assert 0.8 * mixture.value <= master.whole(late, None).value <= mixture.value + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_whole_numbers_of_patterns_are_no_better_than_fractions_and_fit(seed: int) -> None:
    master, pricing, mixture = mixed(seed)
    found = pricing.whole(master, mixture)
    chosen = found.chosen
    for lot, size in enumerate(list(master.sizes)):
        assert sum(times for column, times in chosen if column.lot == lot) <= size
    assert 0.8 * mixture.value <= worth(master, chosen) <= mixture.value + 1e-6
    assert found.value <= worth(master, chosen) + 1e-6


def test_whole_numbers_see_what_little_the_last_band_gains() -> None:
    """The best is between two patterns, so the LP alone does not have it."""
    spec = make_spec(
        [node(f"n{index}", 4) for index in range(2)],
        [workload("much", 2, gpus=1, value=9), *(workload(f"w{n}", 4, gpus=1, cpu=1000 * n) for n in (2, 3))],
    )
    problem = compile_problem(context_of(spec))
    much, small, large = (problem.shapes_of_workload[name][0] for name in ("much", "w2", "w3"))
    wish = Wish({much: 2, small: 4, large: 4}, {much: 1e6, small: 0.02, large: 0.025}, [0.0], 1e-3)
    master = master_of(problem, wish)
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    three, two = ((Slot(much), 1), (Slot(small), 3)), ((Slot(much), 1), (Slot(large), 2))
    for pattern in ((), three, two):
        master.add(0, pattern)
    found = pricing.whole(master, pricing.solve(master), inf, [(master.column(0, two), 2)])
    assert found.admitted == {much: 2, small: 3, large: 2}


def anew(master: Master) -> Master:
    """Return an LP over the same patterns that was not solved yet."""
    found = Master(master.rows, master.wish)
    for column in master.columns:
        found.add(column.lot, column.pattern)
    return found


def test_an_lp_out_of_time_is_worth_nothing_and_solved_later_all_the_same() -> None:
    known, _, mixture = mixed(1)
    master = anew(known)
    late = master.solve(0.0)
    assert late.value == -inf
    assert not late.uses
    assert master.solve(60.0).value == pytest.approx(mixture.value)


def test_patterns_are_priced_up_to_the_last_lp_that_was_solved_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = fleet(1)
    master = master_of(problem)
    pricing = Pricing(problem, master.rows.lots, Budget(ALL), Stop())
    first = pricing.solve(master)
    monkeypatch.setattr(master, "solve", lambda _: anew(master).solve(0.0))
    assert pricing.settle(master, first, 30, inf) == first
    assert len(master.columns) > len(first.nodes)


def test_a_dive_that_runs_out_of_time_in_an_lp_keeps_what_it_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    master, pricing, mixture = mixed(1)
    with monkeypatch.context() as patch:
        patch.setattr(master, "solve", lambda _: anew(master).solve(0.0))
        chosen = dive(master, mixture, pricing)[0]
    assert 0.0 < worth(master, chosen) <= mixture.value
