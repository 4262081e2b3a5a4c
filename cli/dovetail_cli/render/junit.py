"""Cases as JUnit XML: `testsuites` of `testsuite`s of `testcase`s, as Jenkins, GitLab and GitHub actions read it.

Elements and attributes are those of Jenkins' schema (junit-10.xsd), with `file` and `line` of a case beside them, as
pytest writes them and GitLab reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from dovetail.faults import Position
from dovetail_cli.render.words import printable

Kind = Literal["failure", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a case does not pass: it fails, could not be decided (`error`), or was left out (`skipped`)."""

    kind: Kind
    type: str
    message: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One case of a suite; `seconds` where they were taken."""

    name: str
    group: str
    trouble: Trouble | None = None
    position: Position | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that belong together."""

    name: str
    cases: tuple[Case, ...]


def rendered(suites: Sequence[Suite], name: str) -> str:
    """Return suites as text, under a name for all of them."""
    counts = _counts(case for suite in suites for case in suite.cases)
    del counts["skipped"]  # which only suites tell
    root = ElementTree.Element("testsuites", {"name": _clean(name), **counts})
    for suite in suites:
        below = ElementTree.SubElement(root, "testsuite", {"name": _clean(suite.name), **_counts(suite.cases)})
        for case in suite.cases:
            _add(below, case)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _counts(cases: Iterable[Case]) -> dict[str, str]:
    listed = list(cases)
    kinds = [case.trouble.kind for case in listed if case.trouble is not None]
    taken = [case.seconds for case in listed if case.seconds is not None]
    found = {"tests": len(listed), "failures": kinds.count("failure"), "errors": kinds.count("error")}
    counts = {key: str(count) for key, count in {**found, "skipped": kinds.count("skipped")}.items()}
    return {**counts, "time": f"{sum(taken):.3f}"} if taken else counts


def _add(suite: ElementTree.Element, case: Case) -> None:
    given = {"name": _clean(case.name), "classname": _clean(case.group)}
    if case.position is not None:
        given |= {"file": _clean(case.position.file), "line": str(case.position.line)}
    if case.seconds is not None:
        given["time"] = f"{case.seconds:.3f}"
    element = ElementTree.SubElement(suite, "testcase", given)
    trouble = case.trouble
    if trouble is None:
        return
    said = {"message": _clean(trouble.message)}
    if trouble.kind != "skipped":
        said["type"] = _clean(trouble.type)
    below = ElementTree.SubElement(element, trouble.kind, said)
    if trouble.text:
        below.text = printable(trouble.text, keep="\n")


def _clean(text: str) -> str:
    """Return text for an attribute: nothing that XML has no form for, and on one line."""
    return printable(text)
