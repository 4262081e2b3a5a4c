"""A scenario beside its base, in every format."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail_cli.render import comparison as facts
from dovetail_cli.render import machine, markdown, text
from dovetail_cli.render.columns import PLAIN, Screen, headline, layout
from dovetail_cli.render.comparison import Comparison
from dovetail_cli.render.markdown import Section
from dovetail_cli.render.review import status
from dovetail_cli.render.words import plural

FORMATS = ("table", "json", "yaml", "md")
_NOTHING = "a side has no plan, so there is no difference"


def rendered(comparison: Comparison, name: str, screen: Screen = PLAIN) -> str:
    """Return a what-if in a format; `json` and `yaml` hold the WhatIfResult."""
    if name in ("json", "yaml"):
        return machine.rendered(comparison.result.to_document(), name)
    return _markdown(comparison) if name == "md" else _table(comparison, screen)


def _table(comparison: Comparison, screen: Screen) -> str:
    result = comparison.result
    measures, tiers = facts.measures(result), facts.tiers(result)
    blocks = [
        _head(comparison, screen),
        layout([("scenario:", words) for words in facts.patches(result)], screen),
        layout([facts.HEAD, *measures], screen, right=(1, 2, 3)) if measures else [],
        layout([facts.TIER_HEAD, *tiers], screen, right=(1, 2, 3, 4)) if tiers else [],
        text.conflict_lines(comparison.review, screen),
        text.failure_lines(comparison.review, screen),
        text.change_lines(comparison.review, screen) if result.diff is not None else [f"  {_NOTHING}"],
        text.waiting_lines(comparison.review, screen),
        text.broken_lines(comparison.review, screen),
        [f"  {facts.verdict(result)}", *layout(facts.expectations(result), screen)] if result.checks else [],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(comparison: Comparison, screen: Screen) -> list[str]:
    result = comparison.result
    title = (f"dovetail whatif: {result.scenario.name}", facts.versions(comparison))
    sides = [("base", status(result.base)), ("scenario", status(result.result))]
    return [*headline(title, screen), *layout(sides, screen)]


def _markdown(comparison: Comparison) -> str:
    result, review = comparison.result, comparison.review
    sections = [
        _opening(comparison),
        _expectations(comparison),
        markdown.conflict_section(review),
        markdown.failure_section(review),
        markdown.excused_section(review),
        _folded("figures", "Both sides", facts.HEAD, facts.measures(result), opened=True),
        _folded("tiers", "Tiers of both sides", facts.TIER_HEAD, facts.tiers(result)),
        markdown.change_section(review),
        markdown.waiting_section(review),
        markdown.promises_section(review),
        markdown.proof_section(review),
        markdown.replica_section(review),
    ]
    return "\n".join(filter(None, (section.text() for section in markdown.shed(sections))))


def _opening(comparison: Comparison) -> Section:
    result = comparison.result
    name = result.scenario.name
    sides = f"Base {markdown.text(status(result.base))}. Scenario {markdown.text(status(result.result))}."
    missed = f"**{plural(len(result.missed), 'expectation')} missed.** " if result.missed else ""
    said = markdown.summary(comparison.review) if result.diff is not None else f"A{_NOTHING[1:]}."
    patches = [f"- {markdown.text(words)}" for words in facts.patches(result)]
    lines = (
        markdown.marker("whatif", name),
        f"### dovetail whatif: {markdown.code(name)}",
        "",
        f"{missed}{sides} {said}",
        *(("", *patches) if patches else ()),
    )
    return Section("opening", lines)


def _expectations(comparison: Comparison) -> Section:
    lines = []
    for mark, words, said, *where in facts.expectations(comparison.result):
        place = "".join(f", {markdown.code(each)}" for each in where)
        sign = ":white_check_mark:" if mark == "+" else ":x:"
        lines.append(f"- {sign} {markdown.text(words)}: {markdown.text(said)}{place}")
    return Section("expectations", tuple(lines), head=("**Expectations**", ""))


def _folded(
    name: str, title: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, opened: bool = False
) -> Section:
    start, end = markdown.folded(title, opened=opened)
    lines = markdown.table_body([(_named(first), *map(markdown.text, rest)) for first, *rest in rows])
    return Section(name, lines, (*start, *markdown.table_head(head)), end)


def _named(label: str) -> str:
    """Return the first cell of a row: a tier's name as code, a label in words as it is."""
    return markdown.code(label) if "[" in label or "." in label else markdown.text(label)
