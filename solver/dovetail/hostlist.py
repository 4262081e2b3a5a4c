"""Hostlists: many node names in one short text, as Slurm, pdsh and ClusterShell write them.

``gpu-[001-064,070]`` stands for 65 names; ``r[1-4]n[01-16]`` for 64.  Names may hold ASCII letters,
digits, dots, underscores and hyphens.  A range keeps the zero padding of its lower end:
``[001-010]`` counts 001, 002, ..., 010 and ``[8-11]`` counts 8, 9, 10, 11.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_NAMES = 200_000
"""Names that one text may stand for; far above any cluster, far below what hurts."""

MAX_NAME_LENGTH = 253
"""Characters of one name: the limit of DNS, hence of Kubernetes."""

MAX_TEXT = 1_000_000
"""Characters of one hostlist."""

MAX_DIGITS = 15
"""Digits of one number in brackets; longer ones are serial numbers, which nobody counts through."""

RUNS_PER_BRACKET = 12
"""Runs that `fold` puts into one bracket, so that lines stay readable and differences small."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ITEM = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_DIGITS = re.compile(r"([0-9]+)")


class HostlistError(ValueError):
    """A hostlist, or a name to be folded, that cannot be read.

    Attributes
    ----------
    text : str
        The whole text, or the name, that was refused.
    offset : int
        Where in it the trouble starts, from 0.
    reason : str
        What is wrong, in plain English, without the text itself.
    """

    def __init__(self, text: str, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.text = text
        self.offset = offset
        self.reason = reason


@dataclass(frozen=True, slots=True)
class _Span:
    """The numbers from `low` to `high`, at least `width` digits wide; `low` alone if they are equal."""

    low: int
    high: int
    width: int

    def __len__(self) -> int:
        return self.high - self.low + 1

    def __iter__(self) -> Iterator[str]:
        return (str(number).zfill(self.width) for number in range(self.low, self.high + 1))

    def longest(self) -> int:
        return max(self.width, len(str(self.high)))


_Part = str | tuple[_Span, ...]
_Term = tuple[_Part, ...]
_Block = tuple[tuple[str, ...], ...]


def expand(text: str, *, limit: int = MAX_NAMES) -> list[str]:
    """Spell out the names that a hostlist stands for, in its order.

    Parameters
    ----------
    text : str
        Comma-separated names, each with any number of brackets.  White space around a comma outside
        brackets is ignored.  A name given twice comes out twice: whether that is a fault is for the
        caller to say.
    limit : int
        Names allowed.  It is checked before any name is made.

    Raises
    ------
    HostlistError
        For anything malformed, and beyond the limits of this module.
    """
    terms = _parse(text)
    size = sum(map(_size, terms))
    if size > limit:
        raise HostlistError(text, 0, f"stands for {size:,} names, and at most {limit:,} are allowed")
    return [name for term in terms for name in _names(term)]


def count(text: str) -> int:
    """Return how many names a hostlist stands for, without making them.

    Raises
    ------
    HostlistError
        If the text is malformed.
    """
    return sum(map(_size, _parse(text)))


def fold(names: Iterable[str]) -> list[str]:
    """Write names as few short hostlists; expanding them gives the same names, up to order.

    The outcome depends on the names alone, not on their order.

    Raises
    ------
    HostlistError
        If a name is empty, too long, or holds a character that a hostlist cannot hold.
    """
    patterns: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for name in names:
        _check_name(name, name, 0)
        pieces = _pieces(name)
        patterns.setdefault(tuple(pieces[::2]), []).append(tuple(pieces[1::2]))
    folded: list[str] = []
    for literals, numbers in sorted(patterns.items()):
        for block in _blocks(numbers, len(literals) - 1):
            folded.extend(_render(literals, block))
    return folded


# --- reading ---------------------------------------------------------------------------------


def _parse(text: str) -> list[_Term]:
    if len(text) > MAX_TEXT:
        raise HostlistError(text, MAX_TEXT, f"is longer than {MAX_TEXT:,} characters")
    return [_term(text, start, end) for start, end in _split(text)]


def _split(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each term: split at commas outside brackets, without surrounding spaces."""
    start, opened = 0, -1
    for offset, char in enumerate(text):
        if char == "[":
            if opened >= 0:
                raise HostlistError(text, offset, "brackets cannot be nested")
            opened = offset
        elif char == "]":
            if opened < 0:
                raise HostlistError(text, offset, "a closing bracket without an opening one")
            opened = -1
        elif char == "," and opened < 0:
            yield _strip(text, start, offset)
            start = offset + 1
    if opened >= 0:
        raise HostlistError(text, opened, "the bracket is not closed")
    yield _strip(text, start, len(text))


def _strip(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] == " ":
        start += 1
    while end > start and text[end - 1] == " ":
        end -= 1
    if start == end:
        raise HostlistError(text, start, "a name is missing")
    return start, end


def _term(text: str, start: int, end: int) -> _Term:
    parts: list[_Part] = []
    offset, longest = start, 0
    while offset < end:
        if text[offset] == "[":
            close = text.index("]", offset)
            spans = _bracket(text, offset + 1, close)
            longest += max(span.longest() for span in spans)
            parts.append(spans)
            offset = close + 1
        else:
            bracket = text.find("[", offset, end)
            close = end if bracket < 0 else bracket
            _check_characters(text, offset, close)
            longest += close - offset
            parts.append(text[offset:close])
            offset = close
    if longest > MAX_NAME_LENGTH:
        raise HostlistError(text, start, f"a name would be longer than {MAX_NAME_LENGTH} characters")
    return tuple(parts)


def _bracket(text: str, start: int, end: int) -> tuple[_Span, ...]:
    spans: list[_Span] = []
    for item in text[start:end].split(","):
        spans.append(_span(text, start, item))
        start += len(item) + 1
    return tuple(spans)


def _span(text: str, offset: int, item: str) -> _Span:
    match = _ITEM.fullmatch(item)
    if match is None:
        reason = "expected a number or a range such as 001-064" if item else "a number is missing"
        raise HostlistError(text, offset, reason)
    low, high = match[1], match[2] or match[1]
    if max(len(low), len(high)) > MAX_DIGITS:
        raise HostlistError(text, offset, f"a number has more than {MAX_DIGITS} digits")
    if len(high) != len(low) and (high[0] == "0" or (len(high) < len(low) and low[0] == "0")):
        raise HostlistError(text, offset, f"{low} and {high} are padded to different widths")
    if int(low) > int(high):
        raise HostlistError(text, offset, f"the range runs backwards: {low} is above {high}")
    return _Span(int(low), int(high), len(low))


def _check_name(name: str, text: str, offset: int) -> None:
    if not name:
        raise HostlistError(text, offset, "a name is missing")
    if len(name) > MAX_NAME_LENGTH:
        raise HostlistError(text, offset, f"a name is longer than {MAX_NAME_LENGTH} characters")
    _check_characters(text, offset, offset + len(name))


def _check_characters(text: str, start: int, end: int) -> None:
    match = _NAME.match(text, start, end)
    stop = match.end() if match else start
    if stop < end:
        reason = f"{text[stop]!r} is not allowed in a name (letters, digits, '.', '_' and '-' are)"
        raise HostlistError(text, stop, reason)


def _size(term: _Term) -> int:
    return math.prod(sum(map(len, part)) for part in term if not isinstance(part, str))


def _names(term: _Term) -> Iterator[str]:
    choices = [(part,) if isinstance(part, str) else tuple(itertools.chain(*part)) for part in term]
    return map("".join, itertools.product(*choices))


# --- folding ---------------------------------------------------------------------------------


def _pieces(name: str) -> list[str]:
    """Split a name into literal, number, literal, ...; numbers too long to count stay literal."""
    pieces = [""]
    for index, piece in enumerate(_DIGITS.split(name)):
        if index % 2 and len(piece) <= MAX_DIGITS:
            pieces += [piece, ""]
        else:
            pieces[-1] += piece
    return pieces


def _number_order(number: str) -> tuple[int, str]:
    """Shorter numbers first, so that 8, 9, 10, 11 are neighbours and so are 08, 09, 10, 11."""
    return len(number), number


def _blocks(numbers: Sequence[tuple[str, ...]], width: int) -> list[_Block]:
    """Merge tuples of numbers into products of lists, one dimension after the other, last first."""
    blocks: list[_Block] = [tuple((number,) for number in entry) for entry in numbers]
    for axis in reversed(range(width)):
        merged: dict[_Block, list[str]] = {}
        for block in blocks:
            merged.setdefault(block[:axis] + block[axis + 1 :], []).extend(block[axis])
        blocks = [
            (*others[:axis], tuple(sorted(values, key=_number_order)), *others[axis:])
            for others, values in merged.items()
        ]
    return sorted(blocks, key=lambda block: [[_number_order(number) for number in axis] for axis in block])


def _render(literals: Sequence[str], block: Sequence[Sequence[str]]) -> Iterator[str]:
    for chosen in itertools.product(*map(_brackets, block)):
        yield literals[0] + "".join(itertools.chain(*zip(chosen, literals[1:], strict=True)))


def _brackets(numbers: Sequence[str]) -> list[str]:
    """Write numbers as brackets of a few runs each; one number alone needs no bracket."""
    if len(numbers) == 1:
        return [numbers[0]]
    runs = [low if low == high else f"{low}-{high}" for low, high in _runs(numbers)]
    starts = range(0, len(runs), RUNS_PER_BRACKET)
    return [f"[{','.join(runs[start : start + RUNS_PER_BRACKET])}]" for start in starts]


def _runs(numbers: Sequence[str]) -> list[tuple[str, str]]:
    runs: list[tuple[str, str]] = []
    for number in numbers:
        if runs and number == str(int(runs[-1][1]) + 1).zfill(len(runs[-1][0])):
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs
