"""What the small writer of YAML makes reads back as what went in."""

from __future__ import annotations

from decimal import Decimal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dovetail.importers import emit

_printable = st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
_values = st.recursive(
    _printable | st.integers(0, 10**9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_printable, inner, max_size=4),
    max_leaves=8,
)


@given(_values)
def test_what_is_written_on_one_line_reads_back(value: emit.Value) -> None:
    assert yaml.safe_load(emit.inline(value)) == value


@pytest.mark.parametrize("word", ["p-0001", "384Gi", "V100-16GB", "workloads/x.yaml", "openb-node-0000"])
def test_usual_names_need_no_quotes(word: str) -> None:
    assert emit.text(word) == word


@pytest.mark.parametrize("word", ["", "NO", "true", "Null", "~", "1e5", "0x1F", "12", "a: b", "gpu-[1-2]", "-"])
def test_what_a_reader_may_take_for_something_else_is_quoted(word: str) -> None:
    assert emit.text(word) == f'"{word}"'


def test_fractions_are_exact() -> None:
    assert emit.inline({"share": {"compute": Decimal("0.81")}, "gpus": 8}) == "{share: {compute: 0.81}, gpus: 8}"


def test_a_comment_cannot_end_early() -> None:
    assert emit.comment("a\nb\u2028c\x85", "") == ["# a?b?c?", "#"]
