"""The one parser of quantities, exact: no floating-point number is ever formed.

Units inside dovetail are integers (preamble of the semantics): memory in MiB, CPU in thousandths of a core,
GPUs in thousandths, time in milliseconds, money in millionths.
"""

from __future__ import annotations

import datetime
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Final, Literal

Rounding = Literal["up", "down"]

LARGEST: Final = 2**53
"""Amounts above this are refused: they would not survive a reader that holds numbers as doubles."""

_MIB: Final = 2**20
_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_MEMORY: Final = {"": 1, **_BINARY, **_DECIMAL}
_PLURAL: Final = re.compile(r"(?<=[a-z])s(?![a-z])")
_DURATION: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}

_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_DURATION_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_LONGEST: Final = 64
_VERY_LONG: Final[int] = 10**_LONGEST

Raw = object
"""What a document holds: str, int, Decimal, or anything else, which is refused."""


_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})")
_DATE_HINT = "year, month and day, such as 2026-12-31"


class QuantityError(ValueError):
    """A value is not a quantity of the wanted unit.

    Parameters
    ----------
    message
        Plain English, without a final stop.
    code
        ``DT1201`` malformed, ``DT1202`` out of range, ``DT1203`` finer than dovetail counts.
    hint
        What was probably meant.
    """

    def __init__(self, message: str, code: str = "DT1201", hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint


def parse_memory(value: Raw, rounding: Rounding) -> int:
    """Return MiB; plain numbers are bytes, as in Kubernetes.

    Parameters
    ----------
    value
        ``80Gi``, ``1Ti``, ``2G``, ``1073741824``.
    rounding
        ``up`` for requests, ``down`` for capacities: neither direction promises what is not there.
    """
    number, suffix = _split(value, "an amount of memory such as 80Gi")
    if suffix not in _MEMORY:
        raise QuantityError(f"{_shown(value)} has an unknown unit of memory", hint=_memory_hint(number, suffix))
    mebibytes = number * _MEMORY[suffix] / _MIB
    whole = mebibytes.__ceil__() if rounding == "up" else mebibytes.__floor__()
    return _in_range(whole, value)


def parse_cpu(value: Raw) -> int:
    """Return milli-cores from ``500m``, ``4`` or ``2.5``."""
    number = _milli(value, "a number of CPU cores such as 4 or 500m")
    return _in_range(_whole(number * 1000, value, "thousandths of a core"), value)


def parse_gpus(value: Raw) -> int:
    """Return thousandths of a GPU from ``0.45`` or ``450m``: at most three digits after the point."""
    return _in_range(_whole(_milli(value, "a number of GPUs") * 1000, value, "thousandths"), value)


def parse_fraction(value: Raw) -> int:
    """Return thousandths from a number above 0 and at most 1."""
    thousandths = parse_gpus(value)
    if not 0 < thousandths <= 1000:
        raise QuantityError(f"{_shown(value)} is not above 0 and at most 1", "DT1202")
    return thousandths


def parse_milli(value: Raw) -> int:
    """Return thousandths of any plain number that is not negative."""
    return _in_range(_whole(_plain(value, "a number") * 1000, value, "thousandths"), value)


def parse_duration(value: Raw) -> int:
    """Return milliseconds from ``2h30m``, ``30m``, ``40ms`` or ``1d``; a plain number is seconds.

    Units descend, each at most once.
    """
    if not isinstance(value, str):
        seconds = _plain(value, "a duration such as 2h30m")
        return _in_range(_whole(seconds * 1000, value, "milliseconds"), value)
    if len(value) > _LONGEST:
        raise QuantityError(f"{_shown(value)} is too long for a duration")
    if value.startswith("-"):
        raise QuantityError(f"{value} is negative", "DT1202")
    parts = _DURATION_PART.findall(value)
    units = [unit for _, unit in parts]
    in_order = units == [unit for unit in _DURATION if unit in units]
    if not parts or "".join(number + unit for number, unit in parts) != value or not in_order:
        raise QuantityError(f"{_shown(value)} is not a duration such as 2h30m", hint="units: d, h, m, s, ms")
    total = sum((Fraction(number) * _DURATION[unit] for number, unit in parts), Fraction(0))
    return _in_range(_whole(total, value, "milliseconds"), value)


def parse_money(value: Raw) -> int:
    """Return millionths from a plain number; the currency is the user's."""
    return _in_range(_whole(_plain(value, "an amount of money") * 10**6, value, "millionths"), value)


def parse_date(value: Raw) -> datetime.date:
    """Return the date written as ``2026-12-31``."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        try:
            return datetime.date.fromisoformat(value)
        except ValueError:
            raise QuantityError(f"{value} is not a day of the calendar", hint=_DATE_HINT) from None
    raise QuantityError(f"{_shown(value)} is not a date such as 2026-12-31", hint=_DATE_HINT)


def parse_moment(value: Raw) -> datetime.datetime:
    """Return the moment written as ``2026-12-31T18:00:00Z``; a date alone is its last moment, in UTC."""
    if isinstance(value, str) and _DATE.fullmatch(value):
        day = parse_date(value)
        if day == datetime.date.max:
            raise QuantityError(f"{value} is beyond the calendar", hint=_DATE_HINT)
        return datetime.datetime.combine(day + datetime.timedelta(days=1), datetime.time(), datetime.UTC)
    try:
        found = (
            datetime.datetime.fromisoformat(value) if isinstance(value, str) and _MOMENT.fullmatch(value) else None
        )
        if found is not None:
            return found.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise QuantityError(f"{_shown(value)} is no moment of the calendar", hint=_DATE_HINT) from None
    hint = "a time says its zone, as Z or +02:00"
    raise QuantityError(f"{_shown(value)} is neither a date nor a time such as 2026-12-31T18:00:00Z", hint=hint)


def format_milli(milli: int) -> str:
    """Return thousandths as a decimal without trailing zeros: 1912375 is ``1912.375``."""
    return _format_scaled(milli, 3)


def format_cpu(milli: int) -> str:
    """Return milli-cores as cores: 2500 is ``2.5``."""
    return _format_scaled(milli, 3)


def format_money(millionths: int) -> str:
    """Return millionths as a decimal without trailing zeros: 24500000 is ``24.5``."""
    return _format_scaled(millionths, 6)


def format_memory(mebibytes: int) -> str:
    """Return MiB in the largest binary unit that holds them exactly: 81920 is ``80Gi``."""
    if mebibytes == 0:
        return "0"
    for suffix in ("Ei", "Pi", "Ti", "Gi"):
        unit = _BINARY[suffix] // _MIB
        if mebibytes % unit == 0:
            return f"{mebibytes // unit}{suffix}"
    return f"{mebibytes}Mi"


def format_duration(milliseconds: int) -> str:
    """Return milliseconds in descending units: 9000000 is ``2h30m``; 0 is ``0s``."""
    text, rest = "", milliseconds
    for unit, size in _DURATION.items():
        amount, rest = divmod(rest, size)
        text += f"{amount}{unit}" if amount else ""
    return text or "0s"


def rounded(amount: int, scale: int) -> Decimal:
    """Return `amount / scale` to three digits, half rounded up; figures for people are rounded here alone."""
    return (Decimal(amount) / scale).quantize(Decimal("0.001"), ROUND_HALF_UP)


def counted(count: int, unit: str) -> str:
    """Write a count with its unit, given in the plural: of one, the first word that ends in `s` loses it."""
    return f"{count:,} {_PLURAL.sub('', unit, count=1) if count == 1 else unit}"


def _format_scaled(amount: int, digits: int) -> str:
    sign = "-" if amount < 0 else ""
    whole, part = divmod(abs(amount), 10**digits)
    tail = f"{part:0{digits}d}".rstrip("0")
    return f"{sign}{whole}.{tail}" if tail else f"{sign}{whole}"


def _split(value: Raw, wanted: str) -> tuple[Fraction, str]:
    """Return the number and the suffix of a quantity, neither judged yet but for the sign."""
    if isinstance(value, str):
        match = _NUMBER.match(value)
        if match is None or len(value) > _LONGEST:
            raise QuantityError(f"{_shown(value)} is not {wanted}", hint="a number comes first, then its unit if any")
        # "1E" is one exa-unit and "1Ei" one exbi-unit: the pattern takes an E only before digits.
        number, suffix = match.group(), value[match.end() :]
        return _exact(Decimal(number), value), suffix
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise QuantityError(f"{_shown(value)} is not {wanted}")
    return _exact(value, value), ""


def _plain(value: Raw, wanted: str) -> Fraction:
    number, suffix = _split(value, wanted)
    if suffix:
        raise QuantityError(f"{_shown(value)} is not {wanted}")
    return number


def _milli(value: Raw, wanted: str) -> Fraction:
    """Return a number that may carry the suffix ``m`` for thousandths."""
    number, suffix = _split(value, wanted)
    if suffix not in ("", "m"):
        raise QuantityError(f"{_shown(value)} is not {wanted}", hint="units: none, or m for thousandths")
    return number / 1000 if suffix else number


def _exact(number: int | Decimal, value: Raw) -> Fraction:
    """Return the number exactly; refuse what is negative, or so long that arithmetic would be slow."""
    if isinstance(number, int):
        if number > 2**200:
            raise QuantityError(f"{_shown(value)} is too large", "DT1202")
    else:
        _check_size(number, value)
    if number < 0:
        raise QuantityError(f"{_shown(value)} is negative", "DT1202")
    return Fraction(number)


def _check_size(number: Decimal, value: Raw) -> None:
    if not number.is_finite():
        raise QuantityError(f"{_shown(value)} is not a finite number", "DT1202")
    if number and number.adjusted() > _LONGEST:
        raise QuantityError(f"{_shown(value)} is too large", "DT1202")
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -2 * _LONGEST or exponent > 2 * _LONGEST:
        raise QuantityError(f"{_shown(value)} has too many digits", "DT1203")


def _whole(number: Fraction, value: Raw, unit: str) -> int:
    if number.denominator != 1:
        raise QuantityError(f"{_shown(value)} is not exact in {unit}", "DT1203", "write fewer digits")
    return number.numerator


def _in_range(amount: int, value: Raw) -> int:
    if amount > LARGEST:
        raise QuantityError(f"{_shown(value)} is too large", "DT1202")
    return amount


def _shown(value: Raw) -> str:
    """Return a value for a message, short whatever it holds."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, int) and abs(value) > _VERY_LONG:
        return "a very long number"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _memory_hint(number: Fraction, suffix: str) -> str | None:
    if suffix == "m":
        return "a small m means thousandths; write Mi for mebibytes"
    cleaned = suffix.strip().lower().removesuffix("b").removesuffix("i")
    for known in _BINARY:
        if cleaned == known[0].lower() and number.denominator == 1:
            return f"write {number.numerator}{known} or {number.numerator}{_decimal_twin(known)}"
    return "units: Ki, Mi, Gi, Ti, Pi, Ei or k, M, G, T, P, E"


def _decimal_twin(binary: str) -> str:
    return "k" if binary == "Ki" else binary[0]
