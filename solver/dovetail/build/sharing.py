"""How the GPUs of a node group can be shared by equal parts (S3.5)."""

from __future__ import annotations

from typing import Final

from dovetail import catalogue
from dovetail.build.cursor import Cursor
from dovetail.quantities import parse_milli
from dovetail.spec import EqualParts
from dovetail.spec.workload import MILLI

_OLD: Final = frozenset({"Pascal", "Volta"})
"""Architectures before compute capability 7.5, of which the device plugin lets 16 clients share a GPU by MPS."""

_LEAST, _USUAL, _MOST = 16, 48, 60
_MOST_SINCE: Final = 590
"""The driver branch since which a GPU has 60 clients of MPS."""


def read_sharing(group: Cursor, accelerator: str | None) -> EqualParts | None:
    """Return how many clients the GPUs of a group may have, by mode, None where they are not shared by equal parts.

    A group that names `mps` or `timeSlicing` offers no other mode; one that names neither offers both.
    """
    here = group.get("sharing")
    if here is None:
        return None
    if here.raw("mechanism") == "fraction":
        for key in ("replicas", "mps", "timeSlicing"):
            if key in here.value:
                message = f"'{key}' is about equal parts, and these GPUs are shared by fractions"
                here[key].fault("DT1432", message, "leave it out, or take the mechanism 'devicePlugin'", of_key=True)
        return None
    mps, slicing, parts = here.get("mps"), here.get("timeSlicing"), here.raw("replicas")
    both = mps is None and slicing is None
    found = EqualParts(
        mps=_mps(mps, accelerator) if both or mps is not None else 0,
        time_slicing=_slices(slicing) if both or slicing is not None else 0,
        parts=parts,
        oversubscription=MILLI if slicing is None else _ratio(slicing),
    )
    most = max(found.mps, found.time_slicing)
    if parts is not None and parts > most:
        here["replicas"].fault("DT1433", f"{parts} parts of a GPU, and at most {most} clients may share one")
    return found


def _mps(here: Cursor | None, accelerator: str | None) -> int:
    """Return the most clients of a GPU by MPS: 16 or 48 by its architecture, 60 with a recent driver (S3.5)."""
    entry = catalogue.load().get(accelerator or "")
    recent = here is not None and _branch(here) >= _MOST_SINCE
    most = _LEAST if entry is None or entry.arch in _OLD else _MOST if recent else _USUAL
    return most if here is None else min(most, here.raw("maxClients", most))


def _branch(here: Cursor) -> int:
    """Return the number of the driver branch, 0 where nobody says."""
    said = str(here.raw("driver", "0"))
    text = said.partition(".")[0]
    if text.isascii() and text.isdigit() and len(text) <= 9:
        return int(text)
    here["driver"].fault("DT1434", f"'{said[:40]}' is no driver branch", "write its number, such as 580")
    return 0


def _slices(here: Cursor | None) -> int:
    return MILLI if here is None else min(MILLI, here.raw("maxClients", MILLI))


def _ratio(here: Cursor) -> int:
    """Return the thousandths of a GPU that may be promised."""
    own = here.get("oversubscription")
    found = MILLI if own is None else own.quantity(parse_milli, MILLI)
    if own is not None and found < MILLI:
        own.fault("DT1435", "less is promised than there is", "the sum of means over what a GPU has, at least 1")
    return max(MILLI, found)
