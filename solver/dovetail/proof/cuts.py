"""Mixed-integer rounding: rows that every integer solution keeps, though fractions may not (Nemhauser, Wolsey 1990).

With x = l + p for variables counted up and x = u - p for those flipped, added rows read sum a_i p_i <= b over D,
every p_i a non-negative integer. With f_i = a_i mod D and f = b mod D each such point keeps

    sum ((D - f) floor(a_i / D) + max(0, f_i - f)) p_i  <=  (D - f) floor(b / D).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from dovetail.proof.certificate import Cut
from dovetail.proof.lagrangian import PlainRow


def rounded(rows: Sequence[PlainRow], cut: Cut, lower: Sequence[int], upper: Sequence[int]) -> PlainRow:
    """Return the row that a cut stands for.

    Parameters
    ----------
    rows : what its multipliers count; negative multipliers are left out.
    lower, upper : the box of all solutions, per variable.
    """
    terms, side = added(rows, cut)
    flipped = frozenset(cut.flipped)
    over = cut.denominator
    for variable, coefficient in terms.items():
        side -= coefficient * (upper[variable] if variable in flipped else lower[variable])
    rest = side % over
    found: dict[int, int] = {}
    right = (over - rest) * (side // over)
    for variable, coefficient in terms.items():
        sign = -1 if variable in flipped else 1
        whole, part = divmod(sign * coefficient, over)
        weight = (over - rest) * whole + max(0, part - rest)
        if weight:
            found[variable] = sign * weight
            right += sign * weight * (upper[variable] if variable in flipped else lower[variable])
    return _smallest(found, right)


def added(rows: Sequence[PlainRow], cut: Cut) -> tuple[dict[int, int], int]:
    """Return the coefficients and the right side of a cut's rows, times their multipliers, added up."""
    terms: dict[int, int] = {}
    side = 0
    for position, multiplier in sorted(cut.multipliers.items()):
        if multiplier > 0:
            row = rows[position]
            side += multiplier * row.upper
            for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
                terms[variable] = terms.get(variable, 0) + multiplier * coefficient
    return terms, side


def _smallest(terms: dict[int, int], side: int) -> PlainRow:
    """Return a row divided by what all its coefficients share; its side is rounded down, for integers alike."""
    step = gcd(*terms.values()) or 1
    return PlainRow(tuple(terms), tuple(c // step for c in terms.values()), side // step)
