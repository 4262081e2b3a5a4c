"""The rates that services serve on a placement (S2.8)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dovetail.placement.hosts import host_at
from dovetail.placement.view import View
from dovetail.spec import Workload


def served(view: View, workload: Workload) -> int:
    """Return the thousandths of a request per second that a service's admitted replicas sustain."""
    if workload.slo is None:
        return 0
    rates = workload.slo.rates
    return sum(count * rates.get(host, 0) for host, count in hosts(view, workload).items())


def hosts(view: View, workload: Workload) -> Mapping[str, int]:
    """Return how many admitted replicas of a workload are on what (`spec.slo.host_of`), worked out once."""
    known = view.hosts
    if workload.id not in known:
        known[workload.id] = Counter(host_at(view.spec, view.places[r]) for r in view.admitted(workload))
    return known[workload.id]
