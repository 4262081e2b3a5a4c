"""A plan as plain data: what its file holds, in the order it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from dovetail.documents import API_VERSION, as_json
from dovetail.placement import Layouts, Place, Places
from dovetail.plan.model import (
    AdmissionResult,
    BrokenPromise,
    Lifted,
    Outcome,
    Plan,
    PolicyResult,
    SecondOpinion,
    TierResult,
)
from dovetail.rules import Told
from dovetail.spec import Options, Setting

GAP_DIGITS = 6
SUMMARY = (
    "admittedFull",
    "admittedPartial",
    "admittedNone",
    "workloads",
    "gpusTotal",
    "gpusAllocated",
    "gpusUsed",
    "gpusUsedKnown",
    "gpusHeld",
    "gpusStranded",
    "gpusFragmented",
    "fragmentationRate",
    "gpusFragmentedDeficient",
    "gpusFragmentedBlocked",
    "gpusFragmentedStranded",
    "nodesUsed",
    "cpuOnlyReplicas",
    "evictedWorkloads",
    "evictedReplicas",
    "moves",
    "restarts",
    "gpuHoursLost",
    "gpusRepartitioned",
    "costPerHour",
)
"""The figures of the summary in the order they are written; `docs/reference/plan.md` defines each."""


def to_document(plan: Plan) -> dict[str, Any]:
    """Return a plan as a document of plain data, ready for JSON."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Plan",
        "metadata": {"name": plan.name},
        "spec": {key: as_json(value) for key, value in sections(plan)},
    }


def sections(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yield the sections of a plan's spec, exact, keyed maps sorted by bytes; empty optional ones are left out."""
    yield "inputs", plan.inputs
    if plan.current is not None:
        yield "current", plan.current
    if plan.certificate is not None:
        yield "certificate", plan.certificate
    if plan.options:
        yield "options", _options(plan.options)
    yield "outcome", _outcome(plan.outcome)
    yield "tiers", [tier_row(tier) for tier in plan.tiers]
    yield "summary", {key: plan.summary[key] for key in SUMMARY if key in plan.summary}
    if plan.conflict:
        yield "conflict", list(plan.conflict)
    if plan.gpus or plan.shared:
        yield "gpus", gpu_rows(plan.gpus, plan.shared)
    yield "placements", dict(placement_rows(plan.placements))
    yield from _standing_by(plan)
    if plan.admitted:
        yield "admitted", {key: _admission(value) for key, value in by_bytes(plan.admitted)}
    if plan.promises:
        yield "promises", {key: _promise(value) for key, value in by_bytes(plan.promises)}
    if plan.policies:
        yield "policies", {key: policy_row(value) for key, value in by_bytes(plan.policies)}
    if plan.second_opinion is not None:
        yield "secondOpinion", _second_opinion(plan.second_opinion)


def _standing_by(plan: Plan) -> Iterator[tuple[str, Any]]:
    """Yield what is held free, and what restarts where."""
    if plan.held:
        yield "held", {key: _told(value) for key, value in by_bytes(plan.held)}
    if plan.recovery:
        yield "recovery", {key: _recovery(cases) for key, cases in by_bytes(plan.recovery)}


def by_bytes(mapping: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return a mapping's items by their keys' UTF-8 bytes, which is the order of code points."""
    return sorted(mapping.items())


def placement_rows(places: Places) -> list[tuple[str, dict[str, Any]]]:
    """Return rows by key; replicas that follow each other on the very same place share one (`p#0-411`)."""
    runs: dict[str, Place] = {}
    ordered = sorted(places.items())
    start = 0
    for index in range(1, len(ordered) + 1):
        if index < len(ordered) and _continues(ordered[index - 1], ordered[index]):
            continue
        first, place = ordered[start]
        last = ordered[index - 1][0].ordinal
        runs[str(first) if last == first.ordinal else f"{first}-{last}"] = place
        start = index
    return [(key, place_row(place)) for key, place in by_bytes(runs)]


def _continues(before: tuple[Any, Place], after: tuple[Any, Place]) -> bool:
    (left, place), (right, next_place) = before, after
    return place == next_place and left[:2] == right[:2] and left.ordinal + 1 == right.ordinal


def gap_of(value: int, bound: int | None) -> Decimal | int | None:
    """Return the relative gap, rounded up to six digits, so that only what is proved has none (S5.2)."""
    if bound is None:
        return None
    scale = 10**GAP_DIGITS
    parts = -(-abs(bound - value) * scale // max(abs(bound), abs(value), 1))
    return parts // scale if parts % scale == 0 else Decimal(parts).scaleb(-GAP_DIGITS).normalize()


def tier_row(tier: TierResult) -> dict[str, Any]:
    """Return a tier's row."""
    row: dict[str, Any] = {
        "name": tier.name,
        "value": tier.value,
        "bound": tier.bound,
        "gap": gap_of(tier.value, tier.bound),
        "unit": tier.unit,
        "sense": tier.sense,
        "proof": tier.proof,
    }
    if tier.given:
        row["given"] = dict(by_bytes(tier.given))
    if tier.relaxed:
        row["relaxed"] = list(tier.relaxed)
    return row


def _options(options: Options) -> dict[str, Any]:
    row: dict[str, Any] = {} if options.max_moves is None else {"maxMoves": options.max_moves}
    return {**row, "pins": list(options.pins)} if options.pins else row


def _outcome(outcome: Outcome) -> dict[str, Any]:
    row: dict[str, Any] = {"status": outcome.status}
    if outcome.stopped_by is not None:
        row["stoppedBy"] = outcome.stopped_by
    if outcome.fast:
        row["fast"] = True
    if outcome.proof is not None:
        row["proof"] = outcome.proof
    return row


def place_row(place: Place) -> dict[str, Any]:
    """Return a place's row."""
    row: dict[str, Any] = {"node": place.node}
    if place.gpus:
        row["gpus"] = list(place.gpus)
    return {**row, "instance": place.instance} if place.instance else row


def gpu_rows(cut: Layouts, shared: Mapping[str, Setting]) -> dict[str, dict[str, Any]]:
    """Return a row for each GPU that is cut or shared by equal parts, by `node/index`."""
    rows: dict[str, dict[str, Any]] = {gpu: {"mode": s.mode, "clients": s.clients} for gpu, s in shared.items()}
    for gpu, layout in cut.items():
        rows[gpu] = {"mode": "mig", "instances": [str(instance) for instance in layout]}
    return dict(by_bytes(rows))


def _recovery(cases: Mapping[str, Places]) -> dict[str, Any]:
    return {case: dict(placement_rows(rows)) for case, rows in by_bytes(cases)}


def _told(told: Told) -> list[dict[str, Any]]:
    return [*map(place_row, told.held), *({"domain": path} for path in told.untouched)]


def _admission(result: AdmissionResult) -> dict[str, Any]:
    row: dict[str, Any] = {"state": result.state, "replicas": result.replicas, "of": result.of}
    row |= _rates(result.served, result.rate)
    return {**row, "reasons": list(result.reasons)} if result.reasons else row


def _promise(promise: BrokenPromise) -> dict[str, Any]:
    return {"missing": promise.missing, **_rates(promise.served, promise.rate)}


def _rates(served: int | None, rate: int | None) -> dict[str, Any]:
    """Return rates in whole units, what nobody asks for left out."""
    told = (("served", served), ("rate", rate))
    return {
        key: amount // 1000 if not amount % 1000 else Decimal(amount).scaleb(-3).normalize()
        for key, amount in told
        if amount is not None
    }


def policy_row(result: PolicyResult) -> dict[str, Any]:
    """Return the result of a policy as a plan writes it."""
    row: dict[str, Any] = {
        "result": result.result,
        "enforcement": result.enforcement,
        "violation": result.violation,
        "unit": result.unit,
    }
    if result.excused:
        row["excused"] = result.excused
    if result.subjects:
        row["subjects"] = dict(by_bytes(result.subjects))
    if result.waivers:
        row["waivers"] = {name: _lifted(lifted) for name, lifted in by_bytes(result.waivers)}
    return row


def _lifted(lifted: Lifted) -> dict[str, Any]:
    return {"owner": lifted.owner, "until": lifted.until, "workloads": list(lifted.workloads)}


def _second_opinion(opinion: SecondOpinion) -> dict[str, Any]:
    return {
        "engine": opinion.engine,
        "agrees": opinion.agrees,
        "conclusive": opinion.conclusive,
        "tiers": dict(by_bytes(opinion.tiers)),
    }
