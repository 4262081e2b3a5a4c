"""The rates that services serve, in models (S2.8); `placement.served` measures them."""

from __future__ import annotations

from dovetail.linear import Linear
from dovetail.rules.base import Part
from dovetail.spec import Workload


def sustained(part: Part, workload: Workload) -> Linear:
    """Return the thousandths of a request per second that a service's admitted replicas sustain."""
    rates = {} if workload.slo is None else workload.slo.rates
    total = Linear()
    for host, count in part.by_host(workload).items():
        if rates.get(host):
            total.add(count, rates[host])
    return total


def shortfall(part: Part, workload: Workload) -> Linear:
    """Return a variable of at least the thousandths that are missing of a service's rate."""
    slo = workload.slo
    if slo is None or not slo.rate:
        return Linear()
    missing = part.model.integer(0, 1000)
    enough = Linear.of(missing, slo.rate).add(sustained(part, workload), 1000)
    part.model.require(enough, lower=1000 * slo.rate)
    return Linear.of(missing)
