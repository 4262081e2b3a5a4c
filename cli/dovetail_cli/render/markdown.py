"""A plan as Markdown for a pull request: verdict, what fails, the figures; details folded.

GitHub takes comments of 65,536 characters. What is too long is shed in a known order (`SHEDDING`): replicas one by
one, what waits as before, what changes, what fails; heading, verdict and figures always stay.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dovetail.diff import ChangeKind, PlanDiff
from dovetail.plan.policies import counted_results
from dovetail_cli.render import review as facts
from dovetail_cli.render import verdicts
from dovetail_cli.render.further import further
from dovetail_cli.render.promises import broken
from dovetail_cli.render.review import Review
from dovetail_cli.render.words import amount, plural, printable

LARGEST = 65_000
"""Characters at most."""

SHEDDING = ("replicas", "waiting", "promises", "policies", "changes", "failures", "proof")
"""Sections that lose lines when there is too much, first to last."""

_WORDS: dict[ChangeKind | Literal["part"], str] = {
    "add": "admitted",
    "part": "admitted in part",
    "move": "moved",
    "restart": "restarted in place",
    "elsewhere": "placed elsewhere",
    "resize": "resized",
    "remove": "removed",
    "evict": "evicted",
    "out": "not admitted (admitted before)",
    "gone": "lost",
    "wait": "not admitted",
}
_SAFE = re.compile(r"[A-Za-z0-9 ./#:,()+=%>_\[\]-]+")
_SPECIAL = re.compile(r"[\\`*_{}\[\]()#+\-.!|~<>&\"'@:$^=]")
_MARKER = re.compile(r"[^A-Za-z0-9._-]")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the text; `lines` may be shed from their end, `head` and `tail` stay with what is left of them."""

    name: str
    lines: tuple[str, ...]
    head: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    shed: int = 0

    def text(self) -> str:
        """Return the section; nothing when it never had a line."""
        if not self.lines and not self.shed:
            return ""
        note = (f"{self._note()}",) if self.shed else ()
        return "\n".join((*self.head, *self.lines, *note, *self.tail)) + "\n"

    def _note(self) -> str:
        return f"\n_{plural(self.shed, 'more line')} left out._"


def rendered(review: Review, command: str = "plan") -> str:
    """Return the text, with a hidden marker by which a bot finds its comment again."""
    opening = (
        marker(command, review.plan.name),
        f"### dovetail {command}: {code(review.plan.name)}",
        "",
        verdict(review),
    )
    sections = [
        Section("opening", opening),
        conflict_section(review),
        failure_section(review),
        excused_section(review),
        _figures(review),
        change_section(review),
        waiting_section(review),
        promises_section(review),
        policy_section(review),
        proof_section(review),
        replica_section(review),
    ]
    return "\n".join(filter(None, (section.text() for section in shed(sections))))


def marker(command: str, name: str) -> str:
    """Return the hidden comment by which a bot finds what it wrote before."""
    return f"<!-- dovetail:{command} {_MARKER.sub('-', name)} -->"


def shed(sections: Sequence[Section], largest: int = LARGEST) -> list[Section]:
    """Return the sections, with lines taken from their ends until all of it is short enough."""
    kept = list(sections)
    for name in SHEDDING:
        for index, section in enumerate(kept):
            over = sum(len(each.text()) + 1 for each in kept) - largest
            if section.name == name and over > 0:
                kept[index] = _shorter(section, over)
    return kept


def _shorter(section: Section, over: int) -> Section:
    lines, cut = list(section.lines), 0
    # The note that says how many lines are missing needs room as well.
    while lines and cut < over + 60:
        cut += len(lines.pop()) + 1
    return replace(section, lines=tuple(lines), shed=section.shed + len(section.lines) - len(lines))


def verdict(review: Review) -> str:
    """Return the one sentence that says what a reviewer must know."""
    said = [f"**{text(facts.status(review.plan))}.**"]
    hard = sum(failure.result.enforcement == "hard" for failure in verdicts.failures(review))
    if hard:
        said.append(f"**{plural(hard, 'hard policy', 'hard policies')} broken.**")
    said += [f"{text(words[0].upper() + words[1:])}." for words in facts.no_difference(review)]
    return " ".join(filter(None, (*said, summary(review))))


def summary(review: Review) -> str:
    """Return what changes, counted; nothing where there is no plan."""
    if review.plan.outcome.status in ("infeasible", "unknown"):
        return ""
    if review.diff is None:
        short = len(review.plan.admitted)
        return f"{plural(short, 'workload')} not admitted in full." if short else "Everything is admitted."
    changes = review.diff.changes
    counts = Counter("part" if each.kind == "add" and each.in_part else each.kind for each in changes)
    parts = [f"{counts[kind]} {name}" for kind, name in _WORDS.items() if counts[kind]]
    if not parts:
        return _beside_workloads(review.diff)
    lost = review.diff.cost.gpu_hours_lost
    price = f"; {amount(lost)} GPU hours of work lost" if lost else ""
    return f"Workloads: {', '.join(parts)}{price}."


def _beside_workloads(diff: PlanDiff) -> str:
    """Return what is said of a difference that is about no workload."""
    if not diff:
        return "Nothing changes."
    count = len(further(diff))
    return f"No workload changes; {plural(count, 'other difference')}." if count else "No workload changes."


def failure_section(review: Review) -> Section:
    """Return the policies that fail."""
    lines = [
        _failure(":x:" if failure.result.enforcement == "hard" else ":warning:", failure)
        for failure in verdicts.failures(review)
    ]
    return Section("failures", tuple(lines), head=("**Policies that fail**", ""))


def conflict_section(review: Review) -> Section:
    """Return the hard policies that cannot hold together, where there is no plan."""
    lines = []
    for each in verdicts.opponents(review):
        place = f" ({code(f'{each.position.file}:{each.position.line}')})" if each.position else ""
        lines.append(f"- :x: {code(each.name)}{place}" + (f", {code(each.rule)}" if each.rule else ""))
    return Section("failures", tuple(lines), head=(f"**{text(verdicts.conflict(review.plan).capitalize())}.**", ""))


def excused_section(review: Review) -> Section:
    """Return the policies that only today excuses."""
    lines = [_failure(":warning:", failure) for failure in verdicts.excused(review)]
    return Section("failures", tuple(lines), head=("**Policies that are broken as today, and excused**", ""))


def _failure(mark: str, failure: verdicts.Failure) -> str:
    place = f" ({code(f'{failure.position.file}:{failure.position.line}')})" if failure.position else ""
    return f"- {mark} {code(failure.name)}{place}, {failure.result.enforcement}: {text(failure.words())}"


def _figures(review: Review) -> Section:
    rows = [(text(label), text(value)) for label, value in (*facts.figures(review), *facts.costs(review))]
    return Section("figures", table_body(rows), head=table_head(("figure", "value")))


def change_section(review: Review) -> Section:
    """Return what changes, a row per change; then what differs beside workloads."""
    changes = facts.ordered(review.diff.changes) if review.diff else []
    rows = [
        (facts.MARKS[c.kind], code(c.workload), text(c.shape), code(facts.where(c)), text(facts.words(c)))
        for c in changes
    ]
    rows += [
        (each.mark, f"{text(each.about)} {code(each.name)}", "", "", text(each.words))
        for each in (further(review.diff) if review.diff else ())
    ]
    head, tail = folded(f"{plural(len(rows), 'change')}, {_unchanged(review)} unchanged", opened=True)
    return Section("changes", table_body(rows), (*head, *table_head(("", "workload", "GPUs", "nodes", "what"))), tail)


def _unchanged(review: Review) -> str:
    return f"{review.diff.unchanged:,}" if review.diff else "0"


def waiting_section(review: Review) -> Section:
    """Return what is not admitted in full and is not among the changes."""
    rows = [(code(name), text(words)) for name, words in facts.waiting(review)]
    what = "still not admitted in full" if review.diff else "not admitted in full"
    head, tail = folded(f"{plural(len(rows), 'workload')} {what}")
    return Section("waiting", table_body(rows), (*head, *table_head(("workload", "why"))), tail)


def promises_section(review: Review) -> Section:
    """Return the promises that are not kept."""
    rows = [(code(name), text(words)) for name, words in broken(review)]
    head, tail = folded(f"{plural(len(rows), 'promise')} not kept")
    return Section("promises", table_body(rows), (*head, *table_head(("workload", "what is kept"))), tail)


def policy_section(review: Review) -> Section:
    """Return what became of each policy, folded."""
    rows = [
        (code(name), text(enforcement), text(result), text(what), code(where))
        for name, enforcement, result, what, where in verdicts.policies(review)
    ]
    head, tail = folded(f"Policies: {counted_results(review.plan.policies.values())}")
    return Section("policies", table_body(rows), (*head, *table_head(verdicts.POLICY_HEAD)), tail)


def proof_section(review: Review) -> Section:
    """Return every tier with its bound, folded."""
    rows = [(code(name), *map(text, rest)) for name, *rest in facts.tier_rows(review)]
    head, tail = folded("Proof: every tier with its bound")
    if said := [text(words) for words in facts.opinion(review.plan)]:
        tail = ("", *said, *tail)
    return Section("proof", table_body(rows), (*head, *table_head((*facts.TIER_HEAD, "change"))), tail)


def replica_section(review: Review) -> Section:
    """Return every replica that changes, folded."""
    changes = facts.ordered(review.diff.changes) if review.diff else []
    rows = [(code(row.replica), code(facts.row_place(row))) for change in changes for row in change.rows]
    head, tail = folded(f"{plural(len(rows), 'row')} of the plan")
    return Section("replicas", table_body(rows), (*head, *table_head(("replica", "place"))), tail)


def folded(summary: str, *, opened: bool = False) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return how a part begins that a reader opens by its summary, and how it ends."""
    return (f"<details{' open' if opened else ''}><summary>{text(summary)}</summary>", ""), ("", "</details>")


def table_head(head: Sequence[str]) -> tuple[str, ...]:
    """Return the first lines of a table."""
    return (f"| {' | '.join(head)} |", f"|{'---|' * len(head)}")


def table_body(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the rows of a table."""
    return tuple(f"| {' | '.join(row)} |" for row in rows)


def code(name: str) -> str:
    """Return a name out of a document as code; whatever it holds, it stays text.

    Inside code GitHub makes no links out of `@user` and `#1`. A name that could end the code is escaped instead.
    """
    if not name:
        return ""
    if _SAFE.fullmatch(name):
        return f"`{name}`"
    return f"<code>{text(name)}</code>"


def text(words: str) -> str:
    """Return text with everything that Markdown or HTML could take for markup as character references."""
    safe = printable(words)
    return _SPECIAL.sub(_reference, safe) if not _PLAIN.fullmatch(safe) else safe


_PLAIN = re.compile(r"(?:[A-Za-z0-9 ,()%/+=-]|(?<= -)>(?= )|:(?= )|\.(?=[0-9 ]|$))*")


def _reference(found: re.Match[str]) -> str:
    return f"&#{ord(found.group())};"
