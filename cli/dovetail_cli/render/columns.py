"""Text in columns, as wide as it needs to be or as a terminal is."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dovetail_cli.render.words import printable

_NARROWEST = 24
_GAP = "  "
_COLOURS = {"+": "32", "~": "33", "!": "31", "-": "31", "?": "36"}


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text goes: `width` in columns, None for no limit; whether it shows colours."""

    width: int | None = None
    colours: bool = False


PLAIN = Screen()
"""A file or a pipe: nothing is cut, nothing is coloured."""


def layout(
    rows: Sequence[Sequence[str]], screen: Screen = PLAIN, *, indent: int = 2, right: Collection[int] = ()
) -> list[str]:
    """Return rows as lines in columns; `right` names the columns that are set to the right.

    Only the last cell of a row is ever wrapped, under its own column. The first cell may be a mark, which then
    colours its row.
    """
    return [line for block in layout_each(rows, screen, indent=indent, right=right) for line in block]


def layout_each(
    rows: Sequence[Sequence[str]], screen: Screen = PLAIN, *, indent: int = 2, right: Collection[int] = ()
) -> list[list[str]]:
    """Return the lines of each row, in columns that fit all rows."""
    clean = [[printable(cell) for cell in row] for row in rows]
    widths = _widths(clean)
    blocks: list[list[str]] = []
    for row in clean:
        head = " " * indent + "".join(
            (cell.rjust(wide) if column in right else cell.ljust(wide)) + _GAP
            for column, (cell, wide) in enumerate(zip(row[:-1], widths, strict=False))
        )
        last = row[-1].rjust(widths[len(row) - 1]) if len(row) - 1 in right else row[-1]
        blocks.append(_coloured(_wrapped(head, last, screen.width), row[0].strip(), screen))
    return blocks


def prose(text: str, screen: Screen = PLAIN, *, indent: int = 2) -> list[str]:
    """Return one piece of text as lines, wrapped where it is wider than the screen."""
    return layout([(text,)], screen, indent=indent)


def headline(parts: Sequence[str], screen: Screen = PLAIN, *, indent: int = 0) -> list[str]:
    """Return what is told in a row above other things; the parts that do not fit stand below, further in."""
    lines = [" " * indent + printable(parts[0])]
    for part in map(printable, parts[1:]):
        joined = f"{lines[-1]}   {part}"
        if screen.width is None or len(joined) <= screen.width:
            lines[-1] = joined
        else:
            lines += _wrapped(" " * (indent + 2), part, screen.width)
    return lines


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column; a row's last cell takes what is left and widens nothing."""
    most = max((len(row) for row in rows), default=0)
    return [
        max((len(row[column]) for row in rows if column < len(row) - 1 or len(row) == most > column), default=0)
        for column in range(most)
    ]


def _wrapped(head: str, last: str, width: int | None) -> list[str]:
    line = (head + last).rstrip()
    if width is None or len(line) <= width:
        return [line]
    longest = max(map(len, last.split()), default=0)  # words are never broken
    hang = len(head) if width - len(head) >= max(_NARROWEST, longest) else 6
    return textwrap.wrap(
        line,
        width,
        initial_indent="",
        subsequent_indent=" " * min(hang, width // 2),
        drop_whitespace=True,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def _coloured(lines: list[str], mark: str, screen: Screen) -> list[str]:
    colour = _COLOURS.get(mark)
    if not screen.colours or colour is None:
        return lines
    return [f"\x1b[{colour}m{line}\x1b[0m" for line in lines]
