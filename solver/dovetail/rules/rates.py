"""The rates that services serve, in models (S2.8); `placement.served` measures them."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.linear import Linear, Model
from dovetail.rules.base import Part
from dovetail.spec import Workload


def by_rate(workload: Workload, by_host: Mapping[str, Linear]) -> Mapping[int, Linear]:
    """Return how many replicas of a service sustain each rate, in thousandths, of those on each host."""
    rates = {} if workload.slo is None else workload.slo.rates
    found: dict[int, Linear] = {}
    for host, count in by_host.items():
        if rates.get(host):
            found.setdefault(rates[host], Linear()).add(count)
    return found


def require_served(model: Model, served: Mapping[int, Linear], short: Linear, unit: int, asked: int) -> None:
    """Let what is short of a rate, and replicas that serve of it, make up what is asked, `unit` times each.

    Replicas are whole, so that often some of them serve more than is left to serve. Rows beside the one that says the
    sum tell as much of that as rounding to multiples of one replica's rate shows (mixed-integer rounding; Nemhauser
    and Wolsey 1990). They leave out no plan and make relaxations closer.

    Parameters
    ----------
    served : how many replicas sustain each rate.
    short : at least 0 wherever it may be.
    """
    sums = [({rate: rate for rate in served}, asked)]
    for step in served:
        if rest := asked % step:
            parts = {rate: rate // step * rest + min(rate % step, rest) for rate in served}
            sums.append((parts, -(-asked // step) * rest))
    for parts, whole in sums:
        there = Linear.total(count.scaled(unit * parts[rate]) for rate, count in served.items())
        model.require(there.add(short).plus(-unit * whole).reduced(), lower=0)


def shortfall(part: Part, workload: Workload, asked: int) -> Linear:
    """Return a variable of at least the thousandths that are missing of a rate that is asked of a workload."""
    if workload.slo is not None and workload.slo.late:
        return Linear(constant=1000)
    if not asked:
        return Linear()
    missing = part.model.integer(0, 1000)
    served = by_rate(workload, part.by_host(workload))
    require_served(part.model, served, Linear.of(missing, asked), 1000, asked)
    return Linear.of(missing)


def absent(part: Part, workload: Workload) -> Linear:
    """Return a variable of at least the thousandths that are missing of the replicas that a class promises."""
    least = 0 if workload.slo is None else workload.slo.least(workload.replicas)
    if not least:
        return Linear()
    missing = part.model.integer(0, 1000)
    beyond = Linear.of(missing, least).add(part.admitted(workload), 1000).plus(-1000 * least)
    part.model.require(beyond.reduced(), lower=0)
    return Linear.of(missing)
