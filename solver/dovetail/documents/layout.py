"""Lays YAML out anew: two spaces of indentation, lists at the column of their key, one space between tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from yaml import tokens as tk

from dovetail.documents.yaml_reader import parser_of

STEP: Final = 2


@dataclass(frozen=True, slots=True)
class Piece:
    """A token: its type, where its text starts and ends, and the lines and columns of both, from 0."""

    kind: type
    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


def pieces(text: str) -> Iterator[Piece]:
    """Yield the tokens of a text that is known to be readable."""
    parser: Any = parser_of(text)
    try:
        while (token := parser.get_token()) is not None:
            first, last = token.start_mark, token.end_mark
            yield Piece(type(token), first.index, last.index, first.line, first.column, last.line, last.column)
            if type(token) is tk.StreamEndToken:
                return
    finally:
        parser.dispose()


_OPENING: Final = frozenset({tk.FlowMappingStartToken, tk.FlowSequenceStartToken})
_CLOSING: Final = frozenset({tk.FlowMappingEndToken, tk.FlowSequenceEndToken})
_INVISIBLE: Final = frozenset(
    {tk.BlockMappingStartToken, tk.BlockSequenceStartToken, tk.BlockEndToken, tk.KeyToken, tk.StreamStartToken}
)


def scalar_lines(found: list[Piece]) -> set[int]:
    """Return the lines, from 0, that continue a text of several lines: their white space may have a meaning."""
    inside: set[int] = set()
    for piece in found:
        if piece.kind is tk.ScalarToken and piece.end_line > piece.line:
            last = piece.end_line + 1 if piece.end_column else piece.end_line
            inside |= set(range(piece.line + 1, last))
    return inside


def laid_out(text: str) -> str:
    """Return the text with canonical indentation and spacing; comments and texts of several lines are moved whole."""
    found = list(pieces(text))
    columns = _line_columns(found)
    gaps = dict(_gaps(text, found))
    return "".join(_assembled(text, columns, gaps, scalar_lines(found)))


def _line_columns(found: list[Piece]) -> dict[int, tuple[int, int]]:
    """Return for lines that start with a key or an entry: the column they start at, and the one they should."""
    columns: dict[int, tuple[int, int]] = {}
    stack: list[int] = []
    last_line, flow, after = -1, 0, None
    for piece in found:
        if piece.kind in (tk.BlockMappingStartToken, tk.BlockSequenceStartToken):
            in_key = piece.kind is tk.BlockSequenceStartToken and after is tk.ValueToken
            stack.append(0 if not stack else stack[-1] if in_key else stack[-1] + STEP)
        elif piece.kind is tk.BlockEndToken:
            stack.pop()
        flow += (piece.kind in _OPENING) - (piece.kind in _CLOSING)
        starts_line = piece.line != last_line and not flow and bool(stack)
        if starts_line and piece.kind in (tk.KeyToken, tk.BlockEntryToken):
            columns[piece.line] = (piece.column, stack[-1])
        if piece.kind not in _INVISIBLE:
            last_line = piece.end_line
        elif piece.kind is tk.KeyToken:
            last_line = piece.line
        if piece.kind not in (tk.BlockMappingStartToken, tk.BlockSequenceStartToken):
            after = piece.kind
    return columns


def _gaps(text: str, found: list[Piece]) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield the start of white space between two tokens of a line, with its end and what it should be."""
    visible = [piece for piece in found if piece.end > piece.start]
    for left, right in pairwise(visible):
        between = text[left.end : right.start]
        if left.end_line == right.line and not between.strip(" \t"):
            wanted = _gap(left.kind, right.kind)
            if wanted is not None and wanted != between:
                yield left.end, (right.start, wanted)


def _gap(left: type, right: type) -> str | None:
    """Return the white space that belongs between two tokens of a line; None: as it is."""
    if left in _OPENING and right is not tk.FlowEntryToken:
        return ""
    if left in (tk.ValueToken, tk.BlockEntryToken):
        return None if right in _CLOSING or right in (tk.FlowEntryToken, tk.ValueToken) else " "
    if left is tk.FlowEntryToken:
        return None if right in _CLOSING else " "
    if right is tk.FlowEntryToken or right in _CLOSING:
        return None if left is tk.AliasToken else ""
    if right is tk.ValueToken and left is tk.ScalarToken:
        return ""
    return None


def _assembled(
    text: str, columns: dict[int, tuple[int, int]], gaps: dict[int, tuple[int, str]], inside: set[int]
) -> Iterator[str]:
    """Yield the lines of the text, each with its new indentation and gaps."""
    offset, shift = 0, 0
    lines = text.split("\n")
    comment_shifts = _comment_shifts(lines, columns, inside)
    for number, line in enumerate(lines):
        end = offset + len(line)
        indentation = _indentation(line)
        if number in columns:
            old, new = columns[number]
            shift = new - old
        moved = comment_shifts.get(number, shift)
        yield " " * max(0, indentation + moved) if line.strip() else line
        if line.strip():
            yield from _with_gaps(text, offset + indentation, end, gaps)
        yield "\n" if number + 1 < len(lines) else ""
        offset = end + 1


def _comment_shifts(lines: list[str], columns: dict[int, tuple[int, int]], inside: set[int]) -> dict[int, int]:
    """Return the shift of each line, from the last to the first, that only holds a comment.

    It is that of what follows; further to the right, that of what stands before in the same column, if anything does:
    a comment at the end of a block.
    """
    shifts: dict[int, int] = {}
    following: tuple[int, int] | None = None
    around = _blocks_around(lines, columns)
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number].strip()
        if number in columns:
            following = columns[number]
        elif number in inside:
            following = None
        elif line.startswith("#") and following is not None:
            at = _indentation(lines[number])
            shifts[number] = (around.get(number, following[1]) if at > following[0] else following[1]) - at
        elif line:
            following = None
    return shifts


def _blocks_around(lines: list[str], columns: dict[int, tuple[int, int]]) -> dict[int, int]:
    """Return the new column of the block in whose old one a line begins, for lines without content of their own."""
    found: dict[int, int] = {}
    around: dict[int, int] = {}
    for number, line in enumerate(lines):
        if number in columns:
            old, new = columns[number]
            around = {column: moved for column, moved in around.items() if column < old} | {old: new}
        elif (at := _indentation(line)) in around:
            found[number] = around[at]
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _with_gaps(text: str, start: int, end: int, gaps: dict[int, tuple[int, str]]) -> Iterator[str]:
    at = start
    for offset in sorted(gap for gap in range(start, end + 1) if gap in gaps):
        stop, wanted = gaps[offset]
        yield text[at:offset] + wanted
        at = stop
    yield text[at:end]
