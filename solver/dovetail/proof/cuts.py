"""Mixed-integer rounding: rows that every integer solution keeps, though fractions may not (Nemhauser, Wolsey 1990).

Rows are added up as equations: each has a slack, a non-negative integer as all its numbers are integers. With
x = l + p for variables counted up, x = u - p for those flipped, and the slacks among the p, that reads
sum a_i p_i = b over D. With f_i = a_i mod D and f = b mod D each integer point keeps

    sum ((D - f) floor(a_i / D) + max(0, f_i - f)) p_i  <=  (D - f) floor(b / D),

whatever the multipliers, even below 0. Gomory's cuts are of this kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from dovetail.linear import stepped
from dovetail.proof.certificate import Cut
from dovetail.proof.lagrangian import PlainRow


def rounded(rows: Sequence[PlainRow], cut: Cut, lower: Sequence[int], upper: Sequence[int]) -> PlainRow:
    """Return the row that a cut stands for.

    Parameters
    ----------
    rows : what its multipliers count.
    lower, upper : the box of all solutions, per variable.
    """
    terms, side = _added(rows, cut)
    start = [lower, upper]
    flipped = frozenset(cut.flipped)
    side -= sum(c * start[v in flipped][v] for v, c in terms.items())
    over, rest = cut.denominator, side % cut.denominator
    found: dict[int, int] = {}
    right = (over - rest) * (side // over)
    for variable, coefficient in terms.items():
        sign = -1 if variable in flipped else 1
        weight = sign * stepped(sign * coefficient, over, rest)
        found[variable] = weight
        right += weight * start[variable in flipped][variable]
    for position, multiplier in sorted(cut.multipliers.items()):
        weight = stepped(multiplier, over, rest)
        if weight:
            row = rows[position]
            right -= weight * row.upper
            for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
                found[variable] = found.get(variable, 0) - weight * coefficient
    return _smallest({v: c for v, c in sorted(found.items()) if c}, right)


def _added(rows: Sequence[PlainRow], cut: Cut) -> tuple[dict[int, int], int]:
    """Return the coefficients and the right side of a cut's rows, times their multipliers, added up."""
    terms: dict[int, int] = {}
    side = 0
    for position, multiplier in sorted(cut.multipliers.items()):
        row = rows[position]
        side += multiplier * row.upper
        for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
            terms[variable] = terms.get(variable, 0) + multiplier * coefficient
    return terms, side


def _smallest(terms: dict[int, int], side: int) -> PlainRow:
    """Return a row divided by what all its coefficients share; its side is rounded down, for integers alike."""
    step = gcd(*terms.values()) or 1
    return PlainRow(tuple(terms), tuple(c // step for c in terms.values()), side // step)
