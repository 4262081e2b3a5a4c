"""A difference as a document of kind PlanDiff (`schemas/plandiff.schema.json`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.diff.model import Change, Cost, PlanDiff, PolicyChange, Row, SectionChange
from dovetail.documents import API_VERSION, as_json
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.plan.plain import place_row, to_document

_SIDE = ("inputs", "outcome", "tiers", "summary", "conflict")
_FARES = ("admitted", "promises", "policies")


def document(diff: PlanDiff) -> dict[str, Any]:
    """Return the difference as plain data, ready for JSON."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PlanDiff",
        "metadata": {"name": diff.target.name},
        "spec": {
            "base": side(diff.base),
            "target": side(diff.target),
            "startsFromBase": diff.starts_from_base,
            "delta": as_json(diff.delta),
            "tiers": [
                {"name": t.name, "unit": t.unit, "sense": t.sense, "before": t.before, "after": t.after}
                for t in diff.tiers
            ],
            "cost": cost_row(diff.cost),
            "changes": [_change(change) for change in diff.changes],
            "policies": {policy.name: _policy(policy) for policy in diff.policies},
            **_sections(diff.sections),
            "failures": list(diff.failures),
            "unchanged": diff.unchanged,
        },
    }


def without_difference(base: Plan, target: Plan) -> dict[str, Any]:
    """Return the document about two plans of which one has no places: what is known of either, and no difference."""
    return {
        "apiVersion": API_VERSION,
        "kind": "PlanDiff",
        "metadata": {"name": target.name},
        "spec": {
            "base": side(base),
            "target": side(target),
            "delta": {},
            "tiers": [],
            "changes": [],
            "unchanged": 0,
        },
    }


def side(plan: Plan) -> dict[str, Any]:
    """Return what a difference repeats of a plan: how its search ended; what runs today has no digest."""
    return _of_plan(plan, _SIDE)


def side_in_full(plan: Plan) -> dict[str, Any]:
    """Return everything of a plan but its rows, for where it stands in no file of its own."""
    return _of_plan(plan, (*_SIDE, *_FARES))


def _of_plan(plan: Plan, keys: Iterable[str]) -> dict[str, Any]:
    spec = to_document(plan)["spec"]
    return {"name": plan.name, **{key: spec[key] for key in keys if spec.get(key, "") != ""}}


def cost_row(cost: Cost) -> dict[str, Any]:
    """Return the cost; GPU hours are left out where they are not known."""
    row: dict[str, Any] = {
        "moves": cost.moves,
        "restarts": cost.restarts,
        "evictedWorkloads": cost.evicted_workloads,
        "evictedReplicas": cost.evicted_replicas,
    }
    if cost.gpu_hours_lost is not None:
        row["gpuHoursLost"] = as_json(cost.gpu_hours_lost)
    return row


def _change(change: Change) -> dict[str, Any]:
    row: dict[str, Any] = {"change": change.kind, "workload": change.workload, "replicas": change.replicas}
    optional: dict[str, Any] = {
        "gpus": change.gpus,
        "from": list(change.nodes_before()),
        "to": list(change.nodes_after()),
        "why": change.why,
        "reasons": list(change.reasons),
        "rows": [_row(each) for each in change.rows],
    }
    return row | {key: value for key, value in optional.items() if value}


def _policy(policy: PolicyChange) -> dict[str, Any]:
    row: dict[str, Any] = {"before": policy.before, "after": policy.after}
    if policy.violation[0] != policy.violation[1]:
        row |= {"violation": _sides(policy.violation), "unit": policy.unit}
    if policy.subjects:
        row["subjects"] = {subject: _sides(counts) for subject, counts in policy.subjects.items()}
    return row


def _sections(changes: Iterable[SectionChange]) -> dict[str, Any]:
    """Return the entries by section; a side that has none is left out."""
    found: dict[str, Any] = {}
    for each in changes:
        found.setdefault(each.section, {})[each.name] = _sides((each.before, each.after))
    return found


def _sides(pair: tuple[Any, Any]) -> dict[str, Any]:
    return {key: side for key, side in zip(("before", "after"), pair, strict=True) if side is not None}


def _row(row: Row) -> dict[str, Any]:
    sides = {"from": row.before, "to": row.after}
    return {"replica": row.replica} | {key: _place(place) for key, place in sides.items() if place is not None}


def _place(place: Place) -> dict[str, Any]:
    return place_row(place)
