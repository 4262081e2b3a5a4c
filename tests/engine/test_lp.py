"""An LP ends with its optimum, whichever way is gone."""

from __future__ import annotations

import pytest

from dovetail.engine.solvers import highs
from dovetail.engine.solvers.highs import Lp


def small() -> Lp:
    """Return an LP of which the optimum is 17 1/2, at no corner that presolve sees."""
    lp = Lp()
    for _ in range(6):
        lp.column(0.0, 3.0)
    for first in range(6):
        lp.row(-10.0, 5.0, {first: 1.0, (first + 1) % 6: 1.0, (first + 3) % 6: 1.0})
    lp.row(-10.0, 8.75, dict.fromkeys(range(6), 1.0))
    lp.objective(dict.fromkeys(range(6), 2.0))
    return lp


@pytest.mark.parametrize("steps", [0, 1, 2000])
def test_an_interior_that_gets_nowhere_is_left_for_corners(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    monkeypatch.setattr(highs, "_MOST_STEPS", steps)
    lp = small()
    assert lp.solve(inner=True) == pytest.approx(17.5)
    assert lp.complete


def test_a_remembered_corner_leads_to_the_optimum_of_what_is_asked_now() -> None:
    def asked_anew(lp: Lp) -> float:
        lp.objective({column: 1.0 + column for column in range(6)})
        lp.bounds(0, -10.0, 4.0)
        return lp.solve(start="first")

    anew, lp = asked_anew(small()), small()
    lp.objective({column: 2.0 + column for column in range(6)})
    lp.solve()
    lp.remember("first")
    lp.objective(dict.fromkeys(range(6), -1.0))
    lp.solve(start="unknown")
    assert asked_anew(lp) == pytest.approx(anew)
    lp.column(0.0, 3.0, {1: 1.0})  # newer than the corner
    lp.objective({6: 9.0})
    assert lp.solve(start="first") == pytest.approx(27.0)


def test_a_search_goes_on_from_the_corner_that_is_near_and_not_from_the_last_one() -> None:
    lp = small()
    best = lp.solve()
    lp.remember("whole", "also")
    halves = []
    for low, high in ((0.0, 2.0), (3.0, 3.0)):
        lp.limits(0, low, high)
        halves.append(lp.solve(warm=True, start="whole"))
        lp.remember(low)
    assert max(halves) == pytest.approx(best)
    anew = small()
    anew.limits(0, 0.0, 1.0)
    lp.limits(0, 0.0, 1.0)
    assert lp.solve(warm=True, start=0.0) == pytest.approx(anew.solve())
