"""Plans and differences as text for a person at a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dovetail.diff import Change
from dovetail.faults import Position
from dovetail.plan import Plan
from dovetail.plan.policies import counted_results
from dovetail_cli.render import review as facts
from dovetail_cli.render import verdicts
from dovetail_cli.render.columns import PLAIN, Screen, headline, layout, layout_each, prose
from dovetail_cli.render.further import further
from dovetail_cli.render.grouping import Group
from dovetail_cli.render.promises import broken
from dovetail_cli.render.review import Review
from dovetail_cli.render.words import amount, nodes, plural

_MOST_WAITING = 10
_MOST_LISTED = 40
_MOST_WASTED = 5
_MOST_FURTHER = 10


def rendered(review: Review, screen: Screen = PLAIN, command: str = "plan", body: Sequence[str] | None = None) -> str:
    """Return a plan, as a difference where there is a base, else as an overview, of workloads or of another body."""
    blocks = [_head(review, screen, command), list(_figures(review, screen)), failure_lines(review, screen)]
    blocks.append(conflict_lines(review, screen))
    blocks.append([line for said in facts.no_difference(review) for line in prose(said, screen)])
    if review.diff is None:
        rows = _workloads(review, screen) if body is None else list(body)
        blocks += [tier_lines(review, screen), _allocation(review, screen), rows, waiting_lines(review, screen)]
        blocks += [broken_lines(review, screen), policy_lines(review, screen), waste_lines(review, screen)]
    else:
        # What changes comes first; the proof is where a reader looks next, at the end.
        blocks += [change_lines(review, screen), waiting_lines(review, screen), broken_lines(review, screen)]
        blocks += [policy_lines(review, screen), tier_lines(review, screen)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head(review: Review, screen: Screen, command: str) -> list[str]:
    title = f"dovetail {command}: {review.plan.name}"
    return headline((title, facts.versions(review), facts.status(review.plan)), screen)


def _figures(review: Review, screen: Screen) -> Iterator[str]:
    for pairs in (facts.figures(review), facts.costs(review)):
        cells = [f"{label} {text}" for label, text in pairs]
        if cells:
            yield from prose("    ".join(cells), screen)


def failure_lines(review: Review, screen: Screen) -> list[str]:
    """Return the policies that fail, and those that only today excuses, a line each."""
    rows = [_failure("!" if f.result.enforcement == "hard" else "?", "fails", f) for f in verdicts.failures(review)]
    return layout([*rows, *(_failure("?", "excused", found) for found in verdicts.excused(review))], screen)


def _failure(mark: str, how: str, failure: verdicts.Failure) -> tuple[str, ...]:
    what = f"{failure.result.enforcement}, {how}"
    return mark, f"policy {failure.name}", what, _place(failure.position), failure.words()


def conflict_lines(review: Review, screen: Screen) -> list[str]:
    """Return the hard policies that cannot hold together, a line each; nothing where there is a plan."""
    if review.plan.outcome.status != "infeasible":
        return []
    rows = [
        ("!", f"policy {each.name}", each.rule, _place(each.position) or each.origin)
        for each in verdicts.opponents(review)
    ]
    return [*prose(verdicts.conflict(review.plan), screen), *layout(rows, screen)]


def _place(position: Position | None) -> str:
    return f"{position.file}:{position.line}" if position else ""


def policy_lines(review: Review, screen: Screen) -> list[str]:
    """Return what became of the policies: how many pass, and which; those that fail are told before."""
    rows = verdicts.policies(review)
    if not rows:
        return []
    told = ("waived", "pass") if review.detail or review.diff is None else ("waived",)
    shown = [row for row in rows if row[2] in told]
    lines = [f"  policies: {counted_results(review.plan.policies.values())}"]
    return lines + layout([(*row[:3], row[4], row[3]) for row in shown], screen, indent=4)


def tier_lines(review: Review, screen: Screen) -> list[str]:
    """Return the proof of a plan: every tier with its bound and what that rests on; what another engine says."""
    rows = facts.tier_rows(review)
    lines = layout([(*facts.TIER_HEAD, ""), *rows], screen, right=(1, 2, 3)) if rows else []
    return lines + [line for said in facts.opinion(review.plan) for line in prose(said, screen)]


def _allocation(review: Review, screen: Screen) -> list[str]:
    rows = facts.allocation(review)
    head = ("accelerator", "allocated", "of", "", "on")
    return layout([head, *rows], screen, right=(1, 2, 3)) if rows else []


def _workloads(review: Review, screen: Screen) -> list[str]:
    """Return what is admitted, a line per workload; of very many only the count."""
    placed = by_workload(review.plan)
    listed = placed if review.detail else dict(list(placed.items())[:_MOST_LISTED])
    rows = [(name, plural(count, "replica"), nodes(where)) for name, (count, where) in listed.items()]
    lines = layout(rows, screen)
    if len(placed) > len(listed):
        lines.append(f"    {plural(len(placed) - len(listed), 'more workload')} admitted (--detail)")
    return lines


def waste_lines(review: Review, screen: Screen) -> list[str]:
    """Return what the layouts of GPUs waste, and the swaps that would mend it."""
    rows = facts.waste(review)
    most = len(rows) if review.detail else _MOST_WASTED
    lines = layout([("?", *row) for row in rows[:most]], screen)
    if len(rows) > most:
        rest = plural(len(rows) - most, "more layout that wastes", "more layouts that waste")
        lines.append(f"    {rest} something (--detail)")
    return lines


def group_lines(groups: Sequence[Group], screen: Screen) -> list[str]:
    """Return what lies in each group, a line per group."""
    head = ("", "GPUs", "replicas", "workloads", "nodes")
    rows = [
        (
            group.name,
            amount(len(group.gpus)),
            amount(group.replicas),
            amount(len(group.workloads)),
            nodes(group.nodes),
        )
        for group in groups
    ]
    return layout([head, *rows], screen, right=(1, 2, 3))


def by_workload(plan: Plan) -> dict[str, tuple[int, set[str]]]:
    """Return how many replicas each admitted workload has, and on which nodes."""
    count: Counter[str] = Counter()
    where: dict[str, set[str]] = {}
    for replica, place in plan.placements.items():
        count[replica.workload] += 1
        where.setdefault(replica.workload, set()).add(place.node)
    return {name: (count[name], where[name]) for name in sorted(where)}


def change_lines(review: Review, screen: Screen) -> list[str]:
    """Return what changes, a line per change, with every replica where details are asked for; then what else does."""
    diff = review.diff
    if diff is None or not diff:
        return ["  nothing changes"]
    changes = facts.ordered(diff.changes)
    rows = [(facts.MARKS[c.kind], c.workload, c.shape, facts.where(c), facts.words(c)) for c in changes]
    if not review.detail:
        hidden = [f"    {diff.unchanged:,} unchanged hidden (--detail)"] if diff.unchanged else []
        return layout(rows, screen) + _further(review, screen) + hidden
    lines: list[str] = []
    # One change after the other, each followed by its replicas; the widths are those of all together.
    for change, block in zip(changes, layout_each(rows, screen), strict=True):
        lines += [*block, *_rows(change, screen)]
    return lines + _further(review, screen) + layout([("=", name) for name in _unchanged(review)], screen)


def _further(review: Review, screen: Screen) -> list[str]:
    """Return what differs beside workloads, a line each."""
    rows = (
        [(each.mark, f"{each.about} {each.name}", each.words) for each in further(review.diff)] if review.diff else []
    )
    most = len(rows) if review.detail else _MOST_FURTHER
    lines = layout(rows[:most], screen)
    if len(rows) > most:
        lines.append(f"    {plural(len(rows) - most, 'more difference')} (--detail)")
    return lines


def _rows(change: Change, screen: Screen) -> list[str]:
    return layout([(row.replica, facts.row_place(row)) for row in change.rows], screen, indent=6)


def _unchanged(review: Review) -> list[str]:
    told = {change.workload for change in review.diff.changes} if review.diff else set()
    return sorted({replica.workload for replica in review.plan.placements} - told)


def waiting_lines(review: Review, screen: Screen) -> list[str]:
    """Return what is not admitted in full, unless a change says so."""
    rows = facts.waiting(review)
    most = len(rows) if review.detail else _MOST_WAITING
    lines = layout([("!", name, words) for name, words in rows[:most]], screen)
    if len(rows) > most:
        lines.append(f"    {len(rows) - most:,} more not admitted in full (--detail)")
    return lines


def broken_lines(review: Review, screen: Screen) -> list[str]:
    """Return the promises that are not kept."""
    rows = broken(review)
    most = len(rows) if review.detail else _MOST_WAITING
    lines = layout([("?", name, words) for name, words in rows[:most]], screen)
    if len(rows) > most:
        rest = plural(len(rows) - most, "more promise is", "more promises are")
        lines.append(f"    {rest} not kept (--detail)")
    return lines
