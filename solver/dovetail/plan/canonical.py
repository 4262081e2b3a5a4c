"""The plan file's canonical text: one row per line, so that a plan's difference is its file's difference."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from dovetail.documents.kinds import API_VERSION
from dovetail.documents.scalars import ScalarError, resolve
from dovetail.plan.model import Plan
from dovetail.plan.plain import sections

_ROWS: Final = frozenset({"placements", "held", "admitted", "promises", "policies"})
# What YAML 1.2 lets stand without quotes inside `{}` and `[]`, for texts without odd characters.
_PLAIN: Final = re.compile(
    r"(?![-?:](?:\s|$))[^\s,\[\]{}#&*!|>'\"%@`](?:[^\s,\[\]{}:#]|(?<=\S)#|:(?=[^\s,\[\]{}])| (?=[^\s#]))*"
)
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def write(plan: Plan) -> str:
    """Return a plan's canonical text; equal plans give equal bytes."""
    return "\n".join([*_lines(plan), ""])


def _lines(plan: Plan) -> Iterator[str]:
    yield f"apiVersion: {API_VERSION}"
    yield "kind: Plan"
    yield f"metadata: {flow({'name': plan.name})}"
    yield "spec:"
    for name, value in sections(plan):
        if name in _ROWS and value:
            yield f"  {name}:"
            yield from (f"    {text(key)}: {flow(row)}" for key, row in value.items())
        elif name == "recovery":
            yield f"  {name}:"
            yield from _nested(value)
        elif name == "tiers" and value:
            yield f"  {name}:"
            yield from (f"  - {flow(row)}" for row in value)
        else:
            yield f"  {name}: {flow(value)}"


def _nested(recovery: dict[str, Any]) -> Iterator[str]:
    """Yield a line for every replica, or run of them, that restarts, under its policy and failure case."""
    for policy, cases in recovery.items():
        yield f"    {text(policy)}:"
        for case, rows in cases.items():
            yield f"      {text(case)}:"
            yield from (f"        {text(key)}: {flow(row)}" for key, row in rows.items())


def flow(value: Any) -> str:
    """Return a value in flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def text(value: str) -> str:
    """Return a string, in quotes exactly where YAML 1.2 needs them inside flow style."""
    if value.isprintable() and _PLAIN.fullmatch(value) and not _means_more(value):
        return value
    return '"' + "".join(map(_escaped, value)) + '"'


def _means_more(value: str) -> bool:
    """Tell whether a plain text would be read as something else than itself."""
    if value.startswith(("---", "...")):
        return True
    try:
        return not isinstance(resolve(value), str)
    except ScalarError:
        return True


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
