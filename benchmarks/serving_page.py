"""The part of the page on inference fleets, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.tiers import GPU_WORK

INTRODUCTION = """\
## Inference fleets

Half of the nodes have eight H100s, three tenths A100s, a fifth L40S; nothing runs yet. Of what is asked for, 45 % are
services that ask for rates (`slo.rate`) on MIG instances of 1g to 3g, with the rate of each profile measured apart, a
fifth services of one to four whole GPUs that ask for rates, a fifth batches with deadlines, the rest jobs
(`python -m benchmarks.serving`). The load is what is asked for over what there is.
"""

CHANGED = """\
## Inference fleets whose rates change

The fleets above a day later (`python -m benchmarks.serving --changed`): what was planned within the seconds given
runs, and one service in five asks for a rate that is up to 30 % higher or lower. Services that ask for less need
fewer replicas; what they leave is for those that ask for more, and for what waited. Neither planner evicts anybody.
"""

MOVING = """\
The **greedy autoscaler** leaves what runs where it is and goes on like the one above. **Moves** are replicas that run
on elsewhere, or restart as their GPU is cut anew. Bounds are those of plans that may move what is movable, and forget
on which instances services are.
"""

BESIDE = """\
The **greedy autoscaler** goes band by band, and in each by value from service to service: each takes the accelerator
or profile that serves most of its rate per compute slice, a whole GPU being seven, in as many replicas as its rate
needs, first fit; and what serves next most where there is no room for more. Batches and jobs follow, first fit
decreasing. Its places are measured by the tiers of the plan and checked by `dovetail verify`.

Admitted values are in milli-GPU, with their part of the **bound**. That of a band is given what dovetail has of the
bands before it: who has less of those may have more. **slo** is what is missing of rates and deadlines, in
thousandths of each, added up; it comes after all admission, and cost after it: who admits less may miss less, and pay
less. Seconds are those of the whole command, for the autoscaler those of placing.
"""

MOVES = "disruption.moves"

_Cells = Mapping[str, int]  # values by tier


def section(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page."""
    yield INTRODUCTION
    yield "\n".join(table(fleets))
    yield BESIDE


def changed(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets a day later."""
    yield CHANGED
    yield "\n".join(table(fleets))
    yield MOVING


def table(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the rows of each fleet: bounds, dovetail, and others; and who moves where anybody runs."""
    bands = list(dict.fromkeys(name for each in fleets for name in _values(each) if name.startswith(GPU_WORK)))
    last = [MOVES] if any(MOVES in _values(each) for each in fleets) else []
    heads = [*bands, "slo", "cost/h", *("moves" for _ in last)]
    yield f"| GPUs | load | planner | {' | '.join(heads)} | seconds | |"
    yield f"|--:|--:|---|{'--:|' * (len(heads) + 1)}---|"
    for each in fleets:
        yield from _rows(each, bands, last)
    yield ""


def _values(fleet: Mapping[str, Any]) -> list[str]:
    """Return the tiers that anybody has a value of."""
    return [tier["name"] for tier in fleet["plan"]["tiers"]] + [n for each in fleet["rivals"] for n in each["values"]]


def _rows(fleet: Mapping[str, Any], bands: Sequence[str], last: Sequence[str]) -> Iterator[str]:
    plan, start = fleet["plan"], f"| {fleet['gpus']:,} | {fleet['load']:g} "
    bounds = {tier["name"]: tier["bound"] for tier in plan["tiers"] if tier["bound"] is not None}
    own = {tier["name"]: tier["value"] for tier in plan["tiers"]}
    if bounds:
        yield f"{start}| bound | {' | '.join(_cells(bounds, {}, bands, last))} | | |"
    limit = f"{plan['seconds']} s{', fast' if plan['fast'] else ''}"
    cells = _cells(own, bounds, bands, last)
    yield f"{start}| **dovetail, {limit}** | {' | '.join(cells)} | {plan['took']:,.1f} s | {_note(plan)} |"
    for each in fleet["rivals"]:
        cells = _cells(each["values"], bounds, bands, last)
        note = each["failed"] or each["note"]
        note += "" if each["verified"] or each["failed"] else " (does not verify)"
        yield f"{start}| {each['rival']} | {' | '.join(cells)} | {each['seconds']:,.1f} s | {note.strip()} |"


def _cells(values: _Cells, bounds: _Cells, bands: Sequence[str], last: Sequence[str]) -> Iterator[str]:
    """Yield what was reached of admission with its part of the bound, of service levels, of cost, and of the last."""
    for name in bands:
        part = f" ({100 * values[name] / bounds[name]:.2f} %)" if name in values and bounds.get(name) else ""
        yield f"{values[name]:,}{part}" if name in values else ""
    yield f"{values['slo']:,}" if "slo" in values else ""
    yield f"{values['cost'] / 1_000_000:,.2f}" if "cost" in values else ""
    for name in last:
        yield f"{values[name]:,}" if name in values else ""


def _note(plan: Mapping[str, Any]) -> str:
    if plan["failed"]:
        return f"no plan: {plan['failed']}"
    first = f"first plan after {plan['first']:,.1f} s, " if plan["first"] is not None else ""
    return f"{first}ended by {plan['stopped_by']}" + ("" if plan["verified"] else " (does not verify)")
