"""What rows leave of variables' limits, in whole numbers.

A quota that has room for half a replica beside what runs and is protected has room for none.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.linear import Model
from dovetail.proof.lagrangian import PlainRow

_PASSES = 2  # what a policy may exceed by is forbidden in a row of its own, which stands behind


def tighten(model: Model) -> None:
    """Lower the upper limits of variables, and raise the lower ones, to what a model's rows leave.

    Rows that hold only under a literal are left out, and the lower sides of others.
    """
    rows = (row for row in model.rows if row.upper is not None and row.when is None)
    plain = [PlainRow(row.variables, row.coefficients, row.upper or 0) for row in rows]
    tighten_box(plain, model.lower, model.upper)


def tighten_box(rows: Iterable[PlainRow], lower: list[int], upper: list[int]) -> None:
    """Narrow a box to what each row leaves of a variable, all others as the row likes them best; two passes."""
    for row in _PASSES * list(rows):
        terms = list(zip(row.variables, row.coefficients, strict=True))
        room = row.upper - sum(c * (lower[v] if c > 0 else upper[v]) for v, c in terms)
        for variable, coefficient in terms:
            low, high = lower[variable], upper[variable]
            if coefficient > 0 and (high - low) * coefficient > room:
                upper[variable] = low + room // coefficient
            elif coefficient < 0 and (low - high) * coefficient > room:
                lower[variable] = high - room // -coefficient
