"""What plain scalars mean: the YAML 1.2 core schema, with exact decimals.

See https://yaml.org/spec/1.2.2/#103-core-schema.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

Plain = str | int | Decimal | bool | None

LONGEST_NUMBER: Final = 100

_WORDS: Final[dict[str, Plain]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_FIRST_OF_NUMBER: Final = frozenset("0123456789+-.")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL: Final = re.compile(r"0o[0-7]+", re.ASCII)
_HEXADECIMAL: Final = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE]([-+]?[0-9]+))?", re.ASCII)
_NOT_FINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", re.ASCII)


class ScalarError(ValueError):
    """A scalar that has a meaning in YAML, but none in a document."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def resolve(text: str) -> Plain:
    """Return the value of a plain scalar.

    Raises
    ------
    ScalarError
        For infinity, not-a-number, and numbers too long to be meant.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST_OF_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return integer(text)
    if match := _FLOAT.fullmatch(text):
        return decimal(text, match.group(1))
    if _NOT_FINITE.fullmatch(text):
        raise ScalarError("DT1013", f"{text} is not a finite number")
    if _OCTAL.fullmatch(text):
        return _based(text, 8)
    if _HEXADECIMAL.fullmatch(text):
        return _based(text, 16)
    return text


def integer(text: str) -> int:
    """Return a decimal integer; refuse one too long to be meant."""
    if len(text) > LONGEST_NUMBER:
        raise ScalarError("DT1014", f"the number has {len(text)} digits")
    return int(text)


def decimal(text: str, exponent: str | None) -> Decimal:
    """Return an exact decimal; refuse one too long to be meant."""
    if len(text) > LONGEST_NUMBER or (exponent is not None and abs(int(exponent)) > 999):
        raise ScalarError("DT1014", f"the number {text[:20]}... is too long")
    return Decimal(text)


def _based(text: str, base: int) -> int:
    if len(text) > LONGEST_NUMBER:
        raise ScalarError("DT1014", f"the number has {len(text)} digits")
    return int(text[2:], base)
