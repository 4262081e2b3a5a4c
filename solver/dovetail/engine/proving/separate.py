"""Finds cuts that an LP's solution breaks: from rows of its tableau (Gomory's), and from single rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from dovetail.engine.proving.relaxed_lp import Point, RelaxedLp, is_fraction
from dovetail.proof.certificate import Cut
from dovetail.proof.cuts import rounded
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.tree import Question

_DENOMINATORS = np.array(
    [*range(1, 65), 72, 80, 96, 100, 120, 144, 160, 192, 240, 360, 480, 720, 840, 1000, 5040, 55440]
)
_WIDEST = 400  # coefficients of a cut
_LARGEST = 10**7  # coefficient of a cut, for the LP's sake
_LEAST = 1e-3  # by how much a cut must be broken, over its length
_DIVISORS = 6  # tried per row
_MOST_TRIED = 250
_TERM = 40  # work per coefficient looked at, in the units of `RelaxedLp.work`


class Broken(NamedTuple):
    """A cut, its row, and by how much the LP's solution breaks it."""

    by: float
    cut: Cut
    row: PlainRow


def broken_cuts(
    question: Question, rows: Sequence[PlainRow], numbers: Sequence[int], lp: RelaxedLp, point: Point
) -> tuple[list[Broken], int]:
    """Return cuts that a point breaks, the worst broken first, and the work it took to find them.

    Parameters
    ----------
    rows : all rows by the numbers that proofs know them by.
    numbers : the numbers of the LP's rows.
    """
    found: dict[PlainRow, Broken] = {}
    terms = 0
    for cut in islice(_candidates(question, rows, numbers, lp, point), _MOST_TRIED):
        terms += sum(len(rows[number].variables) for number in cut.multipliers)
        row = rounded(rows, cut, question.lower, question.upper)
        if row in found or not 0 < len(row.variables) <= _WIDEST or max(map(abs, row.coefficients)) > _LARGEST:
            continue
        by = -_slack(row, point) / sum(c * c for c in row.coefficients) ** 0.5
        if by > _LEAST:
            found[row] = Broken(by, cut, row)
    return sorted(found.values(), key=lambda each: (-each.by, len(each.row.variables))), _TERM * terms


def _candidates(
    question: Question, rows: Sequence[PlainRow], numbers: Sequence[int], lp: RelaxedLp, point: Point
) -> Iterator[Cut]:
    nearer = zip(point.values, question.lower, question.upper, strict=True)
    flipped = frozenset(v for v, (x, low, high) in enumerate(nearer) if high - x < x - low)
    for inverse in lp.tableau(point.values):
        found = _rational(inverse)
        if found is not None:
            denominator, numerators = found
            multipliers = {numbers[place]: y for place, y in numerators.items()}
            over = tuple(sorted(flipped.intersection(*[[v for r in multipliers for v in rows[r].variables]])))
            for sign in (1, -1):
                yield Cut({r: sign * y for r, y in multipliers.items()}, denominator, over)
    for number, row in enumerate(rows):
        for denominator in _divisors(row, point):
            yield Cut({number: 1}, denominator, tuple(sorted(flipped.intersection(row.variables))))


def _divisors(row: PlainRow, point: Point) -> list[int]:
    """Return what to divide a row by: coefficients of fractional variables, where the row is nearly tight."""
    pairs = zip(row.variables, row.coefficients, strict=True)
    found = {abs(c) for v, c in pairs if is_fraction(point.values[v])} - {0, 1}
    if not found or _slack(row, point) >= 0.1 * max(map(abs, row.coefficients)):
        return []
    return sorted(found)[:_DIVISORS]


def _slack(row: PlainRow, point: Point) -> float:
    return row.upper - sum(c * point.values[v] for v, c in zip(row.variables, row.coefficients, strict=True))


def _rational(inverse: Sequence[float]) -> tuple[int, Mapping[int, int]] | None:
    """Return the smallest common denominator of a row of a basis' inverse, and its numerators other than 0."""
    row = np.asarray(inverse)
    places = np.flatnonzero(np.abs(row) > 1e-9)
    scaled = np.outer(_DENOMINATORS, row[places])
    fits = np.flatnonzero(np.max(np.abs(scaled - np.rint(scaled)), axis=1, initial=0.0) < 1e-6)
    if not fits.size:
        return None
    numerators = np.rint(scaled[fits[0]]).astype(int)
    return int(_DENOMINATORS[fits[0]]), dict(zip(places.tolist(), numerators.tolist(), strict=True))
