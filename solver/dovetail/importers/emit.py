"""A small writer of YAML for documents that a program makes and a person reads.

It takes the plain values that documents are made of; text is ASCII without control characters, which
the importers check when they read names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

Value = str | int | Decimal | Sequence["Value"] | Mapping[str, "Value"]

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*|[0-9]+[KMGTPE]i")
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
"""What some YAML reader takes for something else than text."""


def inline(value: Value) -> str:
    """Write a value on one line, in flow style: ``{gpus: 8, cpu: 96}``."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{text(key)}: {inline(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(inline, value)) + "]"


def text(value: str) -> str:
    """Write text plainly where every YAML reader agrees that it is text, else in double quotes."""
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


def comment(*lines: str) -> list[str]:
    """Return lines as comments; what could end a comment, or is no printable ASCII, becomes ``?``."""
    return [("# " + re.sub(r"[^ -~]", "?", line)).rstrip() for line in lines]


def document(kind: str, metadata: Mapping[str, Value], spec: Iterable[str]) -> list[str]:
    """Return the lines of one document; `spec` are its lines, already indented."""
    head = ["apiVersion: dovetail/v1alpha1", f"kind: {kind}", f"metadata: {inline(metadata)}", "spec:"]
    return [*head, *spec]


def file(heading: Iterable[str], documents: Iterable[Sequence[str]]) -> str:
    """Join a heading and documents into the text of one file."""
    lines = list(heading)
    for index, each in enumerate(documents):
        lines += ["---", *each] if index else each
    return "\n".join(lines) + "\n"
