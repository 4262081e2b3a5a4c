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


def shortfall(part: Part, workload: Workload, asked: int) -> Linear:
    """Return a variable of at least the thousandths that are missing of a rate that is asked of a workload."""
    if workload.slo is not None and workload.slo.late:
        return Linear(constant=1000)
    if not asked:
        return Linear()
    return _missing(part, sustained(part, workload), asked)


def absent(part: Part, workload: Workload) -> Linear:
    """Return a variable of at least the thousandths that are missing of the replicas that a class promises."""
    least = 0 if workload.slo is None else workload.slo.least(workload.replicas)
    return _missing(part, part.admitted(workload), least) if least else Linear()


def _missing(part: Part, there: Linear, asked: int) -> Linear:
    missing = part.model.integer(0, 1000)
    enough = Linear.of(missing, asked).add(there, 1000)
    part.model.require(enough, lower=1000 * asked)
    return Linear.of(missing)
