"""Hostlists: what is read, what is refused and where, and that folding loses nothing."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.hostlist import MAX_NAMES, HostlistError, count, expand, fold

ACCEPTED = [
    ("gpu-1", ["gpu-1"]),
    ("gpu-[1-3]", ["gpu-1", "gpu-2", "gpu-3"]),
    ("gpu-[08-11]", ["gpu-08", "gpu-09", "gpu-10", "gpu-11"]),
    ("gpu-[8-11]", ["gpu-8", "gpu-9", "gpu-10", "gpu-11"]),
    ("gpu-[09,12-13]x", ["gpu-09x", "gpu-12x", "gpu-13x"]),
    ("r[1-2]n[01-02]", ["r1n01", "r1n02", "r2n01", "r2n02"]),
    ("a, b ,c[1,1]", ["a", "b", "c1", "c1"]),
    ("[998-1001].example.org", [f"{number}.example.org" for number in range(998, 1002)]),
    ("[0-1]_A.b", ["0_A.b", "1_A.b"]),
    ("n[1][2]", ["n12"]),
]

REFUSED = [
    ("", 0, "a name is missing"),
    ("a,,b", 2, "a name is missing"),
    ("a, ", 3, "a name is missing"),
    ("gpu-[1-3", 4, "not closed"),
    ("gpu-1]", 5, "without an opening one"),
    ("gpu-[1-[2]]", 7, "nested"),
    ("gpu-[]", 5, "a number is missing"),
    ("gpu-[1,]", 7, "a number is missing"),
    ("gpu-[1,a]", 7, "expected a number or a range"),
    ("gpu-[1 -3]", 5, "expected a number or a range"),
    ("gpu-[-3]", 5, "expected a number or a range"),
    ("gpu-[1-2-3]", 5, "expected a number or a range"),
    ("gpu-[3-1]", 5, "runs backwards: 3 is above 1"),
    ("gpu-[1-064]", 5, "padded to different widths"),
    ("gpu-[001-64]", 5, "padded to different widths"),
    ("gpu-[1,100-9]", 7, "runs backwards"),
    ("gpu/1", 3, "'/' is not allowed"),
    ("gpu 1", 3, "' ' is not allowed"),
    ("gpü-[1-2]", 2, "'ü' is not allowed"),
    ("gpu-[\uff11-\uff12]", 5, "expected a number or a range"),
    ("a#1,b", 1, "'#' is not allowed"),
    ("n[1-9999999999999999]", 2, "more than 15 digits"),
    ("n[1-1000000]", 0, "stands for 1,000,000 names, and at most 200,000"),
    ("n[0-999][0-999][0-999]", 0, "stands for 1,000,000,000 names"),
    ("x" * 254, 0, "longer than 253"),
    ("x" * 250 + "[1-2][100-200]", 0, "longer than 253"),
    ("x" * 1_000_001, 1_000_000, "longer than 1,000,000 characters"),
]

FOLDED = [
    ([], []),
    (["login"], ["login"]),
    ([f"gpu-{number:03}" for number in range(1, 65)] + ["gpu-070"], ["gpu-[001-064,070]"]),
    ([f"h100-{number}" for number in range(12)], ["h100-[0-11]"]),
    (["n08", "n09", "n10", "n9"], ["n[9,08-10]"]),
    (["n1", "n01", "n2", "n02"], ["n[1-2,01-02]"]),
    (["n999", "n1000", "n998"], ["n[998-1000]"]),
    ([f"r{rack}n{node:02}" for rack in (1, 2, 4) for node in range(1, 17)], ["r[1-2,4]n[01-16]"]),
    (["r1n1", "r1n2", "r2n1"], ["r1n[1-2]", "r2n1"]),
    (["a", "a", "b1", "b1"], ["a", "a", "b[1,1]"]),
    (
        ["serial-1234567890123456", "serial-1234567890123457"],
        ["serial-1234567890123456", "serial-1234567890123457"],
    ),
    (["ip-10-0-3-7.ec2.internal", "ip-10-0-3-8.ec2.internal"], ["ip-10-0-3-[7-8].ec2.internal"]),
]

_words = st.text(alphabet="ab.-_", max_size=3)
_numbers = st.one_of(st.integers(0, 130).map(str), st.integers(0, 130).map("{:03}".format))
_names = st.lists(st.tuples(_words, _numbers), min_size=1, max_size=3).map(
    lambda pieces: "".join(word + number for word, number in pieces)
)
_any_names = st.one_of(_names, st.text(alphabet="ab019-._", min_size=1, max_size=20))


@pytest.mark.parametrize(("text", "names"), ACCEPTED)
def test_expand_spells_out_the_names_in_their_order(text: str, names: list[str]) -> None:
    assert expand(text) == names
    assert count(text) == len(names)


@pytest.mark.parametrize(("text", "offset", "reason"), REFUSED)
def test_expand_refuses_with_the_place_and_the_reason(text: str, offset: int, reason: str) -> None:
    with pytest.raises(HostlistError) as caught:
        expand(text)
    assert reason in caught.value.reason
    assert caught.value.offset == offset
    assert caught.value.text == text


def test_the_limit_is_the_callers_to_lower() -> None:
    assert len(expand("n[1-5]", limit=5)) == 5
    with pytest.raises(HostlistError, match="stands for 5 names, and at most 4"):
        expand("n[1-5]", limit=4)


def test_counting_a_huge_hostlist_makes_no_names() -> None:
    assert count("n[1-999999999999][1-999999999999]") == 999999999999**2 > MAX_NAMES


@pytest.mark.parametrize(("names", "texts"), FOLDED)
def test_fold_writes_the_expected_hostlists(names: list[str], texts: list[str]) -> None:
    assert fold(names) == texts


def test_fold_starts_a_new_hostlist_when_a_bracket_has_many_runs() -> None:
    texts = fold(f"n{number}" for number in range(0, 50, 2))
    assert texts == ["n[0,2,4,6,8,10,12,14,16,18,20,22]", "n[24,26,28,30,32,34,36,38,40,42,44,46]", "n[48]"]


@pytest.mark.parametrize("name", ["", "a b", "a[1]", "a,b", "ä", "x" * 254])
def test_fold_refuses_names_that_a_hostlist_cannot_hold(name: str) -> None:
    with pytest.raises(HostlistError):
        fold(["good", name])


@given(st.lists(_any_names, max_size=40))
def test_expanding_what_was_folded_gives_the_same_names(names: list[str]) -> None:
    texts = fold(names)
    assert Counter(name for text in texts for name in expand(text)) == Counter(names)
    assert sum(map(count, texts)) == len(names)


@given(st.lists(_any_names, max_size=40), st.randoms(use_true_random=False))
def test_folding_does_not_depend_on_the_order(names: list[str], source: random.Random) -> None:
    shuffled = names[:]
    source.shuffle(shuffled)
    assert fold(shuffled) == fold(names)


@given(st.text(alphabet="a0189[]-, ", max_size=24))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    try:
        names = expand(text, limit=5000)
    except HostlistError as error:
        names, offset = [], error.offset
    else:
        offset = 0
        assert len(names) == count(text)
    assert 0 <= offset <= len(text)
    assert Counter(name for part in fold(names) for name in expand(part)) == Counter(names)
