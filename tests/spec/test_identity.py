"""Texts of replicas and ranges of them: read, written, and refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.spec import ReplicaId
from dovetail.spec.identity import IdentityError, ReplicaRange, parse_range, speaks_of

NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)
REPLICAS = st.builds(
    lambda namespace, name, role, index: ReplicaId(f"{namespace}/{name}" if namespace else name, role, index),
    st.just("") | NAMES,
    NAMES,
    st.just("") | NAMES,
    st.integers(0, 999_999_999),
)


@given(REPLICAS)
def test_the_text_of_a_replica_gives_it_back(replica: ReplicaId) -> None:
    assert list(parse_range(str(replica)).replicas()) == [replica]


@given(REPLICAS, st.integers(0, 500))
def test_the_text_of_a_range_gives_it_back(replica: ReplicaId, more: int) -> None:
    first = min(replica.ordinal, 999_999_999 - more)
    found = ReplicaRange(replica.workload, replica.role, first, first + more)
    assert parse_range(str(found)) == found
    assert found.size == more + 1 == len(list(found.replicas()))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("w#0", ReplicaRange("w", "", 0, 0)),
        ("team/w.lead#3", ReplicaRange("team/w", "lead", 3, 3)),
        ("team/w#0-411", ReplicaRange("team/w", "", 0, 411)),
        ("w#5-5", ReplicaRange("w", "", 5, 5)),
    ],
)
def test_what_is_read(text: str, wanted: ReplicaRange) -> None:
    assert parse_range(text) == wanted


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("w", "is not a replica"),
        ("w#", "is not a replica"),
        ("w#-1", "is not a replica"),
        ("w#1\n", "is not a replica"),
        ("W#1", "is not a replica"),
        ("a/b/c#1", "is not a replica"),
        ("w.a.b#1", "is not a replica"),
        (f"{'w' * 64}#1", "is not a replica"),
        ("w#1000000000", "is not a replica"),
        ("w#\u0661", "is not a replica"),
        ("w#01", "leading zeros"),
        ("w#0-01", "leading zeros"),
        ("w#3-2", "runs backwards"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(IdentityError, match=reason):
        parse_range(text)


@pytest.mark.parametrize(
    ("row", "subjects", "others"),
    [
        ("a/b.c#2-4", ["a/b.c#2", "a/b.c#4", "a/b.c", "a/b"], ["a/b.c#1", "a/b.c#5", "a/b#2", "a", "b"]),
        ("w#7", ["w#7", "w"], ["w#0", "w#70", "w.c", "v"]),
    ],
)
def test_a_row_speaks_of_its_replicas_its_role_and_its_workload(
    row: str, subjects: list[str], others: list[str]
) -> None:
    assert all(speaks_of(row, subject) for subject in subjects)
    assert not any(speaks_of(row, subject) for subject in others)
