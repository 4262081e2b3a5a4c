"""Reads JSON: the standard library's fast parser first, and a strict pass with places when that finds fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from dovetail.collector import collector_paused
from dovetail.documents.marks import Mark, MarkBuilder
from dovetail.documents.scalars import ScalarError, decimal, integer
from dovetail.documents.source import DEEPEST, Source, SourceLog
from dovetail.documents.yaml_reader import RawDocument

_TOKEN: Final = re.compile(r'[\[\]{},:]|"(?:[^"\\]|\\.)*"|[^\s\[\]{},:"]+|"')
_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


class _Refused(ValueError):
    """The fast parser met something that the strict pass will name."""


def read_json(source: Source, log: SourceLog) -> list[RawDocument]:
    """Return the document of a JSON text, in a list; faults go to the log."""
    try:
        with collector_paused():
            value = _parse(source.text)
    except RecursionError:
        _diagnose(source, log, None)
    except json.JSONDecodeError as error:
        _diagnose(source, log, error)
    except _Refused:
        _diagnose(source, log, None)
    else:
        return [RawDocument(value, 0, len(source.text))]
    return []


def _parse(text: str) -> Any:
    value = json.loads(
        text,
        object_pairs_hook=_mapping,
        parse_int=_integer,
        parse_float=_decimal,
        parse_constant=_constant,
    )
    if _too_deep(value) or (_SURROGATE.search(text) and _has_lone_surrogate(value)):
        raise _Refused
    return value


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _Refused
    return mapping


def _integer(text: str) -> int:
    try:
        return integer(text)
    except ScalarError as error:
        raise _Refused from error


def _decimal(text: str) -> Decimal:
    try:
        return decimal(text, text.lower().partition("e")[2] or None)
    except ValueError as error:
        raise _Refused from error


def _constant(text: str) -> Any:
    raise _Refused(text)


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST + 1):
        level = [item for item in _children(level) if type(item) is dict or type(item) is list]
        if not level:
            return False
    return True


def _children(level: list[Any]) -> Iterator[Any]:
    for container in level:
        if type(container) is dict:
            yield from container.values()
        elif type(container) is list:
            yield from container


def _has_lone_surrogate(value: Any) -> bool:
    level = [value]
    while level:
        for item in level:
            for text in (item,) if isinstance(item, str) else item if isinstance(item, dict) else ():
                if any("\ud800" <= char <= "\udfff" for char in text):
                    return True
        level = list(_children(level))
    return False


def json_marks(text: str) -> Mark:
    """Return the marks of a JSON text that is known to be readable."""
    builder = MarkBuilder()
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token in "{[":
            builder.start(token == "{", match.start())
        elif token in "}]":
            builder.end()
        elif token[0] == '"':
            builder.scalar(json.loads(token) if builder.key_is_due else "", match.start())
        elif token not in ",:":
            builder.scalar(token, match.start())
    return builder.root


def _diagnose(source: Source, log: SourceLog, error: json.JSONDecodeError | None) -> None:
    """Name what the fast parser met: everything up to the syntax error, then that."""
    end = len(source.text) if error is None else error.pos
    found = False
    keys: list[set[str] | None] = []
    key_is_due = False
    for match in _TOKEN.finditer(source.text, 0, end):
        token, start = match.group(), match.start()
        if token in "{[":
            keys.append(set() if token == "{" else None)
            if len(keys) > DEEPEST:
                log.add("DT1012", f"values are nested more than {DEEPEST} deep", start)
                return
        elif token in "}]":
            del keys[-1:]
        elif token[0] == '"' and key_is_due:
            found |= _check_key(token, start, keys, log)
        elif token not in ",:":
            found |= _check_scalar(token, start, log)
        key_is_due = token in "{," and bool(keys) and keys[-1] is not None
    if error is not None:
        log.add("DT1004", f"the text is not JSON: {error.msg[:1].lower()}{error.msg[1:]}", error.pos)
    elif not found:
        log.add("DT1003", "a text holds half of a surrogate pair", 0)


def _check_key(token: str, start: int, keys: list[set[str] | None], log: SourceLog) -> bool:
    try:
        key = json.loads(token)
    except ValueError:
        return False
    known = keys[-1]
    if known is None or key not in known:
        if known is not None:
            known.add(key)
        return False
    log.add("DT1005", f"key {key[:60]} is given twice", start)
    return True


def _check_scalar(token: str, start: int, log: SourceLog) -> bool:
    if token in ("NaN", "Infinity", "-Infinity"):
        log.add("DT1013", f"{token} is not a finite number", start)
        return True
    if token[0] == '"':
        if not _holds_half_a_pair(token):
            return False
        log.add("DT1003", "the text holds half of a surrogate pair", start)
        return True
    if not _NUMBER.fullmatch(token):
        return False
    try:
        _decimal(token) if set(token) & set(".eE") else _integer(token)
    except _Refused as error:
        cause = error.__cause__
        log.add("DT1014", cause.message if isinstance(cause, ScalarError) else "the number is too long", start)
        return True
    return False


def _holds_half_a_pair(token: str) -> bool:
    try:
        text = json.loads(token) if _SURROGATE.search(token) else ""
    except ValueError:
        return False
    return any("\ud800" <= char <= "\udfff" for char in text)
