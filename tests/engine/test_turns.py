"""Ways to make a state better take turns: who finds something goes on, who has ended is not asked again."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from dovetail.engine import turns
from dovetail.engine.budget import Budget
from dovetail.engine.turns import in_turns, longer

AMPLE = Budget(1000.0)


def way(name: str, steps: list[bool], told: list[str]) -> Iterator[bool]:
    """Return a way that tells of its steps when they are taken."""
    for found in steps:
        told.append(name)
        yield found


def test_every_way_is_taken_to_its_end() -> None:
    told: list[str] = []
    in_turns([way("a", [True] * 50, told), way("b", [], told), way("c", [False] * 7, told)], AMPLE)
    assert told.count("a") == 50
    assert told.count("c") == 7


def test_a_way_in_vain_gives_way_and_one_that_finds_something_goes_on() -> None:
    told: list[str] = []
    vain = turns._VAIN
    lucky = [False] * (vain - 1) + [True] + [False] * (2 * vain)
    in_turns([way("a", lucky, told), way("b", [False] * (2 * vain), told)], AMPLE)
    runs = [(name, len(list(steps))) for name, steps in groupby(told)]
    assert runs == [("a", 2 * vain), ("b", vain), ("a", vain), ("b", vain)]


def test_even_a_way_that_always_finds_something_lets_others_have_their_turn() -> None:
    told: list[str] = []
    in_turns([way("a", [True] * (2 * turns._MOST), told), way("b", [False], told)], AMPLE)
    assert told.index("b") == turns._MOST


def test_a_way_of_long_steps_has_fewer_of_them_in_its_turn() -> None:
    told: list[str] = []
    budget = Budget(100.0)

    def long() -> Iterator[bool]:
        for _ in range(20):
            budget.work -= 4.0
            told.append("long")
            yield True

    in_turns([long(), way("b", [True] * 5, told)], budget)
    assert told[:4] == ["long", "long", "long", "b"]
    assert told.count("long") == 20
    assert told.count("b") == 5


def test_several_steps_in_vain_are_one_and_who_finds_something_tells_at_once() -> None:
    told: list[str] = []
    steps = longer(way("a", [False] * 3 + [True] + [False] * 4, told), lambda: 2)
    assert list(steps) == [False, True, False, False]
    assert len(told) == 8
