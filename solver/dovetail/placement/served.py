"""The rates that services serve on a placement (S2.8)."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.placement.hosts import host_at
from dovetail.placement.view import View
from dovetail.spec import Workload


def served(view: View, workload: Workload) -> int:
    """Return the thousandths of a request per second that a service's admitted replicas sustain."""
    if workload.slo is None:
        return 0
    return sum(workload.slo.rates.get(host, 0) for host in hosts(view, workload))


def hosts(view: View, workload: Workload) -> Iterator[str]:
    """Yield on what the admitted replicas of a workload are, one by one (`spec.slo.host_of`)."""
    for replica in view.admitted(workload):
        yield host_at(view.spec, view.places[replica])
