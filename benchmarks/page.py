"""The page of measurements, in Markdown: each runner writes its sections from its raw figures in build/bench/."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import fleets_page, fragmentation_page, gangs_page, replan_page, serving_page, trace_page
from benchmarks.trace_page import Measured, Row

SCRATCH = Path(__file__).resolve().parent.parent / "build" / "bench"
PAGE = "benchmarks.md"
TRACE_RAW, FLEETS_RAW, HARDNESS_RAW = "trace.json", "fleets.json", "hardness.json"
JOINT_RAW = "fleets_joint.json"
BY_WORK_RAW = "fleets_by_work.json"
REPLAN_RAW, REPLAN_JOINT_RAW = "replan.json", "replan_joint.json"
POLICIES_RAW, ZONES_RAW, ENDED_RAW = "replan_policies.json", "replan_zones.json", "replan_ended.json"
SHARES_RAW, INSTANCES_RAW, BATCH_RAW = "replan_shares.json", "replan_instances.json", "replan_batch.json"
SERVING_RAW, CHANGED_RAW = "serving.json", "serving_changed.json"
FRAGMENTATION_RAW = "fragmentation.json"
LINGJUN_RAW, CASES_RAW = "lingjun.json", "gang_cases.json"
AT_TOP = (TRACE_RAW, FLEETS_RAW)
"""Raw figures whose machine is named at the top of the page."""

SECTIONS: Mapping[str, Callable[[Any], Iterable[str]]] = {
    TRACE_RAW: lambda figures: _trace(_lists(figures)),
    FLEETS_RAW: lambda figures: fleets_page.section(figures["fleets"]),
    HARDNESS_RAW: fleets_page.hardness,
    JOINT_RAW: lambda figures: fleets_page.joint(figures["fleets"]),
    BY_WORK_RAW: lambda figures: fleets_page.by_work(figures["fleets"]),
    REPLAN_RAW: lambda figures: replan_page.section(figures["fleets"]),
    REPLAN_JOINT_RAW: lambda figures: replan_page.joint(figures["fleets"]),
    POLICIES_RAW: lambda figures: replan_page.policies(figures["fleets"]),
    ZONES_RAW: lambda figures: replan_page.zones(figures["fleets"]),
    ENDED_RAW: lambda figures: replan_page.ended(figures["fleets"]),
    SHARES_RAW: lambda figures: replan_page.shares(figures["fleets"]),
    INSTANCES_RAW: lambda figures: replan_page.instances(figures["fleets"]),
    BATCH_RAW: lambda figures: replan_page.batch(figures["fleets"]),
    SERVING_RAW: lambda figures: serving_page.section(figures["fleets"]),
    CHANGED_RAW: lambda figures: serving_page.changed(figures["fleets"]),
    FRAGMENTATION_RAW: fragmentation_page.section,
    LINGJUN_RAW: gangs_page.lingjun,
    CASES_RAW: gangs_page.cases,
}
"""The sections that are written from each file of raw figures."""

MACHINE = "Machine: "
PACKAGES = ("dovetail", "ortools", "highspy", "numpy")
BUSY = 0.3  # processors that others have at the start, above which times are not those of a quiet machine

INTRODUCTION = """\
# Benchmarks

Written by `make bench`, which measures it section by section (`python -m benchmarks.trace`, `benchmarks.fleets`,
`benchmarks.by_work`, `benchmarks.hardness`, `benchmarks.replan`, `benchmarks.serving`, `benchmarks.fragmentation`,
`benchmarks.lingjun`, `benchmarks.gang_cases`): each keeps its raw figures in `build/bench/` and writes its own
sections anew; all others stay as they stand. In full it takes many hours: what stands here was measured with fewer
rivals and times where a table has fewer.
"""


def write_page(out: Path, measured: str) -> None:
    """Write the sections and plots of the raw figures that were just `measured`; all others stay as they stand."""
    figures, page = raw(measured), out / PAGE
    before = _sections(page.read_text(encoding="utf-8")) if page.exists() else {}
    head = f"{INTRODUCTION}\n{_machine_at_top(before.get('', ''), measured)}".rstrip() + "\n\n"
    now = _sections("\n".join(_told(measured, figures)))
    texts = dict(_plots(measured, figures)) | {PAGE: "".join(({**before, **now} | {"": head}).values())}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text.rstrip() + "\n", encoding="utf-8")
    print(f"wrote {', '.join(sorted(texts))} to {out}")


def _machine_at_top(before: str, measured: str) -> str:
    """Return what the top of the page says of the machine, as it stands where something else was measured."""
    if measured not in AT_TOP:
        return before[before.index(MACHINE) :] if MACHINE in before else ""
    return _machine(max(figures["load"] for name in AT_TOP if (figures := raw(name))))


def _told(name: str, figures: Any) -> Iterator[str]:
    """Yield the sections of raw figures, the first with its machine unless that is at the top."""
    first, *rest = SECTIONS[name](figures)
    yield from (first, *rest) if name in AT_TOP else (first, _machine(figures["load"]), *rest)


def _trace(lists: list[Measured]) -> Iterator[str]:
    yield from trace_page.section(lists)
    yield trace_page.baselines(lists)


def _sections(text: str) -> dict[str, str]:
    """Return the sections of a page by their headings, what is before the first under none."""
    found = {"": ""}
    for line in text.splitlines(keepends=True):
        heading = line.strip() if line.startswith("## ") else next(reversed(found))
        found[heading] = found.get(heading, "") + line
    return {heading: f"{part.rstrip()}\n\n" for heading, part in found.items()}


def _plots(name: str, figures: Any) -> Iterator[tuple[str, str]]:
    """Yield the plots of raw figures, by file."""
    if name == TRACE_RAW:
        yield trace_page.GAP_PLOT, trace_page.plot(_lists(figures))
    if name == FLEETS_RAW:
        yield from fleets_page.plots(figures["fleets"]).items()


def raw(name: str) -> Any:
    """Return raw figures, None where there are none."""
    file = SCRATCH / name
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def _lists(figures: Any) -> list[Measured]:
    return [Measured(**{**each, "rows": [Row(**row) for row in each["rows"]]}) for each in figures["lists"]]


def store(name: str, figures: Any) -> None:
    """Keep raw figures for the page."""
    SCRATCH.mkdir(parents=True, exist_ok=True)
    (SCRATCH / name).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _machine(load: float) -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    text = (
        f"{MACHINE}{cores} cores ({platform.machine()}), {memory:.0f} GiB memory, {platform.system()}; "
        f"Python {platform.python_version()}, {packages}.\n"
    )
    if load > BUSY:
        text += f"\n**Others had {load:.1f} processors at the start: times and what they allow are not typical.**\n"
    return text
