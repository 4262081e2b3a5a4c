"""Which promises a plan does not keep (S2.8, S6.1)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.placement import View
from dovetail.placement.served import served
from dovetail.plan.model import BrokenPromise
from dovetail.spec import Workload


def promises_of(view: View) -> Mapping[str, BrokenPromise]:
    """Return what is missing of the promises that are not kept, by workload."""
    found = {workload.id: _promise(view, workload) for workload in view.spec.workloads if workload.slo is not None}
    return {name: promise for name, promise in found.items() if promise.missing}


def _promise(view: View, workload: Workload) -> BrokenPromise:
    slo = workload.slo
    if slo is None:
        return BrokenPromise(0)
    there = served(view, workload)
    missing = slo.missing(there, len(view.admitted(workload)), workload.replicas) // slo.floors.weight
    return BrokenPromise(missing, *((there, slo.rate) if slo.rate else ()))
