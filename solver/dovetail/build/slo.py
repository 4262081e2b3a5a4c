"""Service levels: what is promised of a workload, and what its class promises at the least (S2.8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor
from dovetail.build.deadlines import refuse_throughput, with_deadline
from dovetail.build.rates import with_rate
from dovetail.quantities import parse_fraction
from dovetail.spec import Cluster, ServiceClass, Slo, Workload

_TOGETHER: Final = {
    "rate": "performance",
    "performance": "rate",
    "p99": "rate",
    "work": "deadline",
    "deadline": "work",
}


@dataclass(frozen=True, slots=True)
class Promised:
    """What service levels are read with: classes, the day that deadlines are judged on, accelerators."""

    classes: Mapping[str, ServiceClass]
    as_of: dt.date
    models: Models


def read_classes(project: Cursor | None) -> Mapping[str, ServiceClass]:
    """Return the service classes that a project declares, by name."""
    return {} if project is None else {name: _read_class(own) for name, own in project.fields("sloClasses")}


def _read_class(own: Cursor) -> ServiceClass:
    return ServiceClass(
        weight=own.raw("weight", 1),
        admitted=own.amount("admitted", parse_fraction),
        replicas=own.raw("replicas", 0),
        rate=own.amount("rate", parse_fraction, 1000),
        deadline=own.amount("deadline", parse_fraction, 1000),
    )


def with_slo(workload: Workload, here: Cursor, cluster: Cluster, promised: Promised) -> Workload:
    """Return a workload with what is promised of it; faults go to the log."""
    own = here.get("slo")
    if own is None or "work" not in own.value:
        refuse_throughput(here, "of a workload that has no work to be done by a deadline")
    if own is None:
        return workload
    if not _complete(own):
        return workload
    slo = Slo(open=leaves_open(here), listed=False)
    if "class" in own.value:
        name = own["class"].refer("DT1319", "service class", promised.classes)
        slo = replace(slo, service_class=name or "", floors=promised.classes.get(name or "", ServiceClass()))
    if "rate" in own.value:
        return with_rate(workload, own, promised.models, slo)
    if "work" in own.value:
        return with_deadline(workload, here, cluster, promised.models, promised.as_of, slo)
    return replace(workload, slo=slo)


def leaves_open(here: Cursor) -> bool:
    """Tell whether a workload asks for a rate, and leaves to the planner how many replicas serve it."""
    roles = list(here.items("roles")) or [here]
    return "rate" in here.raw("slo", {}) and "replicas" not in roles[0].value


def _complete(own: Cursor) -> bool:
    """Refuse a service level that says half of what it should, or of what is both a service and a batch."""
    before = own.log.size
    for key, other in _TOGETHER.items():
        if key in own.value and other not in own.value:
            own[key].fault("DT1110", f"'{key}' without '{other}'", f"give '{other}' too", of_key=True)
    if "rate" in own.value and "work" in own.value:
        own["work"].fault("DT1110", "'work' beside 'rate'", "a service has a rate, a batch has work", of_key=True)
    if not own.value:
        own.fault("DT1110", "a service level that promises nothing", "give 'class', 'rate' or 'work'", of_key=True)
    return own.log.size == before
