"""Annotations as GitHub's workflow commands: `::error file=...,line=...::message`."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail_cli.render.annotation import LEVELS, Annotation
from dovetail_cli.render.words import plural, printable

MOST = 10
"""Annotations of a level that GitHub shows for one step."""


def rendered(annotations: Iterable[Annotation]) -> str:
    """Return annotations as text, worst first; beyond ten of a level the tenth counts the rest."""
    listed = list(annotations)
    lines: list[str] = []
    for level in LEVELS:
        found = [each for each in listed if each.level == level]
        if len(found) > MOST:
            rest = len(found) - MOST + 1
            found = [
                *found[: MOST - 1],
                Annotation(level, "dovetail", "dovetail", f"and {plural(rest, f'more {level}')}"),
            ]
        lines += [_line(each) for each in found]
    return "".join(f"{line}\n" for line in lines)


def _line(annotation: Annotation) -> str:
    properties = {"title": annotation.title}
    place = annotation.position
    if place is not None:
        properties = {"file": place.file, "line": str(place.line), "col": str(place.column), **properties}
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{annotation.level} {given}::{_data(annotation.message)}"


def _data(text: str) -> str:
    """Escape a message, as GitHub's toolkit does."""
    visible = printable(text, keep="\n")
    return visible.replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape the value of a property, as GitHub's toolkit does."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
