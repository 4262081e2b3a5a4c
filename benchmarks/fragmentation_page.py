"""The part of the page on idle GPU that nobody can use, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_INTRODUCTION = """\
## Idle GPU that nobody can use

The first {first:,} and more of the pods of `default`, so that part of the fleet stays idle
(`python -m benchmarks.fragmentation`). For each shape of pod with GPUs, what is idle and of no use to it counts as
**fragmented**, and the mean over all pods is told in GPUs: the measure of the FGD paper (S5.5), which FGD descends
pod by pod and dovetail has as its last tier. All is counted anew from who is where. Either all pods are planned at
once, or, where pods are told as a sum, the next ones **beside** what FGD had placed, and nothing moves; the bound is
then that of plans in which all may move.
"""

_BESIDE = """\
The gap is that of dovetail to its bound. Seconds are those of the whole command, for the others those of placing.
"""


def section(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the part of the page."""
    cases = figures["cases"]
    yield _INTRODUCTION.format(first=min(case["before"] or case["arrived"] for case in cases))
    yield "\n".join(table(cases))
    yield _BESIDE


def table(cases: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a row for each planner of each case."""
    yield "| pods | planner | placed | idle | fragmented | bound | gap | seconds |"
    yield "|--:|---|--:|--:|--:|--:|--:|--:|"
    for case in cases:
        before, arrived = case["before"], case["arrived"]
        pods = f"{before:,} + {arrived - before:,}" if before else f"{arrived:,}"
        for row in case["rows"]:
            counts = [f"{row['placed']:,}", f"{row['idle']:,.1f}", f"{row['fragmented']:,.2f}"]
            yield f"| {' | '.join([pods, row['planner'], *counts, *_proof(row), format(row['seconds'], '.1f')])} |"
    yield ""


def _proof(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the bound and the gap to it, nothing for who has none."""
    if row["bound"] is None:
        return "", ""
    gap = (row["fragmented"] - row["bound"]) / row["fragmented"] if row["fragmented"] else 0.0
    return f"{row['bound']:,.2f}", f"{100 * gap:.2f} %"
