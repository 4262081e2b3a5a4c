"""Deadlines of batch work: what they need at once, and what one replica does of it where (S2.4, S2.8)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from dovetail.build.accelerators import Models
from dovetail.build.cursor import Cursor, frozen
from dovetail.build.parts import accepted_by
from dovetail.placement import profiles_for
from dovetail.quantities import parse_duration, parse_milli, parse_moment
from dovetail.spec import Accelerator, Cluster, Request, Slo, Workload
from dovetail.spec.slo import host_of
from dovetail.spec.workload import MILLI

_MILLISECOND = dt.timedelta(milliseconds=1)


def with_deadline(
    workload: Workload, here: Cursor, cluster: Cluster, models: Models, as_of: dt.date, slo: Slo
) -> Workload:
    """Return a batch that must do its work in time: it needs so many GPUs of the reference at once from now on.

    Parameters
    ----------
    as_of : the day whose beginning, in UTC, is now.
    slo : what is known of its service level so far.
    """
    own = here["slo"]
    if len(workload.roles) != 1 or not workload.roles[0].request.gpu_count:
        own["work"].fault("DT1543", "a deadline is kept by workloads of one role with GPUs", of_key=True)
        return workload
    if workload.atomic and workload.mix != "none":
        message = "deadlines of atomic workloads that mix accelerators are not supported yet"
        own["deadline"].fault("DT1900", message, "leave 'mix' out", of_key=True)
    role = workload.roles[0]
    now = dt.datetime.combine(as_of, dt.time(), dt.UTC)
    work = own["work"].quantity(parse_duration, 0)
    left = (own["deadline"].quantity(parse_moment, now) - now) // _MILLISECOND
    if left <= 0:
        own["deadline"].warn("DT1926", f"the deadline was over on {as_of}", "--as-of says which day it is")
    speeds = dict(throughputs(here, models))
    cards = accepted_by(role.accelerators, cluster, models)
    rates = {host: speed for card in cards for host, speed in _rates(card, role.request, speeds)}
    rate = -(-MILLI * work // left) if left > 0 else 0
    return replace(
        workload, slo=replace(slo, rate=rate, rates=frozen(rates), listed=False, open=False, late=left <= 0 < work)
    )


def refuse_throughput(here: Cursor, what: str) -> None:
    """Refuse throughputs of accelerators where nothing comes of them."""
    for each in choices_with_throughput(here):
        each["throughput"].fault("DT1544", f"'throughput' {what}", "leave it out", of_key=True)


def throughputs(here: Cursor, models: Models) -> Iterator[tuple[str, int]]:
    """Yield the accelerators of which a workload says its throughput, in thousandths of the reference's."""
    for each in choices_with_throughput(here):
        name = models.by_name.get(each.value["name"])
        if name is not None:
            yield name, each["throughput"].quantity(parse_milli, MILLI)


def choices_with_throughput(here: Cursor) -> Sequence[Cursor]:
    """Return where a workload, or a role of it, says the throughput of an accelerator that it accepts."""
    owners = [here, *here.items("roles")]
    return [
        each
        for owner in owners
        for each in owner.items("accelerators")
        if not isinstance(each.value, str) and "throughput" in each.value
    ]


def _rates(card: Accelerator, request: Request, speeds: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield hosts on an accelerator with what a replica is there, in thousandths of a GPU of the reference."""
    speed, request = speeds.get(card.name, card.throughput), request.on(card.name)
    yield host_of(card.name), request.gpu_milli * speed // MILLI
    for profile in profiles_for(request, card):
        milli = profile.milli if request.mig else request.gpu_milli
        yield host_of(card.name, profile.name), milli * speed // MILLI
