"""How an answer compares with what is proved of its case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.gang.answer import Answer
from benchmarks.gang.case import Case

ASPECTS = ("fits", "optimum", "moves", "fewest_victims", "most_admitted")


def agreement(case: Case, answer: Answer) -> Mapping[str, bool]:
    """Return, per aspect that the truth of a case speaks of, whether the answer says the same."""
    truth: Mapping[str, Any] = case.raw.get("truth") or {}
    said: Mapping[str, Any] = {
        "fits": answer.fits,
        "optimum": dict(answer.domains),
        "moves": _size(answer.moved),
        "fewest_victims": _size(answer.evicted),
        "most_admitted": _size(answer.admitted),
    }
    told = {aspect: truth[aspect] for aspect in ASPECTS if truth.get(aspect) is not None}
    if not answer.fits and not answer.placement:
        told.pop("optimum", None) if told.get("fits") is False else None
    return {aspect: said[aspect] == _number(value) for aspect, value in told.items()}


def _size(found: tuple[Any, ...] | None) -> int | None:
    return None if found is None else len(found)


def _number(value: Any) -> Any:
    return len(value) if isinstance(value, list) else value
