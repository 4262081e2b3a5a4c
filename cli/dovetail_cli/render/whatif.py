"""A scenario beside its base, in every format."""

from __future__ import annotations

from dovetail_cli.render import comparison as facts
from dovetail_cli.render import machine, markdown, text
from dovetail_cli.render.columns import PLAIN, Screen, layout
from dovetail_cli.render.comparison import Comparison
from dovetail_cli.render.review import status
from dovetail_cli.render.words import printable

FORMATS = ("table", "json", "yaml", "md")
_NOTHING = "  a side has no plan, so there is no difference"


def rendered(comparison: Comparison, name: str, screen: Screen = PLAIN) -> str:
    """Return a what-if in a format; `json` and `yaml` hold the WhatIfResult."""
    if name in ("json", "yaml"):
        return machine.rendered(comparison.result.to_document(), name)
    return _markdown(comparison) if name == "md" else _table(comparison, screen)


def _table(comparison: Comparison, screen: Screen) -> str:
    result = comparison.result
    blocks = [
        _head(comparison, screen),
        layout([("scenario:", words) for words in facts.patches(result)], screen),
        layout([facts.HEAD, *facts.measures(result)], screen, right=(1, 2, 3)),
        layout([facts.TIER_HEAD, *facts.tiers(result)], screen, right=(1, 2, 3)) if facts.tiers(result) else [],
        text.failures(comparison.review, screen),
        text.changes(comparison.review, screen) if result.diff is not None else [_NOTHING],
        text.waiting(comparison.review, screen),
        [f"  {facts.verdict(result)}", *layout(facts.expectations(result), screen)] if result.checks else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(comparison: Comparison, screen: Screen) -> list[str]:
    result = comparison.result
    title = f"dovetail whatif: {result.scenario.name}   {facts.versions(comparison)}"
    sides = [("base", status(result.base)), ("scenario", status(result.result))]
    return [printable(title), *layout(sides, screen)]


def _markdown(comparison: Comparison) -> str:
    result, review = comparison.result, comparison.review
    sections = [
        _opening(comparison),
        _section("expectations", (), [_expectation(row) for row in facts.expectations(result)]),
        markdown.failures(review),
        _section("figures", facts.HEAD, facts.measures(result)),
        _section("tiers", facts.TIER_HEAD, facts.tiers(result)),
        markdown.changes(review),
        markdown.waiting(review),
        markdown.proof(review),
        markdown.replicas(review),
    ]
    return "\n".join(filter(None, (section.text() for section in markdown.shed(sections))))
