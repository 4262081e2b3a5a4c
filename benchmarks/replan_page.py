"""The part of the page on fleets that change a little, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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

JOINT = """\
## Fleets with gangs and slices that change a little

The same of fleets with gangs of 2 to 128 nodes and services on MIG instances in a part of the load
(`python -m benchmarks.replan --also gangs slices`); a node that a gang is on is among those that failed. A gang that
lacks a node does not run at all, and its domain has seldom a free one: then others make way
([decision 0086](decisions/0086-nodes-are-vacated-for-gangs.md)), or all of it is evicted.
"""

POLICIES = """\
## Fleets that get a new policy

The same fleets, changed a little and with one more hard policy, which what runs breaks: a tenant's workloads must lie
**even** over zones (`maxSkew: 1`) or **few** of each in a rack (`maxPerDomain: 2`), three tenants must be **apart**
on nodes, or a tenant must be **off** an accelerator (`python -m benchmarks.replan --policies`). What is broken is
mended before anything else (S5.1), by moves, as nothing that runs is dropped. The bound on moves is given what is
left to mend. **First fit** leaves all that runs where it is, and places the rest.
"""


ZONES = """\
## Fleets that lose a zone

The same fleets, changed a little, of which all nodes of one **zone** fail (`python -m benchmarks.replan --zones`).
What ran there has lost its place; all else is protected, and may move
([decision 0087](decisions/0087-shares-of-the-nodes-are-repacked.md)). The gaps of admission are those of the bands of
priority, from the highest; bounds ignore CPU and memory of single nodes. **First fit** leaves all that runs where it
is, and places the rest: its gap is that of the highest band, beside the same bound.
"""

ENDED = """\
## Fleets of which a third of the work has ended

The same fleets without one workload in three, and with cost before disruption
(`python -m benchmarks.replan --ended`): what runs moves together until nodes are empty
([decision 0101](decisions/0101-nodes-are-emptied-of-what-runs.md)). The bound on cost ignores CPU and memory of
single nodes, and who may not move. **First fit, nothing moved** goes on paying for what it has; **first fit
decreasing, anew** plans from scratch. Values of admission are in thousands, summed over the bands.
"""

SHARES = """\
## Fleets of shares that get work for whole nodes

A quarter of the nodes has jobs of four GPUs, the others services with 100 to 400 thousandths of a GPU per replica; of
their GPUs one in twenty is idle, scattered. New work of the highest band asks for whole and half nodes
(`python -m benchmarks.replan --shares`), so for each of these many replicas have to move
([decision 0092](decisions/0092-many-leave-a-node-where-few-cannot.md)). **First fit** leaves all that runs where it
is, and places the rest: its gap is that of the highest band, beside the same bound.
"""


INSTANCES = """\
## Fleets of instances that get work for larger ones

A fifth of the nodes has a job of eight GPUs, the GPUs of others are cut into MIG instances of 1g to 7g, of which one
in ten is idle, scattered. New work of the highest band asks for instances of 3g, 4g and 7g, and for two whole GPUs of
a node (`python -m benchmarks.replan --instances`); a GPU that is cut anew restarts all that stays on it, so others
make way ([decision 0093](decisions/0093-instances-and-clients-make-way-too.md)).
"""


BATCH = """\
## Fleets of batch work that get a surge of higher priority

Three nodes of ten have gangs of 2 to 16 nodes, the others jobs of one to eight GPUs in three bands of priority, and
services of the highest. Four of five gangs and jobs are preemptible, one GPU in fifty of the others is idle. Work of
the highest band asks for a tenth of the capacity and more, most of it by gangs of 2 to 8 nodes within a rack
(`python -m benchmarks.replan --batch`), so others go for it: of as low a band, then as few GPUs, workloads and as
little work as will do ([decision 0094](decisions/0094-victims-are-chosen-by-what-they-cost.md)). Gaps are those of
the highest band, and of what is retained and admitted of the others, from the highest.
"""


def batch(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets full of preemptible work."""
    yield BATCH
    yield "\n".join(_table(fleets, _BATCH_COLUMNS))


def instances(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets full of instances."""
    yield INSTANCES
    yield "\n".join(_table(fleets, _INSTANCES_COLUMNS))


def ended(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets of which a part of the work has ended."""
    yield ENDED
    yield "\n".join(_table(fleets, _ENDED_COLUMNS))
    yield "\n".join(_rivals(fleets, {**_WORK, **_PAID, **_MOVED}))


def shares(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets full of shares."""
    yield SHARES
    yield "\n".join(_table(fleets, _SHARES_COLUMNS))


def zones(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on zones that are lost."""
    yield ZONES
    yield "\n".join(_table(fleets, _ZONE_COLUMNS))


def policies(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on new policies."""
    yield POLICIES
    yield "\n".join(_table(fleets, _POLICY_COLUMNS))


def joint(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page on fleets with gangs and MIG."""
    yield JOINT
    yield "\n".join(_table(fleets, _COLUMNS))


def section(fleets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the part of the page."""
    yield INTRODUCTION
    yield "\n".join(_table(fleets, _COLUMNS))
    yield BESIDE
    yield "\n".join(_rivals(fleets, {**_WORK, **_MOVED}))


class _Told(NamedTuple):
    """A fleet, its plan, and the tiers of that by name."""

    fleet: Mapping[str, Any]
    plan: Mapping[str, Any]
    tiers: Mapping[str, Mapping[str, Any]]


_Columns = Mapping[str, Callable[[_Told], str]]


def _table(fleets: Sequence[Mapping[str, Any]], columns: _Columns) -> Iterator[str]:
    """Yield a row for each fleet; of one without a plan the columns up to the limit, and why."""
    yield f"| {' | '.join(columns)} |"
    yield "".join(f"|{'---' if name in _TEXTS else '--:'}" for name in columns) + "|"
    for each in fleets:
        plan = each["plan"]
        told = _Told(each, plan, {tier["name"]: tier for tier in plan["tiers"]})
        if plan["failed"]:
            start = list(columns)[: list(columns).index("limit") + 1]
            cells = [*(columns[name](told) for name in start), f"no plan: {plan['failed']}"]
            cells += [""] * (len(columns) - len(cells))
        else:
            cells = [column(told) for column in columns.values()]
        yield f"| {' | '.join(cells)} |"
    yield ""


_TEXTS = "policy", "zone", "ended by"
OUTSIDE = frozenset({"load", "verify", "certify", "finish"})
"""Phases that are no search."""


def _gpus(told: _Told) -> str:
    return f"{told.fleet['gpus']:,}"


def _limit(told: _Told) -> str:
    return f"{told.plan['seconds']} s{', fast' if told.plan['fast'] else ''}"


def _mend(told: _Told) -> str:
    return _valued(told.tiers[MEND]) if MEND in told.tiers else "0"


def _by_first_fit(told: _Told) -> str:
    return ", ".join(f"{rival['values'][MEND]:,}" if rival["values"] else "" for rival in told.fleet["rivals"])


def _widest(told: _Told) -> str:
    gaps = [tier["gap"] or 0.0 for name, tier in told.tiers.items() if name.startswith("admitted")]
    return f"{100 * max(gaps):.2f} %"


def _gaps(told: _Told) -> str:
    gaps = [tier["gap"] or 0.0 for name, tier in told.tiers.items() if name.startswith(GPU_WORK)]
    return ", ".join(f"{100 * gap:.2f}" for gap in gaps) + " %"


def _gaps_of_all(told: _Told) -> str:
    found = (name for name in told.tiers if name.startswith((GPU_WORK, "retained[")))
    return ", ".join(f"{100 * (told.tiers[name]['gap'] or 0.0):.2f}" for name in found) + " %"


def _gap_of_first_fit(told: _Told) -> str:
    name, tier = next((name, tier) for name, tier in told.tiers.items() if name.startswith(GPU_WORK))
    found = [rival["values"][name] for rival in told.fleet["rivals"] if rival["values"]]
    return ", ".join(f"{100 * (1 - value / tier['bound']):.2f} %" for value in found if tier["bound"])


def _disruption(measure: str) -> Callable[[_Told], str]:
    return lambda told: _valued(told.tiers[f"{DISRUPTION}{measure}"])


def _moves(told: _Told) -> str:
    return f"{told.tiers[f'{DISRUPTION}moves']['value']:,}"


def _restarts(told: _Told) -> str:
    return f"{told.fleet['summary']['restarts']:,}"


def _bound_on_moves(told: _Told) -> str:
    moves = told.tiers[f"{DISRUPTION}moves"]
    return f"{moves['bound']:,} ({moves['proof']})" if moves["bound"] is not None else "none"


def _cost(told: _Told) -> str:
    gap = told.tiers["cost"]["gap"]
    return f"{100 * gap:.2f} %" if gap is not None else "no bound"


def _first(told: _Told) -> str:
    return f"{told.plan['first']:,.1f} s" if told.plan["first"] is not None else ""


def _solving(told: _Told) -> str:
    return f"{sum(s for name, s in told.plan['phases'].items() if name not in OUTSIDE):,.1f} s"


def _ended(told: _Told) -> str:
    return str(told.plan["stopped_by"]) + ("" if told.plan["verified"] else " (does not verify)")


_LAST: _Columns = {
    "total": lambda told: f"{told.plan['took']:,.1f} s",
    "memory": lambda told: f"{told.plan['peak'] / 2**20:,.0f} MiB",
    "ended by": _ended,
}
_COLUMNS: _Columns = {
    "GPUs": _gpus,
    "limit": _limit,
    "left to mend": _mend,
    "widest gap of admission": _widest,
    "evicted": _disruption("evicted"),
    "GPU time lost": _disruption("gpuTimeLost"),
    "moves": _moves,
    "bound on moves": _bound_on_moves,
    "restarts": _restarts,
    "gap of cost": _cost,
    "first plan": _first,
    "solving": _solving,
    **_LAST,
}
_ZONE_COLUMNS: _Columns = {
    "GPUs": _gpus,
    "zone": lambda told: str(told.fleet["zone"]),
    "limit": _limit,
    "gaps of admission": _gaps,
    "of first fit": _gap_of_first_fit,
    "left to mend": _mend,
    "evicted": _disruption("evicted"),
    "moves": _moves,
    "restarts": _restarts,
    **_LAST,
}
_ENDED_COLUMNS: _Columns = {
    "GPUs": _gpus,
    "limit": _limit,
    "widest gap of admission": _widest,
    "gap of cost": _cost,
    "evicted": _disruption("evicted"),
    "moves": _moves,
    "first plan": _first,
    **_LAST,
}
_SHARES_COLUMNS: _Columns = {
    "GPUs": _gpus,
    "limit": _limit,
    "replicas": lambda told: f"{told.fleet['replicas']:,}",
    "gaps of admission": _gaps,
    "of first fit": _gap_of_first_fit,
    "evicted": _disruption("evicted"),
    "moves": _moves,
    "bound on moves": _bound_on_moves,
    "first plan": _first,
    **_LAST,
}
_INSTANCES_COLUMNS: _Columns = {name: cell for name, cell in _SHARES_COLUMNS.items() if name != "of first fit"}
_BATCH_COLUMNS: _Columns = {
    "GPUs": _gpus,
    "limit": _limit,
    "replicas": lambda told: f"{told.fleet['replicas']:,}",
    "gaps": _gaps_of_all,
    "evicted": _disruption("evicted"),
    "GPU time lost": _disruption("gpuTimeLost"),
    "moves": _moves,
    "first plan": _first,
    **_LAST,
}
_POLICY_COLUMNS: _Columns = {
    "GPUs": _gpus,
    "policy": lambda told: str(told.fleet["policy"]),
    "limit": _limit,
    "left to mend": _mend,
    "by first fit": _by_first_fit,
    "moves": _moves,
    "bound on moves": _bound_on_moves,
    "widest gap of admission": _widest,
    "evicted": _disruption("evicted"),
    **_LAST,
}


def _valued(tier: Mapping[str, Any]) -> str:
    proved = tier["value"] == tier["bound"]
    return f"{tier['value']:,}" + ("" if proved else f" (bound {tier['bound']:,})")


_Values = Mapping[str, int]
_ValueColumns = Mapping[str, Callable[[_Values], str]]
_WORK: _ValueColumns = {
    "admitted": lambda values: f"{sum(v for tier, v in values.items() if tier.startswith(GPU_WORK)) / 1000:,.0f}",
}
_MOVED: _ValueColumns = {
    "replicas that move": lambda values: f"{values[f'{DISRUPTION}moves']:,}",
    "workloads evicted": lambda values: f"{values[f'{DISRUPTION}evicted']:,}",
}
_PAID: _ValueColumns = {
    "cost per hour": lambda values: f"{values['cost'] / 1_000_000:,.0f}",
}


def _rivals(fleets: Sequence[Mapping[str, Any]], columns: _ValueColumns) -> Iterator[str]:
    """Yield a table of what planners come to, a column for each name."""
    yield f"| GPUs | planner | {' | '.join(columns)} | time | |"
    yield f"|--:|---|{'--:|' * len(columns)}--:|---|"
    for each in fleets:
        plan = each["plan"]
        told = {tier["name"]: tier["value"] for tier in plan["tiers"]}
        yield _row(each["gpus"], "**dovetail**", _cells(told, columns), plan["took"], plan["failed"])
        for rival in each["rivals"]:
            note = rival["failed"] or rival["note"]
            note += "" if rival["verified"] or rival["failed"] else " (does not verify)"
            cells = _cells(rival["values"], columns)
            yield _row(each["gpus"], rival["rival"], cells, rival["seconds"], note)
    yield ""


def _cells(values: _Values, columns: _ValueColumns) -> list[str]:
    return [cell(values) if values else "" for cell in columns.values()]


def _row(gpus: int, name: str, cells: Sequence[str], seconds: float, note: str) -> str:
    return f"| {gpus:,} | {name} | {' | '.join(cells)} | {seconds:,.0f} s | {note} |"
