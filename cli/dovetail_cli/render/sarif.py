"""Annotations as SARIF 2.1.0 (OASIS standard, March 2020), for code scanning and editors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from dovetail import __version__
from dovetail.faults import CODES, Position
from dovetail_cli.render.annotation import Annotation, Level, fingerprints
from dovetail_cli.render.words import printable

_LEVELS: dict[Level, str] = {"error": "error", "warning": "warning", "notice": "note"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_WORDS = {
    "expectation-missed": "An expectation of a test or scenario does not hold.",
    "undecided": "A search had no answer within its limits.",
    "conflict": "Hard policies cannot hold together, so there is no plan.",
    "infeasible": "There is no plan.",
    "policy-fails": "A policy fails on the plan.",
    "policy-excused": "A policy is broken, but no more than today already.",
    "not-admitted": "A workload is not admitted in full.",
    "stale-plan": "The plan was made for other documents.",
    "not-checked": "A check needs what was not given.",
}


def rendered(annotations: Iterable[Annotation]) -> str:
    """Return annotations as text, with one run of one tool."""
    listed = list(annotations)
    rules = sorted({each.rule for each in listed})
    marks = fingerprints(listed)
    run = {
        "tool": {"driver": {"name": "dovetail", "version": __version__, "rules": [_rule(name) for name in rules]}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(each, rules.index(each.rule), mark) for each, mark in zip(listed, marks, strict=True)],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(name: str) -> dict[str, Any]:
    code = CODES.get(name)
    if code is None:
        return {"id": printable(name), "shortDescription": {"text": _WORDS.get(name, printable(name))}}
    short, full = {"text": code.title}, {"text": code.explanation}
    return {"id": name, "shortDescription": short, "fullDescription": full}


def _result(each: Annotation, rule: int, fingerprint: str) -> dict[str, Any]:
    words = each.message if each.title == each.rule else f"{each.title}: {each.message}"
    return {
        "ruleId": printable(each.rule),
        "ruleIndex": rule,
        "level": _LEVELS[each.level],
        "message": {"text": printable(words, keep="\n")},
        **({"locations": [_location(each.position)]} if each.position else {}),
        "partialFingerprints": {"dovetail/v1": fingerprint},
    }


def _location(place: Position) -> dict[str, Any]:
    region = {"startLine": place.line, "startColumn": place.column}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(place.file)}, "region": region}}


def _uri(file: str) -> str:
    """Return a file's name as a reference: relative as it is told, `file:` for an absolute one."""
    text = quote(file.replace("\\", "/").encode("utf-8", "surrogateescape"), safe="/")
    return f"file://{text}" if text.startswith("/") else text
