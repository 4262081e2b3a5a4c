"""What a node gains by who leaves for whom: no less than any choice gives, and exact where one comes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from random import Random

import pytest

from dovetail.proof.swaps import Coming, Leaving, gained, least_loss, together

Drawn = tuple[tuple[int, ...], list[Leaving], list[Coming[int]]]
SIZES = 3


def drawn(seed: int, most: int) -> Drawn:
    rng = Random(seed)
    free = tuple(rng.randrange(4) for _ in range(SIZES))
    leaving = [
        Leaving(rng.randint(1, 6), tuple(rng.randrange(5) for _ in range(SIZES))) for _ in range(rng.randint(0, 5))
    ]
    coming = [
        Coming(number, rng.randint(1, 9), tuple(rng.randrange(7) for _ in range(SIZES)), rng.randint(1, most))
        for number in range(rng.randint(1, most + 1))
    ]
    return free, leaving, coming


def worth(coming: Sequence[Coming[int]]) -> int:
    return sum(each.worth * each.room for each in coming)


def best(free: tuple[int, ...], leaving: Sequence[Leaving], coming: Sequence[Coming[int]], least: int = 0) -> int:
    """Return the greatest gain of all choices that lose some amount at the least."""
    found = 0
    for size in range(len(leaving) + 1):
        for gone in combinations(leaving, size):
            loss = sum(each.loss for each in gone)
            room = [left + sum(each.freed[d] for each in gone) for d, left in enumerate(free)]
            for counts in product(*(range(each.room + 1) for each in coming)) if loss >= least else ():
                taken = [sum(n * each.needs[d] for n, each in zip(counts, coming, strict=True)) for d in range(SIZES)]
                if all(a <= b for a, b in zip(taken, room, strict=True)):
                    found = max(found, sum(n * each.worth for n, each in zip(counts, coming, strict=True)) - loss)
    return found


@pytest.mark.parametrize("seed", range(150))
def test_no_choice_gains_more(seed: int) -> None:
    free, leaving, coming = drawn(seed, 2)
    lost = min((each.loss for each in leaving), default=0)
    assert gained(free, leaving, coming, worth, 0) >= best(free, leaving, coming)
    assert gained(free, leaving, coming, worth, lost) >= best(free, leaving, coming, lost)


@pytest.mark.parametrize("seed", range(80))
def test_for_one_that_comes_it_is_exact(seed: int) -> None:
    free, leaving, coming = drawn(seed, 1)
    one = coming[:1]
    assert gained(free, leaving, one, worth, 0) == best(free, leaving, one)


def test_two_of_another_kind_leave_for_cpu() -> None:
    """One with 4 GPUs and 50 cores finds 4 idle GPUs and 10 cores; only work of 20 cores each is in its way."""
    loaders = sorted([Leaving(100, (20, 0)), Leaving(100, (20, 0)), Leaving(300, (60, 0))])
    assert least_loss(loaders, (40, 0), 1000) == 200
    assert gained((10, 4), loaders, [Coming("w", 150, (50, 4), 1)], lambda found: 150, 100) == 0


def test_what_is_shared_is_counted_once() -> None:
    coming = [Coming("a", 5, (3,), 2), Coming("b", 4, (4,), 1)]
    assert together(coming, 0, 7) == 5 + 5 + 1  # two of the first, and a quarter of the other
