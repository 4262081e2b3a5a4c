"""The summary of a plan: figures for people, each recomputed from the Spec and the places alone."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from dovetail.objectives.cost import Cost
from dovetail.objectives.disruption import Evicted, GpuTimeLost, Moves
from dovetail.placement import View
from dovetail.placement.fragments import Judge, expected_of
from dovetail.placement.served import served
from dovetail.plan.model import AdmissionState, Figure
from dovetail.plan.stranded import stranded
from dovetail.quantities import rounded
from dovetail.rules import Context
from dovetail.spec import Workload
from dovetail.spec.workload import MILLI

OF_TODAY = ("evictedWorkloads", "evictedReplicas", "moves", "restarts", "gpuHoursLost", "gpusRepartitioned")
"""Figures that count from what runs today."""

OF_TIERS: Mapping[str, str] = MappingProxyType(
    {"evictedWorkloads": Evicted().name, "gpuHoursLost": GpuTimeLost().name, "moves": Moves().name}
)
"""Figures that are the value of a tier, where the objective has it."""

_MILLION = 10**6
_RATE = 10**4
_SECONDS_PER_HOUR = 3600


def summary_of(view: View, context: Context) -> Mapping[str, Figure]:
    """Return every figure of the summary, in the order they are written; `docs/reference/plan.md` defines each."""
    return {
        **_admission(view),
        **_gpus(view),
        **_fragments(view),
        "nodesUsed": len({place.node for place in view.places.values()}),
        "cpuOnlyReplicas": sum(not view.role(replica).request.gpu_count for replica in view.places),
        **_disruption(view, context),
        "costPerHour": figure(Cost().measure(view, context), _MILLION),
    }


def with_zeros(summary: Mapping[str, Figure]) -> Mapping[str, Figure]:
    """Return the figures of a summary, and zero for those that are told only where anything is held free, or cut.

    GPUs that are cut anew count from what runs today: a summary without such figures is not given one.
    """
    if not summary:
        return {}
    return {"gpusHeld": 0, **({"gpusRepartitioned": 0} if "moves" in summary else {}), **summary}


def figure(amount: int, scale: int) -> Figure:
    """Return `amount / scale` exactly for a scale that is a power of ten, as an int where it is whole."""
    whole, rest = divmod(amount, scale)
    return whole if not rest else (Decimal(amount) / scale).normalize()


def state_of(view: View, workload: Workload) -> AdmissionState:
    """Return how far a workload is admitted; one without replicas is admitted in full.

    A service that asks for a rate alone is admitted in full where it serves that rate.
    """
    admitted = len(view.admitted(workload))
    if workload.slo is not None and workload.slo.open:
        enough = served(view, workload) >= workload.slo.rate
    else:
        enough = admitted == workload.replicas
    if enough:
        return "full"
    return "partial" if admitted else "none"


def _admission(view: View) -> dict[str, Figure]:
    states = [state_of(view, workload) for workload in view.spec.workloads]
    return {
        "admittedFull": states.count("full"),
        "admittedPartial": states.count("partial"),
        "admittedNone": states.count("none"),
        "workloads": len(states),
    }


def _gpus(view: View) -> dict[str, Figure]:
    allocated = used = known = 0
    nodes = view.spec.cluster.by_name
    for replica, place in view.places.items():
        role = view.role(replica)
        milli = role.request.on(nodes[place.node].accelerator).gpu_milli
        allocated += milli
        if role.request.gpu_count and role.observed is not None and role.observed.compute is not None:
            used += role.observed.compute
            known += milli
    return {
        "gpusTotal": sum(len(node.healthy_gpus()) for node in view.spec.cluster.nodes),
        "gpusAllocated": figure(allocated, MILLI),
        "gpusUsed": figure(used, MILLI),
        "gpusUsedKnown": figure(known, MILLI),
        **_held(view),
        "gpusStranded": figure(stranded(view), MILLI),
    }


def _fragments(view: View) -> dict[str, Figure]:
    """Return what idle GPU the expected work cannot use, where the objective asks for it (S5.5)."""
    expected = expected_of(view.spec) if "fragmentation" in view.spec.objective.tiers else ()
    if not expected:
        return {}
    judge = Judge(expected, view.spec.accelerators)
    found = judge.of_view(view)
    amounts = {"": found.amount, "Deficient": found.deficient, "Blocked": found.blocked, "Stranded": found.stranded}
    gpus = {f"gpusFragmented{cause}": figure(n // judge.weight, MILLI) for cause, n in amounts.items()}
    rate = figure(_RATE * found.amount // found.idle, _RATE) if found.idle else 0
    return {"gpusFragmented": gpus.pop("gpusFragmented"), "fragmentationRate": rate, **gpus}


def _held(view: View) -> dict[str, Figure]:
    """Return the GPUs that policies hold free, where any policy holds places."""
    if not view.spec.placeholders:
        return {}
    nodes = view.spec.cluster.by_name
    held = ((view.role(replica).request, nodes[place.node].accelerator) for replica, place in view.placeholders)
    return {"gpusHeld": figure(sum(request.on(accelerator).gpu_milli for request, accelerator in held), MILLI)}


def figure_of(key: str, value: int) -> Figure:
    """Return a figure of `OF_TIERS` from the value of its tier: GPU hours to three digits, half rounded up."""
    if key != "gpuHoursLost":
        return value
    return figure(int(rounded(value, MILLI * _SECONDS_PER_HOUR) * MILLI), MILLI)


def _disruption(view: View, context: Context) -> dict[str, Figure]:
    return {
        "evictedWorkloads": Evicted().measure(view, context),
        "evictedReplicas": sum(len(view.evicted(workload)) for workload in view.spec.workloads),
        "moves": Moves().measure(view, context),
        "restarts": sum(replica in view.places for replica in view.today.lost),
        "gpuHoursLost": figure_of("gpuHoursLost", GpuTimeLost().measure(view, context)),
        **({"gpusRepartitioned": len(view.recut)} if view.today.layouts or view.layouts else {}),
    }
