"""On what replicas are at their places, as tables of services call it, and what they take there (S2.8)."""

from __future__ import annotations

from dovetail.placement.place import Place
from dovetail.spec import Request, Spec
from dovetail.spec.slo import host_of
from dovetail.spec.workload import MILLI

_SLICES = 7  # of a GPU


def host_at(spec: Spec, place: Place) -> str:
    """Return on what a replica is at a place."""
    return host_of(spec.cluster.by_name[place.node].accelerator, place.instance.partition("@")[0])


def slices(spec: Spec, request: Request, host: str) -> int:
    """Return the thousandths of slices that a replica with a request takes on a host (`spec.slo.host_of`).

    A slice is a seventh of a GPU; an instance counts as the share of its GPU's compute slices that it takes.
    """
    accelerator, _, profile = host.partition("/")
    geometry = spec.accelerators[accelerator].mig if accelerator in spec.accelerators else None
    if profile and geometry is not None:
        return MILLI * _SLICES * geometry.by_name[profile].compute // geometry.compute
    return _SLICES * request.on(accelerator).gpu_milli
