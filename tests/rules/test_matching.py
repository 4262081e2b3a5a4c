"""A matching gives places to the most: as many as trying everything."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from dovetail.rules.matching import matched

HOSTS = "abcd"
KINDS = st.dictionaries(st.sampled_from("xyz"), st.tuples(st.integers(0, 3), st.sets(st.sampled_from(HOSTS))))
FREE = st.dictionaries(st.sampled_from(HOSTS), st.integers(0, 3))


def trying_everything(asking: list[set[str]], free: Mapping[str, int]) -> int:
    """Return how many of those that ask, each with its hosts, have a place at the most."""
    if not asking:
        return 0
    first, *rest = asking
    best = trying_everything(rest, free)
    for name in sorted(first):
        if free.get(name, 0):
            best = max(best, 1 + trying_everything(rest, {**free, name: free[name] - 1}))
    return best


@given(KINDS, FREE)
def test_as_many_have_places_as_by_trying_everything(
    asking: dict[str, tuple[int, set[str]]], free: dict[str, int]
) -> None:
    each = [hosts for count, hosts in asking.values() for _ in range(count)]
    assert matched(asking, free) == trying_everything(each, free)


def test_who_has_a_choice_changes_places_along_a_chain() -> None:
    asking = {"any": (1, "abc"), "some": (1, "ab"), "few": (1, "a")}
    assert matched(asking, {"a": 1, "b": 1, "c": 1}) == 3
