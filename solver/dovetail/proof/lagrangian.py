"""Bounds from multipliers, in integers: what an LP's dual solution proves once it is rounded.

For max c x over rows A x <= b and boxes l <= x <= u, any multipliers y >= 0 over a denominator D prove

    D * max c x  <=  sum_r y_r b_r + sum_i max(q_i l_i, q_i u_i),      q = D c - A' y

and, where some variables form a *block* whose joint contents are known to cost no more than `limit(q)`, that limit
in place of their boxes. Nothing here rests on how the multipliers were found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple, Protocol

from dovetail.linear import Linear, Model, Row


class PlainRow(NamedTuple):
    """`sum(coefficients * variables) <= upper`, without condition."""

    variables: tuple[int, ...]
    coefficients: tuple[int, ...]
    upper: int


class Block(Protocol):
    """Variables that are bounded together, better than one by one."""

    @property
    def variables(self) -> Iterable[int]:
        """The variables of the block; no variable is in two blocks."""

    def limit(self, costs: Mapping[int, int]) -> int:
        """Return a value that `sum(costs[i] * x_i)` over the block exceeds in no solution."""


class Settled(NamedTuple):
    """A block of which it is known already what it costs at the most, at the only costs there are."""

    variables: tuple[int, ...]
    most: int

    def limit(self, costs: Mapping[int, int]) -> int:
        """Return that."""
        return self.most


def plain_rows(model: Model) -> list[PlainRow]:
    """Return a model's rows as plain ones, in order: the upper side of each before its lower side.

    A row under a literal is relaxed by as much as variable bounds let it be missed, where the literal is false.
    """
    return [plain for row in model.rows for plain in _sides(model, row)]


def floor_of(expression: Linear, value: int) -> PlainRow:
    """Return the row that keeps an expression at a value or above."""
    terms = {v: -c for v, c in expression.terms.items() if c}
    return PlainRow(tuple(terms), tuple(terms.values()), expression.constant - value)


def plain_ends(model: Model) -> Sequence[int]:
    """Return for each row of a model how many of its plain rows there are up to that one's last side."""
    return list(accumulate((row.upper is not None) + (row.lower is not None) for row in model.rows))


def _sides(model: Model, row: Row) -> Iterator[PlainRow]:
    if row.upper is not None:
        yield _plain(model, row, 1, row.upper)
    if row.lower is not None:
        yield _plain(model, row, -1, -row.lower)


def _plain(model: Model, row: Row, sign: int, upper: int) -> PlainRow:
    coefficients = tuple(sign * c for c in row.coefficients)
    if row.when is None:
        return PlainRow(row.variables, coefficients, upper)
    terms = dict(zip(row.variables, coefficients, strict=True))
    slack = max(0, model.range_of(Linear(terms))[1] - upper)
    flag, positive = row.when
    terms[flag] = terms.get(flag, 0) + (slack if positive else -slack)
    return PlainRow(tuple(terms), tuple(terms.values()), upper + (slack if positive else 0))


def leaf_total(
    objective: Linear,
    rows: Sequence[PlainRow],
    multipliers: Mapping[int, int],
    denominator: int,
    lower: Sequence[int],
    upper: Sequence[int],
    blocks: Iterable[Block] = (),
) -> int:
    """Return `denominator` times a value that `objective` exceeds nowhere within a box, as some multipliers prove it.

    Parameters
    ----------
    objective : what is maximised.
    multipliers : per position in `rows`, an integer; a negative one proves nothing and is taken as 0.
    denominator : what the multipliers are to be divided by, positive.
    lower, upper : the box, per variable.
    blocks : variables bounded together.
    """
    costs = reduced_costs(objective, rows, multipliers, denominator)
    total = denominator * objective.constant
    total += sum(multiplier * rows[position].upper for position, multiplier in multipliers.items() if multiplier > 0)
    for block in blocks:
        total += block.limit({variable: costs.pop(variable, 0) for variable in block.variables})
    total += sum(q * (upper[v] if q > 0 else lower[v]) for v, q in costs.items())
    return total


def reduced_costs(
    objective: Linear, rows: Sequence[PlainRow], multipliers: Mapping[int, int], denominator: int
) -> dict[int, int]:
    """Return, per variable, what is left of `denominator` times its part in an objective once rows are paid for.

    Parameters
    ----------
    multipliers : as for `leaf_total`.
    """
    costs = {variable: denominator * c for variable, c in objective.terms.items()}
    for position, multiplier in multipliers.items():
        if multiplier > 0:
            row = rows[position]
            for variable, coefficient in zip(row.variables, row.coefficients, strict=True):
                costs[variable] = costs.get(variable, 0) - multiplier * coefficient
    return costs
