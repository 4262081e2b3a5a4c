"""The current state as a Placement document tells it (S6.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.build.cursor import Cursor, Log, cursor, frozen
from dovetail.documents import Document
from dovetail.quantities import parse_duration
from dovetail.spec import Current, PresentReplica, ReplicaId, Workload
from dovetail.spec.identity import IdentityError, ReplicaRange, parse_range

MOST_REPLICAS: Final = 1_000_000


def read_current(document: Document, log: Log, workloads: Mapping[str, Workload] | None = None) -> Current:
    """Return what runs today; what reality has and the documents lack is kept, and no fault.

    Parameters
    ----------
    workloads : those declared, by id; where given, what runs of others gives a warning.
    """
    here = cursor(document, log)
    found = read_places(here, workloads)
    elapsed = {}
    for workload, running in here.fields("running"):
        elapsed[workload] = running["elapsed"].quantity(parse_duration, 0)
        if workloads is not None and workload not in workloads:
            running.warn("DT1914", f"no workload '{workload}' is declared", of_key=True)
    return Current(tuple(found[replica] for replica in sorted(found)), frozen(elapsed))


def read_places(here: Cursor, workloads: Mapping[str, Workload] | None = None) -> dict[ReplicaId, PresentReplica]:
    """Return replicas and their places, as the mapping `placements` of a value tells them."""
    left = MOST_REPLICAS
    found: dict[ReplicaId, PresentReplica] = {}
    for text, row in here.fields("placements"):
        replicas = _range(text, row, left)
        if replicas is None:
            continue
        left -= replicas.size
        if workloads is not None:
            _warn_if_undeclared(replicas, row, workloads)
        node, gpus, before = row.raw("node"), tuple(sorted(row.raw("gpus", ()))), len(found)
        found |= {replica: PresentReplica(replica, node, gpus) for replica in replicas.replicas()}
        if len(found) < before + replicas.size:
            row.fault("DT1702", f"{text} has a place already", of_key=True)
    return found


def _range(text: str, row: Cursor, most: int) -> ReplicaRange | None:
    """Return the replicas that a row speaks of, None after a fault."""
    try:
        found = parse_range(text)
    except IdentityError as error:
        row.fault("DT1701", str(error), of_key=True)
        return None
    if found.size > most:
        row.fault("DT1703", f"{text} brings the replicas above {MOST_REPLICAS:,}", of_key=True)
        return None
    return found


def _warn_if_undeclared(replicas: ReplicaRange, row: Cursor, workloads: Mapping[str, Workload]) -> None:
    workload = workloads.get(replicas.workload)
    if workload is None:
        row.warn("DT1914", f"no workload '{replicas.workload}' is declared", of_key=True)
    elif replicas.role not in workload.by_role:
        what = f"role '{replicas.role}'" if replicas.role else "replicas outside its roles"
        row.warn("DT1914", f"the workload '{replicas.workload}' has no {what}", of_key=True)
