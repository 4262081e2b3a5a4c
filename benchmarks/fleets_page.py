"""The part of the page on synthetic fleets, in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.plot import Curve, Panel, curves, svg
from benchmarks.tiers import GPU_WORK

from dovetail.plan import relative_gap

GAP_PLOT, GROWTH_PLOT = "benchmarks-fleets.svg", "benchmarks-growth.svg"

INTRODUCTION = """\
## Synthetic fleets

`python -m benchmarks.fleet --gpus N --seed S --load L --out DIR` writes them: H100, A100 and L40S nodes in four
unequal zones and racks of 8 to 32, residual nodes (lean hosts, half boards, failed GPUs), prices per node; 300 shapes
of whole GPUs, 100 of thousandths of one and 24 without; ten tenants with quotas, one alone on its nodes, three that
share none, three that share no card; services spread over zones; work that only certified nodes may run; three
priorities. The load is what is asked for over what is healthy.

A tier's bound is given the values of the tiers before it; from a load of 1 admission is in question, below it cost,
and the plot shows the widest gap of those tiers. Seconds are of wall clock. **First plan** is from the start of
solving; **total** that of the whole command, reading and verification included. Time ends these runs, so no two are
the same: the last band, of which what earlier ones lack counts as room, has a fifth or five times the gap next time.
**In all** is what bands lack of GPU work together, over their bounds together: no plan that has as much of every band
has more in all by more than that.
"""

JOINT = """\
## Fleets with gangs and MIG services

`python -m benchmarks.fleet --also gangs slices` writes the same fleets with other work in a part of the load: gangs
of 2 to 128 whole nodes, at most a sixteenth of the fleet, that demand or prefer a rack or a zone of ragged racks, ask
for 15 % of the capacity, and services on MIG instances of 1g to 7g of two products for 6 %. Gangs, whole GPUs, parts
of one and instances are in one plan. A gang is there as a whole or not at all, and bounds count it so too.
`--also survive` lets services of the highest priority survive the loss of any rack, for which work of lower ones
goes; `--also spares` holds whole nodes, places of one rack and halves of GPUs free; `--also single` has some nodes
offer MIG with `migStrategy: single`, `--also modes` some shared by equal parts, with policies on modes and clients.
`--also elastic` lets gangs run from half to five quarters as wide as that; `--also deadlines` gives half of the jobs
of whole GPUs work to be done by a day, on faster and slower GPUs, and the objective what is missing of that (`slo`)
right after admission.
"""

BY_WORK = """\
## Fleets planned without options

`dovetail plan PROJECT` alone, as a newcomer runs it: 60 units of work end the search, in one process, and equal
documents give equal plans. Each is planned once more with `--jobs 2`, and files are compared byte for byte.
"""

RIVALS = """\
What others reach on the same documents within the same seconds (a solver between two steps may take
longer), each in a process of its own with 8 GiB at most.
Values are sums over the admitted replicas, in thousands, band by band; an earlier band is never traded for a later
one. Every placement passes `dovetail verify` (quotas, spreads, isolation and all), unless noted.
"""

EXPLAINED = """\
- **first fit decreasing**, **best fit**, **FGD** as below, band after band; hard rules through the same running
  accounts that dovetail's construction asks: a place that a rule blocks is passed over.
- **CP-SAT per replica and node**: a variable per replica, node and, for parts of a GPU, GPU; tier after tier.
- **HiGHS per shape and node**: counts instead of booleans; tier after tier.
- **random parts** (POP): nodes and replicas split at random into parts of about 120 GPUs, limits split alike, each
  part solved by HiGHS on counts; what parts break together is taken off again.
"""


def section(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page."""
    yield INTRODUCTION
    yield "\n".join(_gaps(fleets))
    yield f"![Widest gap against time, one panel per fleet]({GAP_PLOT})\n"
    yield "### Where the time goes\n"
    yield "\n".join(_phases(fleets))
    yield f"![Seconds of each phase against the number of GPUs]({GROWTH_PLOT})\n"
    yield from _relaxed(fleets)
    if any(each["rivals"] for each in fleets):
        yield "### Beside others\n"
        yield RIVALS
        for each in fleets:
            yield "\n".join(_rivals(each))
        yield EXPLAINED


def joint(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets with gangs and MIG services."""
    yield JOINT
    for also, mine in _by_other_work(fleets):
        yield f"### With {' and '.join(also)}\n"
        yield "\n".join(_gaps(mine))
        for each in mine if "gangs" in also else ():
            done = [plan for plan in each["plans"] if not plan["failed"]]
            told = ", ".join(f"{plan['gangs']} in {plan['seconds']} s" for plan in done) or "none"
            yield f"Of {each['gangs']} gangs at {each['gpus']:,} GPUs and load {each['load']:g} are there: {told}.\n"
        yield from _relaxed(mine)


def by_work(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on plans without options."""
    yield BY_WORK
    for also, mine in _by_other_work(fleets):
        yield f"### {' and '.join(also).capitalize() or 'Whole GPUs, parts of one'}, without options\n"
        yield "\n".join(_gaps(mine))
        yield f"The same bytes again: {sum(each['again'] for each in mine)} of {len(mine)}.\n"


def _by_other_work(
    fleets: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[tuple[str, ...], list[Mapping[str, Any]]]]:
    """Yield what else takes a part of the load, in the order of the figures, each with the fleets where it does."""
    for also in dict.fromkeys(tuple(each["also"]) for each in fleets):
        yield also, [each for each in fleets if tuple(each["also"]) == also]


def _gaps(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    promised = ["slo"] if any(tier["name"] == "slo" for tier in _tiers(fleets)) else []
    gaps = [f"gap of {name}" for name in (*promised, "cost")]
    names = "gaps of admission", "in all", *gaps, "first plan", "total", "memory", "ended by"
    yield f"| GPUs | load | limit | {' | '.join(names)} |"
    yield f"|--:|--:|--:|---|--:|{'--:|' * len(gaps)}--:|--:|--:|---|"
    for each in fleets:
        for plan in each["plans"]:
            limit = "work" if plan["seconds"] is None else f"{plan['seconds']} s{', fast' if plan['fast'] else ''}"
            start = f"| {each['gpus']:,} | {each['load']:g} | {limit} "
            if plan["failed"]:
                none = "| " * (len(gaps) + 2)
                yield f"{start}| no plan: {plan['failed']} {none}| {plan['took']:,.1f} s | {_memory(plan)} | |"
                continue
            tiers = {tier["name"]: tier for tier in plan["tiers"]}
            asked = [
                f"{name} {_gap(tier)}" for name, tier in tiers.items() if name.startswith("admitted") and tier["gap"]
            ]
            shown = ", ".join(asked) or "none"
            later = " | ".join(_gap(tiers.get(name)) for name in (*promised, "cost"))
            first = f"{plan['first']:,.1f} s" if plan["first"] is not None else ""
            unverified = "" if plan["verified"] else " (does not verify)"
            yield (
                f"{start}| {shown} | {_in_all(tiers.values())} | {later} "
                f"| {first} | {plan['took']:,.1f} s | {_memory(plan)} | {plan['stopped_by']}{unverified} |"
            )
    yield ""


def _gap(tier: Mapping[str, Any] | None) -> str:
    """Return a gap in per cent; a bound by arithmetic on the documents alone says so."""
    if tier is None or tier["gap"] is None:
        return "no bound"
    trivial = " (trivial bound)" if tier["proof"] == "trivial" and tier["gap"] else ""
    return f"{100 * tier['gap']:.2f} %{trivial}"


def _in_all(tiers: Iterable[Mapping[str, Any]]) -> str:
    """Return what the bands lack of GPU work together, in per cent of their bounds together."""
    bands = [tier for tier in tiers if tier["name"].startswith(GPU_WORK)]
    if any(tier["bound"] is None for tier in bands):
        return "no bound"
    value, bound = (sum(tier[each] for tier in bands) for each in ("value", "bound"))
    return f"{100 * relative_gap(value, bound):.2f} %"


def _memory(plan: Mapping[str, Any]) -> str:
    return f"{plan['peak'] / 2**20:,.0f} MiB"


def _phases(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = list(dict.fromkeys(name for each in fleets for plan in each["plans"] for name in plan["phases"]))
    yield f"| GPUs | load | limit | validate | {' | '.join(names)} | verify again |"
    yield "|--:|--:|--:|--:|" + "--:|" * (len(names) + 1)
    for each in fleets:
        for plan in each["plans"]:
            cells = [f"{plan['phases'][name]:,.1f}" if name in plan["phases"] else "" for name in names]
            yield (
                f"| {each['gpus']:,} | {each['load']:g} | {plan['seconds']} s | {each['validate']:,.1f} "
                f"| {' | '.join(cells)} | {plan['verify']:,.1f} |"
            )
    yield ""


def _relaxed(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the bounds ignore, where they ignore anything."""
    found: dict[str, set[str]] = {}
    for tier in _tiers(fleets):
        for name in tier["relaxed"]:
            found.setdefault(name, set()).add(tier["name"])
    if found:
        names = "; ".join(f"{name} ({', '.join(sorted(tiers))})" for name, tiers in sorted(found.items()))
        yield f"Bounds ignore: {names}.\n"
    else:
        yield "No bound but the trivial ones ignores a rule.\n"


def _tiers(fleets: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the tiers of all plans."""
    return (tier for each in fleets for plan in each["plans"] for tier in plan["tiers"])


def _rivals(each: Mapping[str, Any]) -> Iterator[str]:
    if not each["rivals"]:
        return
    best = next((plan for plan in each["plans"] if not plan["failed"]), None)
    names = (
        [tier["name"] for tier in best["tiers"]]
        if best
        else list(next((r["values"] for r in each["rivals"] if r["values"]), {}))
    )
    names = [name for name in names if name.startswith("admitted") or name == "cost"]
    yield f"#### {each['gpus']:,} GPUs, load {each['load']:g}\n"
    yield f"| planner | {' | '.join(names)} | time | |"
    yield "|---|" + "--:|" * (len(names) + 1) + "---|"
    for rival in each["rivals"]:
        cells = [f"{rival['values'][name] / 1000:,.0f}" if name in rival["values"] else "" for name in names]
        note = rival["failed"] or rival["note"]
        note += "" if rival["verified"] or rival["failed"] else " (does not verify)"
        yield f"| {rival['rival']} | {' | '.join(cells)} | {rival['seconds']:,.0f} s | {note} |"
    for plan in each["plans"]:
        values = {tier["name"]: tier["value"] for tier in plan["tiers"]}
        cells = [f"{values[name] / 1000:,.0f}" if name in values else "" for name in names]
        shown = " | ".join([f"**dovetail, {plan['seconds']} s**", *cells, f"{plan['took']:,.0f} s", plan["failed"]])
        yield f"| {shown} |"
    yield ""


def plots(fleets: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    """Return the plots by file name: gap against time, and time against GPUs."""
    panels, longest = [], 10.0
    for each in fleets:
        done = [plan for plan in each["plans"] if plan["history"]]
        if done:
            longest = max(longest, done[-1]["took"])
            points = [(at, gap) for at, gap in done[-1]["history"]]
            panels.append(Panel(f"{each['gpus']:,} GPUs at {each['load']:g}", points, {}))
    return {GAP_PLOT: svg(panels, (1.0, longest), (0.01, 100.0)), GROWTH_PLOT: curves(_growth(fleets))}


def _growth(fleets: Sequence[Mapping[str, Any]]) -> list[Curve]:
    """Return, per phase, its mean seconds over the loads for each size, of the shortest limit."""
    found: dict[str, dict[int, list[float]]] = {}
    for each in fleets:
        found.setdefault("validate", {}).setdefault(each["gpus"], []).append(each["validate"])
        for plan in each["plans"][:1]:
            for name, seconds in plan["phases"].items():
                found.setdefault(name, {}).setdefault(each["gpus"], []).append(seconds)
    return [
        Curve(name, [(gpus, sum(all_) / len(all_)) for gpus, all_ in sorted(sizes.items())])
        for name, sizes in found.items()
    ]


def hardness(raw: Mapping[str, Any]) -> Sequence[str]:
    """Return how much of the admitted value each kind of rule costs, as two parts of a section."""
    heading = (
        "## What rules cost the fleets\n\n"
        "`python -m benchmarks.hardness` plans the same fleet with all rules and with a kind of them left out: "
        "what costs nothing makes no fleet hard. Within a band, what replicas are worth differs by at most 100 : 1 "
        "(`tests/benchmarks/test_fleet.py`).\n"
    )
    lines = [
        f"What is gained at {raw['gpus']:,} GPUs (seed {raw['seed']}) in plans of {raw['seconds']} s: of the "
        "admitted value of all bands, and in the band that gains most. Plans lie within their gaps, so what is "
        "gained is known no closer, and may be less than nothing.\n",
        "| load | left out | admitted value | gain | most in a band |",
        "|--:|---|--:|--:|--:|",
    ]
    for row in raw["rows"]:
        gain = "" if row["kind"] == "nothing" else f"{row['gain']:.2f} %"
        band = "" if row["kind"] == "nothing" else f"{row['band']:.2f} %"
        lines.append(f"| {row['load']:g} | {row['kind']} | {row['value'] / 1000:,.0f} | {gain} | {band} |")
    return heading, "\n".join([*lines, ""])
