"""What is wrong and where: what build servers and editors show beside a line, whatever their format."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from dovetail.faults import Fault, Position
from dovetail_cli.render import review as facts
from dovetail_cli.render import verdicts
from dovetail_cli.render.review import Review

Level = Literal["error", "warning", "notice"]
LEVELS: tuple[Level, ...] = ("error", "warning", "notice")

_OF_ENFORCEMENT: dict[str, Level] = {"hard": "error", "soft": "warning", "audit": "notice"}


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation; without a position it belongs to the whole run.

    Parameters
    ----------
    rule : what kind of thing is wrong, as machines tell it: a code, or words of a fixed set.
    """

    level: Level
    rule: str
    title: str
    message: str
    position: Position | None = None


def of_faults(faults: Iterable[Fault]) -> Iterator[Annotation]:
    """Yield faults as annotations."""
    for fault in faults:
        hint = f"\nhint: {fault.hint}" if fault.hint else ""
        yield Annotation(fault.severity, fault.code, fault.code, fault.message + hint, fault.position)


def of_review(review: Review) -> Iterator[Annotation]:
    """Yield what a reviewer of a plan must see in the documents: conflicts, broken policies, work left out."""
    yield from _conflict(review)
    yield from _failures(review)
    yield from _left_out(review)


def _conflict(review: Review) -> Iterator[Annotation]:
    if review.plan.outcome.status != "infeasible":
        return
    found = verdicts.opponents(review)
    for each in found:
        others = ", ".join(other.name for other in found if other is not each)
        together = f" together with {others}" if others else ""
        message = f"hard policy {each.name} cannot hold{together}; without it there is a plan"
        yield Annotation("error", "conflict", f"policy {each.name}", message, each.position)
    if not found:
        yield Annotation("error", "infeasible", "no plan", verdicts.conflict(review.plan))


def _failures(review: Review) -> Iterator[Annotation]:
    for failure in verdicts.failures(review):
        level = _OF_ENFORCEMENT[failure.result.enforcement]
        message = f"{failure.result.enforcement} policy {failure.name} fails: {failure.words()}"
        yield Annotation(level, "policy-fails", f"policy {failure.name}", message, failure.position)
    for failure in verdicts.excused(review):
        message = f"{failure.result.enforcement} policy {failure.name} is excused: {failure.words()}"
        yield Annotation("notice", "policy-excused", f"policy {failure.name}", message, failure.position)


def _left_out(review: Review) -> Iterator[Annotation]:
    where_is = review.places.workload if review.places else lambda name: None
    for name, result in sorted(review.plan.admitted.items()):
        state = f"{result.replicas} of {result.of} replicas admitted" if result.replicas else "not admitted"
        message = f"{name}: {state}" + (f": {facts.meaning(result.reasons)}" if result.reasons else "")
        yield Annotation("notice", "not-admitted", f"workload {name}", message, where_is(name))


def fingerprints(annotations: Iterable[Annotation]) -> list[str]:
    """Return for each annotation a digest that stays where lines move, and differs from that of the others."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for each in annotations:
        key = each.rule, each.position.file if each.position else "", each.title, each.message
        seen[key] += 1
        found.append(hashlib.sha256("\0".join((*key, str(seen[key]))).encode("utf-8", "replace")).hexdigest())
    return found
