"""Waivers (S4.3)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable

from dovetail.build.cursor import Log, cursor
from dovetail.build.selectors import Known, read_workload_selector, warn_if_no_workload
from dovetail.documents import Document
from dovetail.quantities import parse_date
from dovetail.spec import Waiver


def read_waivers(
    documents: Iterable[Document], policies: Collection[str], known: Known, log: Log
) -> tuple[Waiver, ...]:
    """Return the waivers of documents, sorted by name; whether one has expired is not judged here."""
    found = [_read(document, policies, known, log) for document in documents]
    return tuple(sorted(found, key=lambda waiver: waiver.name))


def _read(document: Document, policies: Collection[str], known: Known, log: Log) -> Waiver:
    here = cursor(document, log)
    here["policy"].refer("DT1314", "policy", policies)
    place = here["match"]["workloads"]
    workloads = read_workload_selector(place, known)
    warn_if_no_workload(place, workloads, known)
    return Waiver(
        name=document.name,
        policy=here.raw("policy"),
        workloads=workloads,
        reason=here.raw("reason"),
        owner=here.raw("owner"),
        expires=here["expires"].quantity(parse_date, dt.date.min),
    )
