"""Annotations as GitHub's workflow commands: `::error file=...,line=...::message`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dovetail.faults import Fault, Position
from dovetail_cli.render import review as facts
from dovetail_cli.render.review import Review
from dovetail_cli.render.words import plural, printable

Level = Literal["error", "warning", "notice"]
MOST = 10
"""Annotations of a level that GitHub shows for one step."""

_OF_ENFORCEMENT: dict[str, Level] = {"hard": "error", "soft": "warning", "audit": "notice"}
_LEVELS: tuple[Level, ...] = ("error", "warning", "notice")


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation; without a position it belongs to the whole run."""

    level: Level
    title: str
    message: str
    position: Position | None = None


def of_faults(faults: Iterable[Fault]) -> str:
    """Return faults as annotations."""
    return rendered(_of_fault(fault) for fault in faults)


def _of_fault(fault: Fault) -> Annotation:
    hint = f"\nhint: {fault.hint}" if fault.hint else ""
    return Annotation(fault.severity, fault.code, fault.message + hint, fault.position)


def of_review(review: Review) -> str:
    """Return what a reviewer of a plan must see as annotations of the documents: broken policies, work left out."""
    return rendered((*_failures(review), *_left_out(review)))


def _failures(review: Review) -> Iterator[Annotation]:
    for failure in facts.failures(review):
        level = _OF_ENFORCEMENT[failure.result.enforcement]
        message = f"{failure.result.enforcement} policy {failure.name} fails: {failure.words()}"
        yield Annotation(level, f"policy {failure.name}", message, failure.position)
    for failure in facts.excused(review):
        message = f"{failure.result.enforcement} policy {failure.name} is excused: {failure.words()}"
        yield Annotation("notice", f"policy {failure.name}", message, failure.position)


def _left_out(review: Review) -> Iterator[Annotation]:
    where_is = review.places.workload if review.places else lambda name: None
    for name, result in sorted(review.plan.admitted.items()):
        state = f"{result.replicas} of {result.of} replicas admitted" if result.replicas else "not admitted"
        message = f"{name}: {state}" + (f": {facts.meaning(result.reasons)}" if result.reasons else "")
        yield Annotation("notice", f"workload {name}", message, where_is(name))


def rendered(annotations: Iterable[Annotation]) -> str:
    """Return annotations as text, worst first; beyond ten of a level the tenth counts the rest."""
    listed = list(annotations)
    lines: list[str] = []
    for level in _LEVELS:
        found = [each for each in listed if each.level == level]
        if len(found) > MOST:
            rest = len(found) - MOST + 1
            found = [*found[: MOST - 1], Annotation(level, "dovetail", f"and {plural(rest, f'more {level}')}")]
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
