"""Service levels: the rate a service promises, and what one replica sustains where (S2.8)."""

from __future__ import annotations

from dataclasses import replace

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, frozen
from dovetail.build.placement import MOST_REPLICAS
from dovetail.quantities import parse_duration, parse_milli
from dovetail.spec import Role, Slo, Workload


def with_slo(workload: Workload, here: Cursor, models: Models) -> Workload:
    """Return a workload with its service level; its replicas run where that tells a rate, and only there."""
    own = here.get("slo")
    if own is None:
        return workload
    if workload.type != "service" or len(workload.roles) != 1 or not workload.roles[0].request.gpu_count:
        own.fault("DT1540", "a rate is promised by services of one role with GPUs", of_key=True)
        return workload
    p99 = own.get("p99")
    slo = Slo(
        rate=own["rate"].quantity(parse_milli, 0),
        rates=_rates(own, models),
        p99=None if p99 is None else p99.quantity(parse_duration, 0),
    )
    return replace(workload, slo=slo, roles=(_bound_to(workload.roles[0], slo, here),))


def _rates(own: Cursor, models: Models) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in own.items("performance"):
        name, _, profile = each.raw("on").partition("/")
        if profile:
            message = "rates of MIG instances are not supported yet"
            each["on"].fault("DT1900", message, "name the accelerator alone, for whole GPUs and shares")
            continue
        model = models.resolve(replace(each["on"], value=name))
        if model in found:
            each["on"].fault("DT1511", f"the accelerator '{model}' is listed twice")
        if model is not None:
            found[model] = each["rate"].quantity(parse_milli, 0)
    return dict(frozen(found))


def _bound_to(role: Role, slo: Slo, here: Cursor) -> Role:
    """Return a role that runs on accelerators with a rate only, of as many replicas as the slowest of them needs."""
    accepted = tuple(name for name in sorted(slo.rates) if not role.accelerators or name in role.accelerators)
    if not accepted and slo.rates:
        here["slo"]["performance"].fault("DT1541", "no accelerator that it accepts is listed here", of_key=True)
    slowest = min((slo.rates[name] for name in accepted if slo.rates[name]), default=0)
    if "replicas" not in here.value and slowest:
        role = replace(role, replicas=_needed(slo.rate, slowest, here["slo"]))
    return replace(role, accelerators=accepted)


def _needed(rate: int, slowest: int, own: Cursor) -> int:
    """Return how many replicas a rate needs, at most as many as a workload may have."""
    replicas = -(-rate // slowest)
    if replicas > MOST_REPLICAS:
        message = f"this rate needs {replicas:,} replicas, and a workload has at most {MOST_REPLICAS:,}"
        own["rate"].fault("DT1106", message, "rates are requests per second, of the service and of one replica")
    return min(replicas, MOST_REPLICAS)
