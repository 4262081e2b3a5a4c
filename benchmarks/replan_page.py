"""The part of the page on fleets that change a little, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.tiers import DISRUPTION, GPU_WORK, MEND

INTRODUCTION = """\
## Fleets that change a little

`python -m benchmarks.fleet --replan DIR --plan PLAN --out LATER` makes a plan of such a fleet the present state: 90 %
of the GPUs go on as planned, one workload in a hundred is scaled, dropped, new or of another priority, and two nodes
in a thousand have failed. What runs is protected: it may move, and is never dropped. What hard policies lack since
then is mended first; admission comes next, then workloads evicted, GPU time lost, and moves; each bound is given the
values of the tiers before it. A move is counted where a replica leaves a place that stands; what ran on a failed node
restarts.
"""

BESIDE = """\
Beside it, within the same seconds: **first fit, nothing moved** leaves all that runs where it is and places the rest;
**first fit decreasing, anew** plans from scratch, and what is then elsewhere than today has moved. Values of
admission are in thousands, summed over the bands.
"""


POLICIES = """\
## Fleets that get a new policy

The same fleets, changed a little and with one more hard policy, which what runs breaks: a tenant's workloads must lie
**even** over zones (`maxSkew: 1`) or **few** of each in a rack (`maxPerDomain: 2`), three tenants must be **apart**
on nodes, or a tenant must be **off** an accelerator (`python -m benchmarks.replan --policies`). What is broken is
mended before anything else (S5.1), by moves, as nothing that runs is dropped. The bound on moves is given what is
left to mend. **First fit** leaves all that runs where it is, and places the rest.
"""


def policies(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on new policies."""
    yield POLICIES
    yield "\n".join(_mended(fleets))


def _mended(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield (
        "| GPUs | policy | limit | left to mend | by first fit | moves | bound on moves "
        "| widest gap of admission | evicted | total | memory | ended by |"
    )
    yield "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for each in fleets:
        plan = each["plan"]
        start = f"| {each['gpus']:,} | {each['policy']} | {plan['seconds']} s{', fast' if plan['fast'] else ''} "
        if plan["failed"]:
            yield f"{start}| no plan: {plan['failed']} |" + " |" * 8
            continue
        tiers = {tier["name"]: tier for tier in plan["tiers"]}
        moves = tiers[f"{DISRUPTION}moves"]
        cells = [
            _valued(tiers[MEND]),
            ", ".join(f"{rival['values'][MEND]:,}" if rival["values"] else "" for rival in each["rivals"]),
            f"{moves['value']:,}",
            f"{moves['bound']:,} ({moves['proof']})",
            f"{100 * _widest(tiers):.2f} %",
            _valued(tiers[f"{DISRUPTION}evicted"]),
            f"{plan['took']:,.1f} s",
            f"{plan['peak'] / 2**20:,.0f} MiB",
            plan["stopped_by"] + ("" if plan["verified"] else " (does not verify)"),
        ]
        yield start + "".join(f"| {cell} " for cell in cells) + "|"
    yield ""


def _widest(tiers: Mapping[str, Mapping[str, Any]]) -> float:
    return max(tier["gap"] or 0.0 for name, tier in tiers.items() if name.startswith("admitted"))


def section(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page."""
    yield INTRODUCTION
    yield "\n".join(_plans(fleets))
    yield BESIDE
    yield "\n".join(_rivals(fleets))


def _plans(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield (
        "| GPUs | limit | left to mend | widest gap of admission | evicted | GPU time lost | moves | bound on moves "
        "| restarts | gap of cost | first plan | solving | total | memory | ended by |"
    )
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for each in fleets:
        plan = each["plan"]
        start = f"| {each['gpus']:,} | {plan['seconds']} s{', fast' if plan['fast'] else ''} "
        if plan["failed"]:
            yield f"{start}| no plan: {plan['failed']} |" + " |" * 12
            continue
        tiers = {tier["name"]: tier for tier in plan["tiers"]}
        moves = tiers[f"{DISRUPTION}moves"]
        solving = sum(seconds for name, seconds in plan["phases"].items() if name not in OUTSIDE)
        first = f"{plan['first']:,.1f} s" if plan["first"] is not None else ""
        cells = [
            _valued(tiers[MEND]) if MEND in tiers else "0",
            f"{100 * _widest(tiers):.2f} %",
            _valued(tiers[f"{DISRUPTION}evicted"]),
            _valued(tiers[f"{DISRUPTION}gpuTimeLost"]),
            f"{moves['value']:,}",
            f"{moves['bound']:,} ({moves['proof']})" if moves["bound"] is not None else "none",
            f"{each['summary']['restarts']:,}",
            f"{100 * tiers['cost']['gap']:.2f} %" if tiers["cost"]["gap"] is not None else "no bound",
            first,
            f"{solving:,.1f} s",
            f"{plan['took']:,.1f} s",
            f"{plan['peak'] / 2**20:,.0f} MiB",
            plan["stopped_by"] + ("" if plan["verified"] else " (does not verify)"),
        ]
        yield start + "".join(f"| {cell} " for cell in cells) + "|"
    yield ""


OUTSIDE = frozenset({"load", "verify", "certify", "finish"})
"""Phases that are no search."""


def _valued(tier: Mapping[str, Any]) -> str:
    proved = tier["value"] == tier["bound"]
    return f"{tier['value']:,}" + ("" if proved else f" (bound {tier['bound']:,})")


def _rivals(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield "| GPUs | planner | admitted | replicas that move | workloads evicted | time | |"
    yield "|--:|---|--:|--:|--:|--:|---|"
    for each in fleets:
        plan = each["plan"]
        told = {tier["name"]: tier["value"] for tier in plan["tiers"]}
        yield _row(each["gpus"], "**dovetail**", told, plan["took"], plan["failed"])
        for rival in each["rivals"]:
            note = rival["failed"] or rival["note"]
            note += "" if rival["verified"] or rival["failed"] else " (does not verify)"
            yield _row(each["gpus"], rival["rival"], rival["values"], rival["seconds"], note)
    yield ""


def _row(gpus: int, name: str, values: Mapping[str, int], seconds: float, note: str) -> str:
    admitted = sum(v for tier, v in values.items() if tier.startswith(GPU_WORK))
    moves, evicted = values.get(f"{DISRUPTION}moves"), values.get(f"{DISRUPTION}evicted")
    shown = [f"{admitted / 1000:,.0f}", f"{moves:,}", f"{evicted:,}"] if values else ["", "", ""]
    return f"| {gpus:,} | {name} | {' | '.join(shown)} | {seconds:,.0f} s | {note} |"
