"""Canonical formatting keeps meaning and comments, and changes nothing the second time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.documents import Document
from dovetail.documents.format import format_text
from dovetail.documents.source import Source, SourceLog
from dovetail.documents.yaml_reader import read_yaml
from dovetail.faults import FaultLog, Refused

HERE = Path(__file__).resolve().parent
FILES = sorted(path for folder in ("refused", "accepted") for path in (HERE / folder).glob("*.yaml"))

UNTIDY = """

# about the file

spec:
    # the groups
    nodeGroups:
        -   name:    h100     # inline
            gpus : 8


            text: |
                keep
                  this

            # about labels
            labels: { a: "b",c: d , "e":f }
    folded: a b
       c d
# about the kind
kind: Cluster
apiVersion:   dovetail/v1alpha1
metadata: {name: a}
"""
TIDY = """# about the file

apiVersion: dovetail/v1alpha1
# about the kind
kind: Cluster
metadata: {name: a}
spec:
  # the groups
  nodeGroups:
  - name: h100     # inline
    gpus: 8

    text: |
        keep
          this

    # about labels
    labels: {a: "b", c: d, "e": f}
  folded: a b
     c d
"""


def values(text: str) -> list[Any]:
    log = FaultLog()
    source = Source("x.yaml", text)
    found = [Document(source, raw).value for raw in read_yaml(source, SourceLog(source, log))]
    log.raise_if_errors()
    return found


def test_an_untidy_document_becomes_tidy() -> None:
    assert format_text(UNTIDY, "x.yaml") == TIDY


def test_a_tidy_document_stays() -> None:
    assert format_text(TIDY, "x.yaml") == TIDY


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_meaning_and_comments_stay(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", errors="replace")
    with suppress(Refused):
        formatted = format_text(text, path.name)
        assert values(formatted) == values(text)
        assert formatted.count("#") == text.count("#")
        assert format_text(formatted, path.name) == formatted


def test_line_ends_of_other_systems_become_ours() -> None:
    assert format_text("kind: A\r\na: 1\r\n", "x.yaml") == "kind: A\na: 1\n"


def test_written_kinds_and_json_stay_as_they_are() -> None:
    assert format_text("kind:   Plan\n\n\n", "x.yaml") == "kind:   Plan\n\n\n"
    assert format_text('{"kind":   "Cluster"}', "x.json") == '{"kind":   "Cluster"}'


@pytest.mark.parametrize("kind", ["[a]", "{a: 1}", "", "1"])
def test_a_kind_that_is_no_text_is_no_defect(kind: str) -> None:
    assert values(format_text(f"kind:   {kind}\n", "x.yaml")) == values(f"kind: {kind}\n")


def test_an_anchor_is_never_moved_behind_its_alias() -> None:
    text = "spec: &a {x: 1}\nkind: A\nmetadata: *a\n"
    formatted = format_text(text, "x.yaml")
    assert values(formatted) == values(text)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(Refused):
        format_text("a: [", "x.yaml")


TEXTS = st.text("ab1 :#-'\"\n", max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=15,
)


@settings(max_examples=150)
@given(
    st.dictionaries(st.sampled_from(["metadata", "spec", "kind", "apiVersion", "extra"]), VALUES),
    st.sampled_from([None, True, False]),
    st.integers(2, 6),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["# note", "", "   # deep", "  "])), max_size=4),
)
def test_formatting_is_idempotent_and_keeps_meaning(
    value: dict[str, Any], flow: bool | None, indent: int, notes: list[tuple[int, str]]
) -> None:
    lines = yaml.safe_dump({**value, "kind": "A"}, default_flow_style=flow, indent=indent, sort_keys=False).split(
        "\n"
    )
    for at, note in notes:
        lines.insert(at, note)
    text = "\n".join(lines)
    try:
        before = values(text)
    except Refused:
        return
    once = format_text(text, "x.yaml")
    assert values(once) == before
    assert format_text(once, "x.yaml") == once


def test_a_comment_at_the_end_of_a_block_stays_in_it() -> None:
    text = (
        "apiVersion: dovetail/v1alpha1\nkind: Cluster\nspec:\n    nodeGroups:\n        - name: g\n          gpus: 8\n"
        "          # cpu: 96\n        # - name: h\n    # bandwidth: {}\n"
        "metadata:\n      # the name\n    name: c\n    # end\n"
    )
    wanted = (
        "apiVersion: dovetail/v1alpha1\nkind: Cluster\nmetadata:\n  # the name\n  name: c\n  # end\n"
        "spec:\n  nodeGroups:\n  - name: g\n    gpus: 8\n    # cpu: 96\n  # - name: h\n  # bandwidth: {}\n"
    )
    assert format_text(text, "c.yaml") == wanted
