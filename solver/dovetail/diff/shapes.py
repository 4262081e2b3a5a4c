"""How much of a workload there is, in words: `16x H100-80GB`, `serving 480 of 600`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from decimal import Decimal

from dovetail.placement import Place
from dovetail.plan.model import AdmissionResult, BrokenPromise
from dovetail.quantities import format_milli
from dovetail.spec import Spec
from dovetail.spec.workload import MILLI

_UNKNOWN = "GPU"


def gpus_of(places: Iterable[Place]) -> int:
    """Count the different GPUs that places are on."""
    return len(_gpus(places))


def _gpus(places: Iterable[Place]) -> set[tuple[str, int]]:
    return {(place.node, index) for place in places for index in place.gpus}


def shape_of(spec: Spec | None, places: Collection[Place]) -> str:
    """Say how many GPUs of what accelerator places are on; how many replicas, where they are on none."""
    nodes = spec.cluster.by_name if spec else {}
    found = Counter(
        (nodes[node].accelerator if node in nodes else None) or _UNKNOWN for node, _ in sorted(_gpus(places))
    )
    if not found:
        return f"{len(places)}x no GPU" if places else ""
    return " + ".join(f"{count}x {name}" for name, count in sorted(found.items()))


def wanted_shape(spec: Spec | None, workload: str) -> str:
    """Say how many GPUs a workload asks for in all, and of what accelerator where it accepts only one."""
    found = spec.by_id.get(workload) if spec else None
    if found is None:
        return ""
    milli = sum(role.request.gpu_milli * role.replicas for role in found.roles)
    if not milli:
        return f"{found.replicas}x no GPU"
    accepted = {name for role in found.roles for name in role.accelerators}
    name = accepted.pop() if len(accepted) == 1 else _UNKNOWN
    return f"{milli // MILLI if milli % MILLI == 0 else format_milli(milli)}x {name}"


def serving(result: AdmissionResult | None) -> str:
    """Say what a service serves of its rate, where it has one: `, serving 480 of 600`."""
    served = of_rate(result) if result else ""
    return f", serving {served}" if served else ""


def of_rate(told: AdmissionResult | BrokenPromise) -> str:
    """Say what is served of a rate, `480 of 600`; nothing where no rate is promised."""
    if told.served is None or told.rate is None:
        return ""
    return " of ".join(f"{Decimal(format_milli(each)):,f}" for each in (told.served, told.rate))
