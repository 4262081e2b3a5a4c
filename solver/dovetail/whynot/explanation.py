"""All that is told of one workload, gathered, and as a document of kind Explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dovetail.documents import API_VERSION
from dovetail.plan import Plan
from dovetail.spec import Spec, Workload
from dovetail.whynot.barring import Bar, applying
from dovetail.whynot.here import Change, Elsewhere, Tried, Without
from dovetail.whynot.shortage import Shortage, shortages
from dovetail.whynot.ways import Way


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a workload is where it is in a plan, or is not admitted in full.

    Parameters
    ----------
    bars : how hard policies stand to it, where it is not admitted in full.
    ways : changes that were planned because it is not admitted in full.
    tried : what other nodes would change for what is on one of its nodes.
    without : plans in which it keeps off where it is.
    cut : whether time was up before all of these plans were made.
    """

    spec: Spec
    plan: Plan
    workload: Workload
    bars: Sequence[Bar] = ()
    ways: Sequence[Way] = ()
    tried: Tried | None = None
    without: Sequence[Without] = ()
    cut: bool = False

    @property
    def nodes(self) -> list[str]:
        """The nodes that it is on, sorted."""
        return sorted({place.node for r, place in self.plan.placements.items() if r.workload == self.workload.id})


def to_document(found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain data, ready for JSON."""
    plan, workload = found.plan, found.workload
    told = plan.admitted.get(workload.id)
    spec: dict[str, Any] = {
        "workload": workload.id,
        "status": plan.outcome.status,
        "admitted": sum(replica.workload == workload.id for replica in plan.placements),
        "of": workload.replicas,
        "nodes": found.nodes,
        "reasons": list(told.reasons) if told else [],
        "policies": [policy.name for policy in applying(found.spec, workload)],
    }
    if plan.conflict:
        spec["conflict"] = list(plan.conflict)
    if told:
        spec["bars"] = [_bar(each) for each in found.bars]
        spec["missing"] = [_missing(each) for each in shortages(found.spec, plan, workload)]
    spec["ways"] = [_way(way) for way in found.ways]
    if found.tried is not None:
        spec["tried"] = _tried(found.tried)
    spec["without"] = [_without(each) for each in found.without]
    spec["cut"] = found.cut
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        "metadata": {"name": found.spec.name},
        "spec": spec,
    }


def _bar(found: Bar) -> dict[str, Any]:
    counts = {"replicas": found.needed, "spent": found.spent}
    row: dict[str, Any] = {"policy": found.policy.name, "stands": found.stand, **counts}
    return {**row, "beside": list(found.beside), "evicting": found.evicting} if found.keeps_out else row


def _missing(found: Shortage) -> dict[str, Any]:
    row: dict[str, Any] = {"role": found.role.name} if found.role.name else {}
    counts = {"replicas": found.missing, "nodes": found.nodes, "able": found.able, "open": found.open}
    held = {"heldMilliGpus": found.held} if found.held else {}
    if found.rate is not None:
        counts |= {"leastReplicas": found.rate[1]}
    return {**row, **counts, "idleMilliGpus": found.free, **held, "mostGpus": found.most, "room": found.fit}


def _way(way: Way) -> dict[str, Any]:
    row: dict[str, Any] = {"change": str(way.patch), "helps": way.helps, "certain": way.certain}
    if way.admitted is None:
        return row
    others = {"others": len(way.plan.admitted)} if way.helps and way.plan.admitted else {}
    return {**row, "admitted": way.admitted, "least": way.least, **others}


def _tried(found: Tried) -> dict[str, Any]:
    return {
        "node": found.node,
        "replicas": found.replicas,
        "hosts": found.hosts,
        "nodes": [_elsewhere(each) for each in found.nodes],
    }


def _elsewhere(found: Elsewhere) -> dict[str, Any]:
    row: dict[str, Any] = {"node": found.node}
    return {**row, "obstacle": found.obstacle} if found.obstacle else {**row, "changes": _changes(found.changes)}


def _without(found: Without) -> dict[str, Any]:
    row: dict[str, Any] = {"without": found.what, "certain": found.certain, "status": found.plan.outcome.status}
    return row if found.admitted is None else {**row, "admitted": found.admitted, "changes": _changes(found.changes)}


def _changes(found: Sequence[Change]) -> list[dict[str, Any]]:
    return [
        {"tier": each.tier, "unit": each.unit, "here": each.here, "there": each.there, "worse": each.worse}
        for each in found
    ]
