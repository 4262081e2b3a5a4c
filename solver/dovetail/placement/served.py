"""The rates that services serve on a placement (S2.8)."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.placement.place import Place
from dovetail.placement.view import View
from dovetail.spec import Spec, Workload
from dovetail.spec.slo import host_of


def served(view: View, workload: Workload) -> int:
    """Return the thousandths of a request per second that a service's admitted replicas sustain."""
    if workload.slo is None:
        return 0
    return sum(workload.slo.rates.get(host, 0) for host in hosts(view, workload))


def hosts(view: View, workload: Workload) -> Iterator[str]:
    """Yield on what the admitted replicas of a workload are, one by one (`spec.slo.host_of`)."""
    for replica in view.admitted(workload):
        yield host_at(view.spec, view.places[replica])


def host_at(spec: Spec, place: Place) -> str:
    """Return on what a replica is at a place."""
    return host_of(spec.cluster.by_name[place.node].accelerator, place.instance.partition("@")[0])
