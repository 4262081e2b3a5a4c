"""Items are left out of pricing only where as much is earned without them."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import pytest

from dovetail.engine.contents.dominance import Dominance

ROOM = np.array([8, 20])
Rows = list[tuple[int, tuple[int, int], float, int]]  # kind, size, worth, how many there are


def some(source: Random) -> Rows:
    sizes = [(source.choice((1, 1, 2, 4)), source.randint(0, 10)) for _ in range(4)]
    return [
        (source.randint(0, 1), source.choice(sizes), float(source.randint(1, 9)), source.choice((1, 2, 5, 30)))
        for _ in range(source.randint(1, 8))
    ]


def kept_of(items: Rows) -> list[int]:
    kinds, sizes, worth, limit = zip(*items, strict=True)
    compared = Dominance(kinds, np.array(sizes), ROOM)
    rows = np.arange(len(items))
    return list(compared.undominated(rows, np.array(worth), np.array(limit)).tolist())


def best(items: Rows) -> float:
    """Return the most that fits, by trying all."""

    @cache
    def most(number: int, gpus: int, cores: int) -> float:
        if number == len(items):
            return 0.0
        _, (size, taken), worth, limit = items[number]
        found, count = 0.0, 0
        while count <= limit and count * size <= gpus and count * taken <= cores:
            found = max(found, count * worth + most(number + 1, gpus - count * size, cores - count * taken))
            count += 1
        return found

    return most(0, int(ROOM[0]), int(ROOM[1]))


def test_as_much_is_earned_without_items_that_are_left_out() -> None:
    left_out = 0
    for seed in range(400):
        items = some(Random(seed))
        kept = kept_of(items)
        assert best([items[i] for i in kept]) == best(items)
        left_out += len(items) - len(kept)
    assert left_out > 400


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        pytest.param([(0, (1, 2), 5.0, 8), (0, (2, 3), 4.0, 8)], [0], id="larger and worth less"),
        pytest.param([(0, (1, 2), 5.0, 7), (0, (2, 3), 4.0, 8)], [0, 1], id="too few that are better"),
        pytest.param([(0, (1, 2), 5.0, 8), (1, (2, 3), 4.0, 8)], [0, 1], id="somewhere else on the node"),
        pytest.param([(0, (1, 4), 5.0, 8), (0, (2, 3), 4.0, 8)], [0, 1], id="smaller in something"),
        pytest.param([(0, (1, 2), 4.0, 8), (0, (1, 2), 4.0, 8)], [0], id="the first of equals"),
        pytest.param([(0, (1, 2), 3.0, 4), (0, (1, 2), 5.0, 4), (0, (1, 2), 4.0, 4)], [1, 2], id="enough together"),
    ],
)
def test_which_items_are_left_out(items: Rows, kept: list[int]) -> None:
    assert kept_of(items) == kept
