"""The canonical form of documents that people write, as far as it can be had without touching their comments.

Lines end in one line feed and carry no trailing blanks; blank lines stand alone; a document starts with apiVersion,
kind, metadata, spec. Everything else is the author's. The text must mean the same afterwards, or it stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from dovetail.documents.reading import read_source
from dovetail.documents.source import Source
from dovetail.faults import FaultLog

FIRST = ("apiVersion", "kind", "metadata", "spec")

_KEY = re.compile(r"([A-Za-z][A-Za-z0-9]*)[ \t]*:(?:[ \t]|$)")
_BREAK = re.compile(r"\r\n?")


def formatted(text: str, file: str) -> str:
    """Return a file's text in its canonical form.

    Raises
    ------
    Refused
        When it cannot be read at all.
    """
    before = _values(text, file)
    changed = _formatted(text)
    return changed if _values(changed, file) == before else text


def _values(text: str, file: str) -> list[dict[str, Any]]:
    log = FaultLog()
    documents = read_source(Source(file, text.removeprefix("\ufeff")), log)
    log.raise_if_errors()
    return [document.value for document in documents]


def _formatted(text: str) -> str:
    plain = _BREAK.sub("\n", text.removeprefix("\ufeff"))
    fixed = _literal_lines(plain)
    lines: list[str] = []
    for number, line in enumerate(plain.split("\n")):
        kept = line if number in fixed else line.rstrip(" \t")
        if kept or number in fixed or (lines and lines[-1]):
            lines.append(kept)
    while lines and not lines[-1].strip():
        lines.pop()
    if fixed:
        # What stands in a text of several lines may look like a key: the order is left alone.
        return "\n".join(lines) + "\n"
    return "\n".join(line for part in _documents(lines) for line in _ordered(part)) + "\n"


def _literal_lines(text: str) -> set[int]:
    """Return the numbers, from 0, of the lines inside texts of several lines, where every blank counts."""
    found: set[int] = set()
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        if isinstance(token, yaml.ScalarToken) and token.end_mark.line > token.start_mark.line:
            found.update(range(token.start_mark.line, token.end_mark.line + (token.end_mark.column > 0)))
    return found


def _documents(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines of each document; a separator begins its document."""
    part: list[str] = []
    for line in lines:
        if line.startswith("---") and part:
            yield part
            part = []
        part.append(line)
    yield part


def _ordered(lines: list[str]) -> list[str]:
    """Return a document's lines with its first keys in their order; comments go with the key below them."""
    starts = [number for number, line in enumerate(lines) if _KEY.match(line)]
    if not starts:
        return lines
    head, blocks = lines[: starts[0]], _blocks(lines, starts)
    rank = {key: place for place, key in enumerate(FIRST)}
    ordered = sorted(blocks, key=lambda block: rank.get(block[0], len(rank)))
    if [key for key, _ in ordered] == [key for key, _ in blocks]:
        return lines
    return head + [line for _, block in ordered for line in _without_end(block)]


def _without_end(block: list[str]) -> list[str]:
    """Return a block without the blank lines at its end, which parted it from a neighbour that is elsewhere now."""
    while len(block) > 1 and not block[-1]:
        block = block[:-1]
    return block


def _blocks(lines: list[str], starts: Sequence[int]) -> list[tuple[str, list[str]]]:
    """Return each key of a document with its lines, the comments right above it among them."""
    begins = [starts[0], *(_with_comments(lines, start) for start in starts[1:])]
    ends = [*begins[1:], len(lines)]
    keys = [match.group(1) for start in starts if (match := _KEY.match(lines[start]))]
    return [(key, lines[begin:end]) for key, begin, end in zip(keys, begins, ends, strict=True)]


def _with_comments(lines: list[str], start: int) -> int:
    while lines[start - 1].startswith("#"):
        start -= 1
    return start
