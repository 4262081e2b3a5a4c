"""What it costs to go from one plan to another (S5.3), where the documents are not known or tell another start."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.diff.model import Change, Cost
from dovetail.diff.passage import own_passage
from dovetail.diff.start import tells_start
from dovetail.objectives.disruption import GpuTimeLost
from dovetail.plan import current_of, state_digest
from dovetail.plan.model import Plan
from dovetail.spec import Spec

_EVICTED = ("evictedWorkloads", "evictedReplicas")


def cost_without_documents(changes: Iterable[Change], base: Plan, target: Plan) -> Cost:
    """Return the cost as the target tells it, where it was made from the base; else as far as rows tell it."""
    if target.current is not None and target.current == state_digest(current_of(base)):
        return _told(target)
    return _counted(changes, as_cut=(base.gpus, base.shared) == (target.gpus, target.shared))


def cost_of_start(target: Plan, spec: Spec | None) -> Cost:
    """Return what it costs to go to a plan from where it starts itself, as the documents or the plan tell it."""
    return own_passage(target, spec).cost() if spec is not None and tells_start(spec, target) else _told(target)


def _told(target: Plan) -> Cost:
    told = {key: int(target.summary.get(key, 0)) for key in ("moves", "restarts", *_EVICTED)}
    lost = next((tier.value for tier in target.tiers if tier.name == GpuTimeLost().name), None)
    return Cost(
        moves=told["moves"],
        restarts=told["moves"] + told["restarts"],
        evicted_workloads=told["evictedWorkloads"],
        evicted_replicas=told["evictedReplicas"],
        gpu_time_lost=lost,
    )


def _counted(changes: Iterable[Change], *, as_cut: bool) -> Cost:
    """Count changes; who restarts where a GPU is cut or shared in another way only the documents know."""
    listed = list(changes)
    moves = sum(change.replicas for change in listed if change.kind == "move")
    evicted = [change for change in listed if change.kind in ("evict", "gone")]
    return Cost(
        moves=moves,
        restarts=moves,
        evicted_workloads=len({change.workload for change in evicted}),
        evicted_replicas=sum(change.replicas for change in evicted),
        gpu_time_lost=0 if as_cut and not moves and not evicted else None,
    )
