"""The policies of a project as a document of kind PolicyList."""

from __future__ import annotations

from typing import Any

from dovetail.build import Origin
from dovetail.documents import API_VERSION, as_json
from dovetail.faults import Position
from dovetail.plan import Plan
from dovetail.policylist.listing import LiftedBy, Listed, PolicyList
from dovetail.policylist.price import Price, Priced, Pricing
from dovetail.spec import Enforcement
from dovetail.spec.policy import POLICY_TIER


def to_document(found: PolicyList, pricing: Pricing | None = None) -> dict[str, Any]:
    """Return the list as plain data, ready for JSON; with prices where they were asked for."""
    spec: dict[str, Any] = {"asOf": str(found.spec.as_of)}
    if found.workload is not None:
        spec["workload"] = found.workload
    if pricing is not None:
        spec["plan"] = _side(pricing.plan)
    prices = pricing.by_name if pricing is not None else {}
    spec["policies"] = [_policy(listed, prices.get(listed.policy.name)) for listed in found.policies]
    if found.workload is None:
        spec["replaced"] = [_origin(origin, named=True) for origin in found.origins.replaced]
        spec["leftOut"] = [{**_origin(origin, named=True), "by": _place(by)} for origin, by in found.origins.left_out]
    return {
        "apiVersion": API_VERSION,
        "kind": "PolicyList",
        "metadata": {"name": found.spec.name},
        "spec": spec,
    }


def _soft(enforcement: Enforcement) -> dict[str, Any]:
    tier = {} if enforcement.tier == POLICY_TIER else {"tier": enforcement.tier}
    return {"soft": {**tier, "weight": enforcement.weight}}


def _policy(listed: Listed, priced: Priced | None) -> dict[str, Any]:
    policy, origin = listed.policy, listed.origin
    kind = policy.enforcement.kind
    row: dict[str, Any] = {
        "name": policy.name,
        "rule": as_json(origin.rule) if origin is not None else {policy.rule.kind: {}},
        "enforcement": _soft(policy.enforcement) if kind == "soft" else kind,
        "from": _origin(origin) if origin is not None else {"kind": "built-in", "by": policy.origin},
    }
    if origin is not None and origin.description:
        row["description"] = origin.description
    row["workloads"] = list(listed.matched)
    if listed.nodes is not None:
        row["nodes"] = listed.nodes
    if listed.waivers:
        row["waivers"] = [_waiver(lifted) for lifted in listed.waivers]
    if priced is not None:
        row["price"] = {"without": _side(priced.without), "in": [_price(price) for price in priced.prices]}
    return row


def _origin(origin: Origin, *, named: bool = False) -> dict[str, Any]:
    row: dict[str, Any] = {"name": origin.name} if named else {"kind": origin.kind}
    if origin.pack:
        row |= {"pack": origin.pack, "version": origin.version}
    return row | _place(origin.position)


def _place(position: Position) -> dict[str, Any]:
    return {"file": position.file, "line": position.line, "column": position.column}


def _waiver(lifted: LiftedBy) -> dict[str, Any]:
    waiver = lifted.waiver
    return {
        "name": waiver.name,
        "state": lifted.state,
        "expires": str(waiver.expires),
        "owner": waiver.owner,
        "reason": waiver.reason,
        "workloads": list(lifted.workloads),
    }


def _side(plan: Plan) -> dict[str, Any]:
    outcome: dict[str, Any] = {"status": plan.outcome.status}
    if plan.outcome.stopped_by is not None:
        outcome["stoppedBy"] = plan.outcome.stopped_by
    tiers = [{"name": tier.name, "value": tier.value, "bound": tier.bound, "unit": tier.unit} for tier in plan.tiers]
    return {"outcome": outcome, "tiers": tiers}


def _price(price: Price) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": price.name,
        "unit": price.unit,
        "found": price.found,
        "atLeast": price.range.low,
        "atMost": price.range.high,
    }
    return {**row, "given": list(price.given)} if price.given else row
