"""Rounding and strengthening leave every integer point of the rows they start from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from random import Random

import pytest

from dovetail.proof.certificate import Cut
from dovetail.proof.cuts import rounded
from dovetail.proof.lagrangian import PlainRow
from dovetail.proof.strengthen import strengthened


def holds(row: PlainRow, point: Sequence[int]) -> bool:
    return sum(c * point[v] for v, c in zip(row.variables, row.coefficients, strict=True)) <= row.upper


def points(lower: Sequence[int], upper: Sequence[int], rows: Sequence[PlainRow]) -> Iterator[tuple[int, ...]]:
    boxes = (range(low, high + 1) for low, high in zip(lower, upper, strict=True))
    yield from (point for point in product(*boxes) if all(holds(row, point) for row in rows))


def some_row(rng: Random, size: int) -> PlainRow:
    coefficients = {v: rng.randint(-9, 9) for v in rng.sample(range(size), rng.randint(1, size))}
    return PlainRow(tuple(coefficients), tuple(coefficients.values()), rng.randint(-4, 20))


@pytest.mark.parametrize("seed", range(60))
def test_no_integer_point_is_cut_off(seed: int) -> None:
    rng = Random(f"cuts {seed}")
    size = rng.randint(1, 4)
    lower = tuple(rng.randint(-2, 1) for _ in range(size))
    upper = tuple(low + rng.randint(0, 3) for low in lower)
    rows = [some_row(rng, size) for _ in range(rng.randint(1, 3))]
    inside = list(points(lower, upper, rows))
    for _ in range(20):
        multipliers = {number: rng.randint(-5, 7) for number in range(len(rows))}
        flipped = tuple(v for v in range(size) if rng.random() < 0.5)
        row = rounded(rows, Cut(multipliers, rng.randint(1, 9), flipped), lower, upper)
        assert [point for point in inside if not holds(row, point)] == []
        rows.append(row)


def test_a_cut_takes_what_fractions_would_pass() -> None:
    assert rounded([PlainRow((0,), (700,), 1000)], Cut({0: 1}, 700), (0,), (1,)) == PlainRow((0,), (1,), 1)
    # Shares of 700 on a GPU that is in use or not: at most one, and none on one that is not.
    load = PlainRow((0, 1), (700, -1000), 0)
    assert rounded([load], Cut({0: 1}, 700, (1,)), (0, 0), (9, 1)) == PlainRow((0, 1), (1, -1), 0)


def flagged(rng: Random) -> tuple[list[int], list[int], list[PlainRow]]:
    """Return two nodes with two counts, a flag each that the counts need, and capacities."""
    size, low, high = 6, [0] * 6, [rng.randint(1, 3) for _ in range(4)] + [1, 1]
    rows = [some_row(rng, size) for _ in range(rng.randint(0, 2))]
    for start, flag in ((0, 4), (2, 5)):
        weights = rng.randint(1, 4), rng.randint(1, 4)
        rows.append(PlainRow((start, start + 1), weights, rng.randint(2, 9)))
        needed = rng.randint(1, 2), rng.randint(1, 2)
        rows.append(PlainRow((start, start + 1, flag), (*needed, -(3 * sum(needed))), 0))
    rows.append(PlainRow((0, 4, 5), (1, 2, 1), 4))
    return low, high, rows


@pytest.mark.parametrize("seed", range(40))
def test_what_follows_from_a_model_leaves_its_points(seed: int) -> None:
    rng = Random(f"strong {seed}")
    low, high, rows = flagged(rng)
    groups = {v: [("count", v % 2)] for v in range(4)}
    strong = strengthened(low, high, rows, groups)
    assert strong.rows[: len(rows)] == tuple(rows)
    assert len(strong.lower) > len(low)
    sums = [(v, row.variables[:-1]) for row in strong.rows if (v := row.variables[-1]) >= len(low)]
    for point in points(low, high, rows):
        whole = {**dict(enumerate(point)), **{total: sum(point[v] for v in members) for total, members in sums}}
        values = [whole[v] for v in range(len(strong.lower))]
        assert all(a <= x <= b for a, x, b in zip(strong.lower, values, strong.upper, strict=True))
        assert [row for row in strong.rows if not holds(row, values)] == []


def test_a_capacity_is_tied_to_its_flag() -> None:
    rows = [PlainRow((0, 1), (2, 1), 8), PlainRow((0, 1, 2), (1, 1, -12), 0)]
    strong = strengthened([0, 0, 0], [4, 8, 1], rows, {0: ["a"], 1: ["b"]})
    assert PlainRow((0, 1, 2), (2, 1, -8), 0) in strong.rows
