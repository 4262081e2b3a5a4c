"""What it costs to go from one plan to another (S5.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dovetail.diff.model import Change, Cost
from dovetail.diff.start import tells_start
from dovetail.objectives.disruption import GpuTimeLost
from dovetail.placement import View
from dovetail.plan.model import Plan
from dovetail.rules import Context, context_of
from dovetail.spec import Current, PresentReplica, Spec

_EVICTED = ("evictedWorkloads", "evictedReplicas")


def context_from(base: Plan, spec: Spec) -> Context:
    """Return the target's documents with the base plan as what runs today."""
    present = tuple(PresentReplica(replica, *place) for replica, place in sorted(base.placements.items()))
    return context_of(replace(spec, current=Current(present, spec.current.elapsed)))


def cost_of(changes: Iterable[Change], target: Plan, context: Context | None) -> Cost:
    """Return the cost; with the documents, by the same measures as the disruption tiers."""
    return _counted(changes) if context is None else _measured(context, target)


def cost_of_start(target: Plan, spec: Spec | None) -> Cost:
    """Return what it costs to go to a plan from where it starts itself, as the documents or the plan tell it."""
    if spec is not None and tells_start(spec, target):
        return _measured(context_of(spec), target)
    told = {key: int(target.summary.get(key, 0)) for key in ("moves", "restarts", *_EVICTED)}
    lost = next((tier.value for tier in target.tiers if tier.name == GpuTimeLost().name), None)
    return Cost(
        moves=told["moves"],
        restarts=told["moves"] + told["restarts"],
        evicted_workloads=told["evictedWorkloads"],
        evicted_replicas=told["evictedReplicas"],
        gpu_time_lost=lost,
    )


def _counted(changes: Iterable[Change]) -> Cost:
    listed = list(changes)
    moves = sum(change.replicas for change in listed if change.kind == "move")
    evicted = [change for change in listed if change.kind in ("evict", "gone")]
    return Cost(
        moves=moves,
        restarts=moves,
        evicted_workloads=len({change.workload for change in evicted}),
        evicted_replicas=sum(change.replicas for change in evicted),
        gpu_time_lost=None if moves or evicted else 0,
    )


def _measured(context: Context, target: Plan) -> Cost:
    known = {r: p for r, p in target.placements.items() if _is_known(context.spec, r.workload, r.role, p.node)}
    view = context.view(known)
    workloads = context.spec.workloads
    evicted = [len(view.evicted(workload)) for workload in workloads]
    return Cost(
        moves=sum(len(view.moved(workload)) for workload in workloads),
        restarts=sum(_restarts(view, workload.id) for workload in workloads),
        evicted_workloads=sum(count > 0 for count in evicted),
        evicted_replicas=sum(evicted),
        gpu_time_lost=GpuTimeLost().measure(view, context),
    )


def _restarts(view: View, workload: str) -> int:
    """Count the replicas of a workload that ran, run on, and start anew."""
    running = [r for r in view.present_by_workload.get(workload, ()) if r in view.places]
    moved = view.today.lost.keys() | view.restarted
    anew = [r for r in running if r in moved or view.today.places[r] != view.places[r]]
    return len(running) if anew and view.spec.by_id[workload].atomic else len(anew)


def _is_known(spec: Spec, workload: str, role: str, node: str) -> bool:
    """Tell whether the documents know a row; a diff of a plan with other documents' rows still has a cost."""
    found = spec.by_id.get(workload)
    return found is not None and role in found.by_role and node in spec.cluster.by_name
