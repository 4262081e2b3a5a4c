"""What a reviewer is told about a plan, whatever the format: the words and numbers, not their layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from dovetail.diff import Change, PlanDiff, Row, serving
from dovetail.faults import CODES, Position
from dovetail.placement import Place
from dovetail.plan import (
    AdmissionResult,
    Plan,
    SecondOpinion,
    TierResult,
    better,
    contradiction,
)
from dovetail.plan.wasted import wasted_by_gpu
from dovetail.spec import Options, Spec
from dovetail_cli.render.words import (
    amount,
    gpus,
    human_unit,
    human_value,
    nodes,
    percent,
    plural,
    share,
    short_digest,
    signed,
)

MARKS = {
    "add": "+",
    "move": "~",
    "restart": "~",
    "elsewhere": "~",
    "resize": "~",
    "remove": "-",
    "evict": "!",
    "out": "!",
    "gone": "!",
    "wait": "!",
}
_ORDER = list(MARKS)
_OF_PLACES = frozenset({"move", "restart", "elsewhere"})  # changes that do not say how far a workload is admitted


class Places(Protocol):
    """Where policies and workloads are written."""

    def workload(self, identity: str) -> Position | None:
        """Return where a workload is written, None where that is not known."""

    def policy(self, name: str) -> Position | None:
        """Return where a policy is written, None where that is not known."""


@dataclass(frozen=True, slots=True)
class Review:
    """A plan and all that is known beside it.

    Parameters
    ----------
    diff : the difference to the base, None where there is none.
    base : how the user named the base.
    spec, places : the documents, where they were read.
    detail : show every replica and everything unchanged.
    apart : the base to which there is no difference, as one of the two is no plan.
    """

    plan: Plan
    diff: PlanDiff | None = None
    base: str = ""
    spec: Spec | None = None
    places: Places | None = None
    detail: bool = False
    apart: Plan | None = None


def status(plan: Plan) -> str:
    """Return how the search ended, in words."""
    outcome = plan.outcome
    stopped = f", stopped by {outcome.stopped_by}" if outcome.stopped_by else ""
    stopped += ", fast" if outcome.fast else ""
    if outcome.status == "optimal":
        return f"OPTIMAL (value = bound){stopped}"
    if outcome.status == "infeasible":
        # Nothing is called infeasible unless a certificate shows it or two engines prove it (S6.4).
        by = {"certificate": " by a certificate", "two-engines": " by two engines"}.get(outcome.proof or "", "")
        conflict = f": {', '.join(plan.conflict)} cannot hold{' together' if len(plan.conflict) > 1 else ''}"
        return f"INFEASIBLE (proved{by}){conflict if plan.conflict else ''}"
    if outcome.status == "unknown":
        return f"NO PLAN FOUND (undecided{stopped})"
    return f"FEASIBLE ({_widest(plan)}{stopped})"


def _widest(plan: Plan) -> str:
    unbounded = [tier.name for tier in plan.tiers if tier.bound is None]
    if unbounded:
        return f"no bound for {unbounded[0]}"
    gaps = [(tier.gap or 0.0, tier.name) for tier in plan.tiers if not tier.proved]
    if not gaps:
        return "not proved"
    gap, name = max(gaps, key=lambda pair: pair[0])
    return f"gap {percent(gap)} in {name}"


def versions(review: Review) -> str:
    """Return which inputs the two plans were made for: `base plan.yaml@3f9c1e -> 9a41d0`, or `today -> 9a41d0`."""
    after = short_digest(review.plan.inputs)
    base = review.apart if review.diff is None else review.diff.base
    if base is None:
        return f"inputs {after}"
    if not base.inputs:
        return f"today -> {after}"
    return f"base {review.base or base.name}@{short_digest(base.inputs)} -> {after}"


def no_difference(review: Review) -> Iterator[str]:
    """Yield why there is no difference to the base, where that is so."""
    if review.apart is not None:
        yield f"a side has no plan, so there is no difference; base: {status(review.apart)}"


def figures(review: Review) -> Iterator[tuple[str, str]]:
    """Yield label and text of the figures that a reviewer reads first; with a base, with their change.

    A plan that was written by hand may lack any figure; a row of two is there where both are.
    """
    summary = review.plan.summary
    delta = review.diff.delta if review.diff is not None else {}

    def changed(key: str) -> str:
        known = review.diff is not None and (key in delta or key in review.diff.base.summary)
        return f" ({signed(delta.get(key, 0))})" if known else ""

    if summary.keys() >= {"admittedFull", "workloads"}:
        yield "admitted", f"{amount(summary['admittedFull'])}/{amount(summary['workloads'])}{changed('admittedFull')}"
    if summary.keys() >= {"gpusAllocated", "gpusTotal"}:
        part, whole = summary["gpusAllocated"], summary["gpusTotal"]
        yield "GPUs allocated", f"{amount(part)}/{amount(whole)} ({share(part, whole)}){changed('gpusAllocated')}"
    if summary.get("gpusUsedKnown") and "gpusUsed" in summary:
        yield "used", f"{amount(summary['gpusUsed'])} of {amount(summary['gpusUsedKnown'])} known"
    if "gpusHeld" in summary or "gpusHeld" in delta:
        yield "held free", amount(summary.get("gpusHeld", 0)) + changed("gpusHeld")
    if "gpusStranded" in summary:
        yield "stranded", amount(summary["gpusStranded"]) + changed("gpusStranded")
    if summary.keys() >= {"gpusFragmented", "fragmentationRate"}:
        rate = percent(float(summary["fragmentationRate"]))
        yield "fragmented", f"{amount(summary['gpusFragmented'])} ({rate} of idle){changed('gpusFragmented')}"
    if summary.get("cpuOnlyReplicas") or "cpuOnlyReplicas" in delta:
        yield "CPU-only replicas", amount(summary["cpuOnlyReplicas"]) + changed("cpuOnlyReplicas")


def costs(review: Review) -> Iterator[tuple[str, str]]:
    """Yield label and text of what the change costs; nothing where there is neither base nor price."""
    if review.diff is not None:
        cost = review.diff.cost
        lost = cost.gpu_hours_lost
        known = f"{amount(lost)} GPU-h lost" if lost is not None else "work lost: needs the documents"
        yield "moves", f"{amount(cost.moves)} ({known})"
        if cost.restarts != cost.moves:
            yield "starting anew", amount(cost.restarts)
        yield "evicted", plural(cost.evicted_workloads, "workload")
    if review.plan.options:
        yield "limits", _limits(review.plan.options)
    delta = review.diff.delta.get("costPerHour", 0) if review.diff else None
    price = review.plan.summary.get("costPerHour", 0)
    if price or delta:
        yield "cost/h", amount(price) if delta is None else f"{amount(price)} ({signed(delta)})"


def _limits(options: Options) -> str:
    """Return the limits of the command line that a plan was made with."""
    moves = [] if options.max_moves is None else [f"at most {plural(options.max_moves, 'move')}"]
    return ", ".join([*moves, *(f"{name} pinned" for name in options.pins)])


TIER_HEAD = ("tier", "value", "bound", "gap", "unit", "proof")


def tier_rows(review: Review) -> list[tuple[str, ...]]:
    """Return the proof of a plan: every tier with value, bound, gap, unit and what the bound rests on."""
    before = {tier.name: tier.before for tier in review.diff.tiers} if review.diff else {}
    return [(*_tier_row(tier), _tier_change(tier, before.get(tier.name))) for tier in review.plan.tiers]


def opinion(plan: Plan) -> Iterator[str]:
    """Yield what an independent engine says, where it was asked."""
    asked = plan.second_opinion
    if asked is not None:
        yield f"second opinion: {asked.engine} {_opinion(plan, asked)}"


def _opinion(plan: Plan, asked: SecondOpinion) -> str:
    if not asked.agrees:
        found = contradiction(plan.tiers, asked.tiers)
        return "DOES NOT AGREE" + (f": {found.name} {_optimum(found, asked)}" if found else "")
    count = sum(value is None for value in asked.tiers.values())
    found = better(plan)
    if found is not None:
        rest = f"; {plural(count, 'tier')} not compared" if count else ""
        return f"found better, within the bound: {found.name} {_optimum(found, asked)}{rest}"
    if asked.conclusive:
        return "agrees"
    return f"is inconclusive; it left {plural(count, 'tier')} open" if plan.tiers else "is inconclusive"


def _optimum(tier: TierResult, asked: SecondOpinion) -> str:
    return f"{human_value(asked.tiers[tier.name], tier.unit)} {human_unit(tier.unit)}"


def _tier_row(tier: TierResult) -> tuple[str, ...]:
    gap = "-" if tier.gap is None else percent(tier.gap)
    proof = tier.proof if not tier.relaxed else f"{tier.proof}, without {', '.join(tier.relaxed)}"
    value, bound = human_value(tier.value, tier.unit), human_value(tier.bound, tier.unit)
    return tier.name, value, bound, gap, human_unit(tier.unit), proof


def _tier_change(tier: TierResult, before: int | None) -> str:
    if before is None or before == tier.value:
        return ""
    return f"was {human_value(before, tier.unit)}"


def ordered(changes: tuple[Change, ...]) -> list[Change]:
    """Return changes as people read them: what comes, what moves, what goes, what waits; then by workload."""
    return sorted(changes, key=lambda change: (_ORDER.index(change.kind), change.workload))


def where(change: Change) -> str:
    """Return the nodes of a change: from, to, or both; where these are the same, what else is another."""
    before, after = nodes(change.nodes_before()), nodes(change.nodes_after())
    if change.kind not in ("move", "elsewhere"):
        return after or before
    if before != after:
        return f"{before} -> {after}"
    return f"{after}, other {'instances' if all(map(_on_same_gpus, change.rows)) else 'GPUs'}"


def _on_same_gpus(row: Row) -> bool:
    sides = {(place.node, place.gpus) for place in (row.before, row.after) if place is not None}
    return len(sides) == 1


def words(change: Change) -> str:
    """Return what happens to a workload, or how two plans differ about it where nothing happens."""
    why = f": {change.why}" if change.why else ""
    many = f"{plural(change.replicas, 'replica')} " if change.after or change.kind == "elsewhere" else ""
    said = {
        "add": change.why if change.in_part else f"admitted ({change.why})" if change.why else "admitted",
        "remove": "no longer declared",
        "move": f"{plural(change.replicas, 'replica')} moved" + why,
        "restart": f"{plural(change.replicas, 'replica')} restarted in place" + why,
        "elsewhere": f"{many}placed elsewhere",
        "resize": change.why,
        "out": f"{many}not admitted ({'were' if change.replicas > 1 and many else 'was'} admitted)" + why,
        "evict": f"{plural(change.replicas, 'replica')} evicted" + why,
        "gone": f"{plural(change.replicas, 'replica')} lost: {change.why}",
        "wait": "not admitted" + why,
    }
    return said[change.kind]


def row_place(row: Row) -> str:
    """Return one replica's place on either side, down to GPUs and instances; once where both are the same."""
    return " -> ".join(dict.fromkeys(_place(place) for place in (row.before, row.after) if place is not None))


def _place(place: Place) -> str:
    return " ".join(filter(None, (place.node, gpus(place.gpus), place.instance)))


def waiting(review: Review) -> list[tuple[str, str]]:
    """Return what is not admitted in full, unless a change says so: workload, and how far and why not."""
    changes = review.diff.changes if review.diff else ()
    told = {change.workload for change in changes if change.kind not in _OF_PLACES}
    return [
        (name, _short_of(review, name, result))
        for name, result in sorted(review.plan.admitted.items())
        if name not in told
    ]


def _short_of(review: Review, name: str, result: AdmissionResult) -> str:
    workload = review.spec.by_id.get(name) if review.spec is not None else None
    state = (
        admission(result, by_rate=workload is not None and workload.asks_rate) if result.replicas else "not admitted"
    )
    return f"{state}: {meaning(result.reasons)}" if result.reasons else state


def admission(result: AdmissionResult, *, by_rate: bool) -> str:
    """Return how far a workload is admitted; nobody asked for a number of replicas where a rate alone is."""
    there = f"{amount(result.replicas)} of {plural(result.of, 'replica')}"
    return f"{plural(result.replicas, 'replica') if by_rate else there} admitted{serving(result)}"


def meaning(reasons: tuple[str, ...]) -> str:
    """Return codes with their titles."""
    return ", ".join(f"{CODES[code].title} ({code})" if code in CODES else code for code in reasons)


def waste(review: Review) -> list[tuple[str, str]]:
    """Return what layouts of GPUs waste, a row for each GPU; nothing without the documents."""
    if review.spec is None:
        return []
    found = wasted_by_gpu(review.spec, review.plan)
    return [(f"{gpu.replace('/', ' gpu ')}", "; ".join(map(str, each))) for gpu, each in found]


def allocation(review: Review) -> list[tuple[str, ...]]:
    """Return GPUs per accelerator: name, allocated, healthy, per cent, nodes in use; needs the documents."""
    spec = review.spec
    if spec is None:
        return []
    total: dict[str, int] = {}
    for node in spec.cluster.nodes:
        if node.accelerator:
            total[node.accelerator] = total.get(node.accelerator, 0) + len(node.healthy_gpus())
    milli, used = dict.fromkeys(total, 0), {name: set[str]() for name in total}
    for replica, place in review.plan.placements.items():
        found = spec.cluster.by_name.get(place.node)
        workload = spec.by_id.get(replica.workload)
        if found and found.accelerator and place.gpus and workload and replica.role in workload.by_role:
            request = workload.by_role[replica.role].request.on(found.accelerator)
            milli[found.accelerator] += request.gpu_milli
            used[found.accelerator].add(place.node)
    return [
        (name, amount(Decimal(milli[name]) / 1000), amount(total[name]), share(milli[name], 1000 * total[name]),
         plural(len(used[name]), "node"))
        for name in sorted(total)
    ]  # fmt: skip
