"""Canonical formatting of YAML documents: comments and meaning stay, spacing and the order of the first keys do not.

The text is never written anew from values: only the white space between tokens is replaced, and whole blocks of lines
are moved. Whatever the result is, it is read again and must mean the same and hold the same comments; otherwise the
text is left as it is.
"""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import islice
from typing import Any, Final

import yaml
from yaml import tokens as tk

from dovetail.documents.document import is_json
from dovetail.documents.kinds import WRITTEN_KINDS
from dovetail.documents.layout import laid_out, pieces, scalar_lines
from dovetail.documents.source import Source, SourceLog, TooManyFaults, checked
from dovetail.documents.yaml_reader import RawDocument, read_yaml
from dovetail.faults import FaultLog

_FIRST_KEYS: Final = ("apiVersion", "kind", "metadata", "spec")
_MOST_TOKENS: Final = 50_000
_COMMENT: Final = re.compile(r"#[^\r\n]*")
_TOP_KEY: Final = re.compile(r"([A-Za-z]+)[ \t]*:(?=[ \t]|$)")


def format_text(text: str, file: str) -> str:
    """Return the canonical form of a text; JSON and what dovetail writes itself stay as they are.

    So does a text of more than 50,000 tokens: no person laid that out, and laying it out takes several passes.

    Raises
    ------
    Refused
        When the text cannot be read.
    """
    values = _values(text, file)
    kinds = [value.get("kind") for value in values if isinstance(value, dict)]
    if is_json(file) or all(kind in WRITTEN_KINDS for kind in kinds):
        return text
    if sum(1 for _ in islice(pieces(text.removeprefix("\ufeff")), _MOST_TOKENS + 1)) > _MOST_TOKENS:
        return text
    comments = sorted(_comments(text))
    for form in (_reordered, _same_order):
        try:
            candidate = form(text)
            if _means(candidate, file, values, comments) and form(candidate) == candidate:
                return candidate
        except (yaml.YAMLError, TooManyFaults):
            # White space with a meaning was taken for one without: the next form leaves more as it is.
            continue
    return text


def kinds_in(text: str, file: str) -> frozenset[str]:
    """Return the kinds of the documents in a YAML text, whatever else is wrong with them; none of JSON.

    Raises
    ------
    Refused
        When the text cannot be read.
    """
    found = (value.get("kind") for value in _values(text, file) if isinstance(value, dict))
    return frozenset(kind for kind in found if isinstance(kind, str))


def _same_order(text: str) -> str:
    """Return the text laid out anew, with its keys in their order."""
    clean = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _spaced(laid_out(clean))


def _reordered(text: str) -> str:
    """Return the text laid out anew, with the first keys of each document in canonical order."""
    return _spaced(_in_key_order(_same_order(text)))


def _values(text: str, file: str) -> list[Any]:
    log = FaultLog()
    source = checked(Source(file, text.removeprefix("\ufeff")), log)
    if source is None or is_json(file):
        log.raise_if_errors()
        return []
    raws: list[RawDocument] = []
    with suppress(TooManyFaults):
        raws = read_yaml(source, SourceLog(source, log))
    log.raise_if_errors()
    return [raw.value for raw in raws]


def _means(text: str, file: str, values: list[Any], comments: list[str]) -> bool:
    """Whether a text has these values and comments."""
    log = FaultLog()
    source = Source(file, text)
    found = [raw.value for raw in read_yaml(source, SourceLog(source, log))]
    return not log.errors and _identical(found, values) and sorted(_comments(text)) == comments


def _identical(left: Any, right: Any) -> bool:
    """Whether two values are the same to the digit; the order of keys is free."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_identical(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_identical, left, right))
    return str(left) == str(right)


def _comments(text: str) -> list[str]:
    clean = text.removeprefix("\ufeff")
    found, end = [], 0
    for piece in pieces(clean):
        found += _COMMENT.findall(clean, end, piece.start)
        end = piece.end
    found += _COMMENT.findall(clean, end)
    return [comment.rstrip() for comment in found]


def _spaced(text: str) -> str:
    """Return the text without white space at line ends, and with single blank lines between things."""
    inside = scalar_lines(list(pieces(text)))
    lines: list[str] = []
    for number, line in enumerate(text.split("\n")):
        stripped = line if number in inside else line.rstrip(" \t")
        after_start = not lines or lines[-1] in ("", "---")
        if stripped or number in inside or not after_start:
            if stripped.startswith("---") and number not in inside:
                while lines and lines[-1] == "" and number - 1 not in inside:
                    lines.pop()
            lines.append(stripped)
    while lines and lines[-1] == "":
        lines.pop()
    return "\n".join([*lines, ""])


def _in_key_order(text: str) -> str:
    """Return the text with the first keys of each document in canonical order."""
    found = list(pieces(text))
    inside = scalar_lines(found)
    lines = text.removesuffix("\n").split("\n")
    starts = {piece.line for piece in found if piece.kind is tk.KeyToken and piece.column == 0}
    result: list[str] = []
    document: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        if number not in inside and line.startswith(("---", "...")):
            result += [*_in_order(document, starts, inside), line]
            document = []
        else:
            document.append((number, line))
    return "\n".join([*result, *_in_order(document, starts, inside), ""])


def _in_order(lines: list[tuple[int, str]], starts: set[int], inside: set[int]) -> list[str]:
    """Return the lines of one document with its blocks in canonical order."""
    header, blocks = _blocks(lines, starts, inside)
    ranks = {key: rank for rank, key in enumerate(_FIRST_KEYS)}
    blocks.sort(key=lambda block: ranks.get(block[0], len(ranks)))
    return header + [line for _, block in blocks for line in block]


def _blocks(
    lines: list[tuple[int, str]], starts: set[int], inside: set[int]
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Split a document into what stands before it and one block of lines per key, comments above it included."""
    header: list[str] = []
    blocks: list[tuple[str, list[str]]] = []
    for at, (number, line) in enumerate(lines):
        current = blocks[-1][1] if blocks else header
        if number not in starts:
            current.append(line)
            continue
        above = _comments_above(lines, at, inside) if current else []
        del current[len(current) - len(above) :]
        if not blocks and not header and above:
            # A comment that opens the document speaks of all of it.
            header, above = above, []
        key = _TOP_KEY.match(line)
        blocks.append((key.group(1) if key else "", [*above, line]))
    return header, blocks


def _comments_above(lines: list[tuple[int, str]], at: int, inside: set[int]) -> list[str]:
    """Return the comments that stand directly above a line."""
    first = at
    while first > 0 and lines[first - 1][0] not in inside and lines[first - 1][1].startswith("#"):
        first -= 1
    return [line for _, line in lines[first:at]]
