"""Hostlists in documents, spelt out with positions and within bounds."""

from __future__ import annotations

from dovetail.build.cursor import Cursor
from dovetail.hostlist import HostlistError, count, expand


def spelt_out(here: Cursor, most: int, what: str) -> list[str]:
    """Return the names that the hostlist here stands for; a fault and none where it cannot be.

    Parameters
    ----------
    most : more names than this cannot be right; `what` says of what.
    """
    try:
        number = count(here.value)
        if number <= min(most, here.log.expanded_left):
            here.log.expanded_left -= number
            return expand(here.value, limit=number)
        here.fault("DT1403", f"{number:,} names are more than {what}", "look at the ends of its ranges")
    except HostlistError as error:
        here.fault("DT1402", f"'{_short(error.text)}' is not a list of names: {error.reason}", _where(error))
    return []


def _where(error: HostlistError) -> str | None:
    return f"look at character {error.offset + 1}" if error.offset else None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
