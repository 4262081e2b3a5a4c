"""What YAML and JSON mean, and where every value stands."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dovetail.documents import Document, json_reader, yaml_reader
from dovetail.documents.scalars import resolve
from dovetail.documents.source import Source, SourceLog, TooManyFaults
from dovetail.faults import FaultLog


def read(text: str, file: str = "x.yaml") -> tuple[list[Document], list[tuple[str, int, int]]]:
    """Return documents and the places of faults."""
    log = FaultLog()
    source = Source(file, text)
    try:
        reader = json_reader.read_json if file.endswith(".json") else yaml_reader.read_yaml
        raws = reader(source, SourceLog(source, log))
    except TooManyFaults:
        raws = []
    places = [(f.code, f.position.line, f.position.column) for f in log.errors if f.position]
    return [Document(source, raw) for raw in raws], places


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NO", "NO"),
        ("on", "on"),
        ("yes", "yes"),
        ("010", 10),
        ("0o17", 15),
        ("0x1f", 31),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("24.50", Decimal("24.50")),
        ("1e3", Decimal("1e3")),
        (".5", Decimal("0.5")),
        ("-7", -7),
        ("+7", 7),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("True", True),
        ("tRUE", "tRUE"),
        ("-", "-"),
        (".", "."),
        ("1.2.3", "1.2.3"),
        ("٣", "٣"),
    ],
)
def test_plain_scalars_mean_what_the_core_schema_says(text: str, value: object) -> None:
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


def test_quoted_scalars_are_text() -> None:
    documents, _ = read("a: '1'\nb: \"true\"\nc: |\n  2\n")
    assert documents[0].value == {"a": "1", "b": "true", "c": "2\n"}


def test_every_value_knows_its_place() -> None:
    text = "# top\n---\nkey: é😀\nlist:\n- a\n- {x: 1, y: [2]}\n---\n  indented: &a {z: 1}\n  again: *a\n"
    (first, second), faults = read(text)
    assert not faults
    assert str(first.position("key")) == "x.yaml:3:6"
    assert str(first.key_position("list")) == "x.yaml:4:1"
    assert str(first.position("list", 1, "y", 0)) == "x.yaml:6:14"
    assert str(first.key_position("list", 1, "y")) == "x.yaml:6:10"
    assert str(first.position("list", 9, "no")) == "x.yaml:5:1"
    assert str(second.position("indented", "z")) == "x.yaml:8:20"
    assert str(second.position("again")) == "x.yaml:9:10"
    assert str(second.position("again", "z")) == "x.yaml:8:20"
    assert first.line_text(3) == "key: é😀"


def test_json_values_know_their_places_too() -> None:
    documents, _ = read('{"a": [1, {"b": "x"}],\n "c": 2.50}', "x.json")
    assert documents[0].value == {"a": [1, {"b": "x"}], "c": Decimal("2.50")}
    assert str(documents[0].position("a", 1, "b")) == "x.json:1:17"
    assert str(documents[0].key_position("c")) == "x.json:2:2"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1, "a": 2}', ("DT1005", 1, 10)),
        ('{"a": NaN}', ("DT1013", 1, 7)),
        ('{"a": "\\ud800"}', ("DT1003", 1, 7)),
        ('{"a": 1e99999}', ("DT1014", 1, 7)),
        ('{"a": ' + "1" * 5000 + "}", ("DT1014", 1, 7)),
        ('{"a": }', ("DT1004", 1, 7)),
        ('{"a": 1,}', ("DT1004", 1, 9)),
        ("[" * 70 + "]" * 70, ("DT1012", 1, 65)),
    ],
)
def test_json_faults_have_their_places(text: str, fault: tuple[str, int, int]) -> None:
    assert read(text, "x.json")[1] == [fault]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a:\n  b: [\n", 2),
        ("a:\n- [1, 2\n- 3\nb: {x: 1\nc: 2\n", 2),
        ("a: [1, {b: 2}\nc: 2\n", 1),
        ("a: {b: \nc: [1]\n", 1),
    ],
)
def test_a_bracket_that_is_not_closed_is_named_by_its_line(text: str, line: int) -> None:
    log, source = FaultLog(), Source("x.yaml", text)
    yaml_reader.read_yaml(source, SourceLog(source, log))
    assert [fault.hint for fault in log.errors] == [f"look at the bracket opened in line {line}"]


def test_aliases_are_copies() -> None:
    documents, _ = read("a: &x {b: [1]}\nc: *x\n")
    value: Any = documents[0].value
    assert value["a"] == value["c"]
    assert value["a"]["b"] is not value["c"]["b"]


def test_aliases_may_not_nest_too_deeply() -> None:
    chain = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 90))
    assert [code for code, _, _ in read(chain)[1]] == ["DT1012"]


def test_the_pure_python_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: &x [1, 'b']\nc: *x\n---\nd: |\n  e\n"
    fast = [document.value for document in read(text)[0]]
    monkeypatch.setattr(yaml_reader, "parser_of", yaml.SafeLoader)
    assert [document.value for document in read(text)[0]] == fast


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text("ab1 :#-'\"\n{}[],&*!é", max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, min_size=1, max_size=3), st.booleans())
def test_what_a_dumper_writes_reads_back(value: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    documents, faults = read(text)
    assert not faults
    assert documents[0].value == value
