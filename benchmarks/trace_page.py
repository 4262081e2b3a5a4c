"""The part of the page on the Alibaba trace, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.plot import Panel, svg

GAP_PLOT = "benchmarks-gap.svg"

# Figures for the same lists from another implementation: best fit and FGD online, and the bound from GPU patterns.
REFERENCE = {
    "default": (5773.4, 5910.3, 6020.1),
    "cpu100": (5794.4, 5903.1, 6017.7),
    "gpushare40": (5679.2, 5843.1, 5940.6),
    "gpuspec10": (5805.8, 5874.6, 6017.1),
    "multigpu20": (5799.2, 5925.0, 6047.2),
}

INTRODUCTION = """\
## The Alibaba GPU trace 2023

1,213 nodes with 6,212 GPUs of seven models; pods arrive in a seeded order, drawn with replacement after the trace is
exhausted; nothing departs; what does not fit is dropped. Each list holds the pods that had arrived when their demand
reached 100 % of the GPUs. A pod asks for CPU, memory, and no GPU, thousandths of one, or whole ones, sometimes of
certain models only. The question is how much of the GPUs is allocated.

**What is compared.** An offline plan may re-place everything and choose what to drop, so compare it with "re-plan at
this point", not with an online policy's rules: best fit and FGD decide pod by pod, in order of arrival, and never
take anything back. First fit decreasing is offline, like a plan.
"""

EXPLANATION = """\
- **bound**: no plan allocates more GPUs. It rests on GPU patterns and, per kind of node, on totals and classes of
  CPU and memory; the borders of nodes it knows no further, so a part of the gap may be the bound's. **Gap** is that
  to the least bound of the table.
- **CPU-only**: pods without GPU that run, of those that arrived. In a plan they come after GPUs (`admitted-cpu`).
- **time** is that of the whole command, from documents to the verified plan on disk; for baselines that of placing.
  dovetail's limit is given in its row: so many seconds, with work to spare (`--time-limit 60s --work 600`); `ended
  by` names what ended the search.
- Every plan passes `dovetail verify`, and every baseline's placement a check of CPU, memory, GPUs and models.
"""

BASELINES = """\
## The baselines

Written from their definitions in `benchmarks/baselines.py`; the docstrings there are exact. All of them break ties by
the order of the nodes in the file, then by GPU index.

- **first fit decreasing**: pods by GPUs in all, then CPU, then memory, largest first; first node, first GPU.
- **best fit**: least 0.5 CPU / 128 cores + 0.5 GPU / 8 left on the node; the fullest GPU that still holds a share.
- **FGD** (fragmentation gradient descent, USENIX ATC 2023): the least growth of fragmentation, in whole points of
  100 x sigmoid(fall in GPUs), which is a tolerance of 0.04 GPU and more. Ties to the first node are part of it: with
  random ties it is worse than best fit. Popular classes are those of the arrived pods, until they cover 95 %.

Beside reference figures for the same lists, from another implementation:

{reference}

They differ by up to {most:.1f} %. The definitions leave ties open (best fit's score in floating point alone moves it
by 5 GPUs on the default list), and the reference takes the popular classes of FGD from the whole trace that a list
was drawn from.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One planner on one list; GPUs in milli-GPU, memory in bytes. `history` pairs seconds with value and bound."""

    planner: str
    milli: int
    cpu_only: int
    seconds: float
    bound: int | None = None
    stopped_by: str | None = None
    peak: int | None = None
    verify_seconds: float | None = None
    history: list[tuple[float, int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Measured:
    """All planners on one list of arrived pods."""

    arrived: str
    pods: int
    cpu_only: int
    demand: int
    rows: list[Row]

    @property
    def bound(self) -> int:
        """The least bound that any run proved."""
        return min(row.bound for row in self.rows if row.bound is not None)


def section(found: Sequence[Measured]) -> Iterator[str]:
    """Yield the part of the page."""
    yield INTRODUCTION
    for each in found:
        yield "\n".join(_list(each))
    yield EXPLANATION
    yield (
        f"![Gap to the proved bound against time, one panel per list]({GAP_PLOT})\n\n"
        "Gap against time of the longest run; dashed are the baselines. Both axes are logarithmic.\n"
    )


def baselines(found: Sequence[Measured]) -> str:
    """Return what the baselines are, beside reference figures."""
    return BASELINES.format(reference="\n".join(_reference(found)), most=_most(found))


def _list(each: Measured) -> Iterator[str]:
    yield f"### {each.arrived}\n"
    yield f"{each.pods:,} pods that ask for {each.demand / 1000:,.1f} GPUs in all; {each.cpu_only:,} ask for none.\n"
    yield "| planner | GPUs allocated | CPU-only | bound | gap | time | ended by | memory | verify |"
    yield "|---|--:|--:|--:|--:|--:|---|--:|--:|"
    for row in each.rows:
        yield f"| {' | '.join(_cells(each, row))} |"
    yield ""


def _cells(each: Measured, row: Row) -> Iterator[str]:
    yield row.planner
    yield f"{row.milli / 1000:,.1f}" if row.milli else ""
    yield f"{row.cpu_only:,}/{each.cpu_only:,}" if row.milli else ""
    yield f"{row.bound / 1000:,.1f}" if row.bound is not None else ""
    yield f"{100 * (each.bound - row.milli) / each.bound:.2f} %" if row.milli else ""
    yield f"{row.seconds:,.1f} s"
    yield row.stopped_by or ""
    yield f"{row.peak / 2**20:,.0f} MiB" if row.peak is not None else ""
    yield f"{row.verify_seconds:.1f} s" if row.verify_seconds is not None else ""


def _reference(found: Sequence[Measured]) -> Iterator[str]:
    yield "| list | best fit here | reference | FGD here | reference | bound here | reference |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for each in _known(found):
        best_fit, fgd, bound = REFERENCE[each.arrived]
        mine = _of(each, "best fit"), _of(each, "FGD")
        yield (
            f"| {each.arrived} | {mine[0]:,.1f} | {best_fit:,.1f} | {mine[1]:,.1f} | {fgd:,.1f} "
            f"| {each.bound / 1000:,.1f} | {bound:,.1f} |"
        )


def _most(found: Sequence[Measured]) -> float:
    """Return the largest difference between a baseline here and its reference, in per cent."""
    differences = (
        100 * abs(_of(each, name) - REFERENCE[each.arrived][position]) / REFERENCE[each.arrived][position]
        for each in _known(found)
        for position, name in enumerate(("best fit", "FGD"))
    )
    return max(differences, default=0.0)


def _known(found: Sequence[Measured]) -> list[Measured]:
    return [each for each in found if each.arrived in REFERENCE]


def _of(each: Measured, name: str) -> float:
    return next(row.milli for row in each.rows if row.planner.startswith(name)) / 1000


def plot(found: Sequence[Measured]) -> str:
    """Plot the gap of the longest run of each list against time, with the baselines as levels."""
    panels = []
    longest = 1.0
    for each in found:
        run = each.rows[-1]
        longest = max(longest, run.seconds)
        points = [(at, 100 * (bound - value) / bound) for at, value, bound in run.history]
        levels = {
            row.planner.split(",")[0]: 100 * (each.bound - row.milli) / each.bound
            for row in each.rows
            if row.bound is None and row.milli
        }
        panels.append(Panel(each.arrived, points, levels))
    return svg(panels, (1.0, max(10.0, longest)), (0.01, 10.0))
