"""Annotations as a report of GitLab's Code Quality: a list of issues, each with a fingerprint that outlives edits.

The format is that of the Code Climate engines, as far as GitLab reads it: `description`, `check_name`, `fingerprint`,
`severity`, `location.path`, `location.lines.begin`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dovetail_cli.render.annotation import Annotation, Level, fingerprints
from dovetail_cli.render.words import printable

_SEVERITIES: dict[Level, str] = {"error": "major", "warning": "minor", "notice": "info"}
_NOWHERE = "dovetail.yaml"


def rendered(annotations: Iterable[Annotation]) -> str:
    """Return annotations as text; what has no place stands at the project's file, as GitLab wants a place."""
    listed = list(annotations)
    issues = [_issue(each, mark) for each, mark in zip(listed, fingerprints(listed), strict=True)]
    return json.dumps(issues, indent=2) + "\n"


def _issue(each: Annotation, fingerprint: str) -> dict[str, Any]:
    words = each.message if each.title == each.rule else f"{each.title}: {each.message}"
    place = each.position
    lines: dict[str, int] = {"begin": place.line if place else 1}
    return {
        "description": printable(words, keep="\n"),
        "check_name": printable(each.rule),
        "fingerprint": fingerprint,
        "severity": _SEVERITIES[each.level],
        "location": {
            "path": printable(place.file if place else _NOWHERE),
            "lines": lines,
            **({"positions": {"begin": {"line": place.line, "column": place.column}}} if place else {}),
        },
    }
