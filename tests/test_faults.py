"""Faults are sorted, rendered with a caret, and written as a document."""

from __future__ import annotations

import pytest

from dovetail.documents.document import Document
from dovetail.documents.reading import Checker
from dovetail.documents.schema import shipped_schemas
from dovetail.documents.source import Source
from dovetail.documents.yaml_reader import RawDocument
from dovetail.faults import CODES, Fault, FaultLog, Position, Refused, nearest, render_fault, to_document

HERE = Fault("DT1101", "unknown field 'a'", Position("f.yaml", 2, 3), "did you mean b?", source_line="  a: 1")


def test_a_fault_shows_its_line_with_a_caret() -> None:
    assert render_fault(HERE) == (
        "f.yaml:2:3: error DT1101: unknown field 'a'\n  |   a: 1\n  |   ^\n  hint: did you mean b?"
    )


def test_a_very_long_line_is_cut_around_the_caret() -> None:
    long = Fault("DT1004", "m", Position("f", 1, 5001), source_line="x" * 5000 + "Y" + "x" * 5000)
    _, line, caret = render_fault(long).split("\n")
    assert len(line) < 200
    assert line[caret.index("^")] == "Y"


@pytest.mark.parametrize(("before", "cells"), [("a: caf\u00e9 ", 8), ("a: \u5de5\u4f5c ", 8), ("a: e\u0301 ", 5)])
def test_the_caret_stands_below_its_character_on_a_terminal(before: str, cells: int) -> None:
    fault = Fault("DT1004", "m", Position("f", 1, len(before) + 1), source_line=f"{before}x")
    assert render_fault(fault).endswith(f"\n  | {' ' * cells}^")


def test_terminal_escapes_in_a_line_are_not_shown() -> None:
    assert "\x1b" not in render_fault(Fault("DT1004", "m", Position("f", 1, 1), source_line="\x1b[31mred"))


def test_a_name_of_a_file_cannot_pass_for_a_line() -> None:
    text = render_fault(Fault("DT1004", "m", Position("a\n::error::b.yaml", 1, 1)))
    assert text == "a?::error::b.yaml:1:1: error DT1004: m"


def test_faults_are_sorted_by_place_and_told_once() -> None:
    log = FaultLog()
    log.add("DT1001", "no place")
    log.add("DT1004", "late", Position("b", 1, 1))
    log.add("DT1004", "early", Position("a", 9, 9))
    log.add("DT1004", "early", Position("a", 9, 9))
    log.add("DT1901", "only a warning", severity="warning")
    with pytest.raises(Refused) as caught:
        log.raise_if_errors()
    assert [fault.message for fault in caught.value.faults] == ["early", "late", "no place"]
    assert [fault.message for fault in log.warnings] == ["only a warning"]


def test_the_document_of_faults_fits_its_schema() -> None:
    document = to_document([HERE, Fault("DT1001", "no place", None)])
    assert not Checker(shipped_schemas()).faults(Document(Source("x", ""), RawDocument(document, 0, 0)))


@pytest.mark.parametrize(
    ("word", "found"), [("replica", "replicas"), ("REPLICAS", "replicas"), ("zzz", None), ("r" * 1000, None)]
)
def test_the_nearest_choice(word: str, found: str | None) -> None:
    assert nearest(word, ["replicas", "roles"]) == found


def test_every_code_is_explained() -> None:
    for code, info in CODES.items():
        assert code.startswith("DT")
        assert len(code) == 6
        assert info.title
        assert info.explanation.endswith(".")
