"""A small LP of some plain rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from dovetail.engine.solvers.highs import Lp
from dovetail.proof.lagrangian import PlainRow

FREE = 0.0, float("inf")


def lp_of(rows: Sequence[PlainRow], limits: Callable[[int], tuple[float, float]]) -> tuple[Lp, Mapping[int, int]]:
    """Return an LP whose rows are some plain ones, in their order, and the column of each variable in it.

    Parameters
    ----------
    limits : the least and the most of a variable.
    """
    lp = Lp()
    variables = sorted({variable for row in rows for variable in row.variables})
    column = {variable: lp.column(*limits(variable)) for variable in variables}
    for row in rows:
        entries: dict[int, float] = defaultdict(float)
        for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
            entries[column[variable]] += coefficient
        lp.row(-float("inf"), float(row.upper), entries)
    return lp, column
