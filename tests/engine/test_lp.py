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
