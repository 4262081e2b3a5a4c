"""Numbers, names and amounts as people read them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal

from dovetail import hostlist
from dovetail.quantities import rounded

Number = int | float | Decimal

# Control, format (invisible and direction-changing), surrogate, private and unassigned characters.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_HUMAN: dict[str, tuple[int, str]] = {
    "milli-GPU": (1000, "GPU"),
    "milli-core": (1000, "core"),
    "milli-slices": (1000, "slices"),
    "milli-GPU s": (3_600_000, "GPU-h"),
    "millionths/h": (1_000_000, "per hour"),
}


def printable(text: str, keep: str = "") -> str:
    """Return text with every character that could steer a terminal written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or unicodedata.category(c) not in _UNPRINTABLE else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def amount(number: Number, digits: int = 3) -> str:
    """Write a number with thousands separated and no needless digits."""
    if isinstance(number, int):
        return f"{number:,}"
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def signed(number: Number, digits: int = 3) -> str:
    """Write a difference with its sign; no difference is `+0`."""
    text = amount(-number if number < 0 else number, digits)
    return f"{'-' if number < 0 and text != '0' else '+'}{text}"


def share(part: Number, whole: Number) -> str:
    """Write a part of a whole in per cent."""
    return f"{100 * float(part) / float(whole):.1f} %" if whole else "-"


def percent(fraction: float) -> str:
    """Write a gap in per cent; anything above zero shows as above zero."""
    if fraction == 0:
        return "0 %"
    return f"{100 * fraction:.2f} %" if fraction >= 0.0001 else "< 0.01 %"


def human_unit(unit: str) -> str:
    """Return the unit that people read a tier's values in."""
    return _HUMAN[unit][1] if unit in _HUMAN else unit


def human_value(value: int | None, unit: str) -> str:
    """Write a tier's value in the unit that people read it in."""
    if value is None:
        return "-"
    scale = _HUMAN[unit][0] if unit in _HUMAN else 1
    return amount(value) if scale == 1 else amount(rounded(value, scale))


def human_change(before: int, after: int, unit: str) -> str:
    """Write the difference of two values of a tier, of the figures that people read beside it."""
    scale = _HUMAN[unit][0] if unit in _HUMAN else 1
    return signed(after - before if scale == 1 else rounded(after, scale) - rounded(before, scale))


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Write a count with its noun: `1 move`, `2 moves`."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def nodes(names: Iterable[str], longest: int = 80) -> str:
    """Write nodes as few hostlists; where that is too long to read, the first, the last and their number."""
    found = sorted(set(names))
    try:
        lists = hostlist.fold(found)
    except ValueError:
        lists = found
    text = " ".join(lists)
    return text if len(text) <= longest else f"{found[0]} ... {found[-1]} ({plural(len(found), 'node')})"


def gpus(indices: Sequence[int]) -> str:
    """Return GPUs of a node by their indices, which ascend: `gpu 0-7`, `gpu 0,2`; nothing for none."""
    if not indices:
        return ""
    run = indices[-1] - indices[0] + 1 == len(indices) > 1
    return f"gpu {indices[0]}-{indices[-1]}" if run else f"gpu {','.join(map(str, indices))}"


def short_digest(digest: str) -> str:
    """Return the first characters of a digest, enough to tell two plans apart."""
    return digest.removeprefix("sha256:")[:6]
