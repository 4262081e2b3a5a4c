"""The current state as a Placement document tells it (S6.5)."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.build.cursor import Cursor, Log, cursor, frozen
from dovetail.documents import Document
from dovetail.quantities import parse_duration
from dovetail.spec import Current, PresentReplica, ReplicaId, Workload
from dovetail.spec.identity import IdentityError, ReplicaRange, parse_range


def read_current(document: Document, log: Log, workloads: Mapping[str, Workload] | None = None) -> Current:
    """Return what runs today; what reality has and the documents lack is kept, and no fault.

    Parameters
    ----------
    workloads : those declared, by id; where given, what runs of others gives a warning.
    """
    here = cursor(document, log)
    found: dict[ReplicaId, PresentReplica] = {}
    for text, row in here.fields("placements"):
        replicas = _range(text, row)
        if replicas is None:
            continue
        if workloads is not None:
            _warn_if_undeclared(replicas, row, workloads)
        place = row.raw("node"), tuple(sorted(row.raw("gpus", ())))
        twice = [replica for replica in replicas.replicas() if replica in found]
        if twice:
            row.fault("DT1702", f"the replica {twice[0]} has a place already", of_key=True)
        found |= {replica: PresentReplica(replica, *place) for replica in replicas.replicas()}
    elapsed = {}
    for workload, running in here.fields("running"):
        elapsed[workload] = running["elapsed"].quantity(parse_duration, 0)
        if workloads is not None and workload not in workloads:
            running.warn("DT1914", f"no workload '{workload}' is declared", of_key=True)
    return Current(tuple(found[replica] for replica in sorted(found)), frozen(elapsed))


def _range(text: str, row: Cursor) -> ReplicaRange | None:
    """Return the replicas that a row speaks of, None after a fault."""
    try:
        found = parse_range(text)
    except IdentityError as error:
        row.fault("DT1701", str(error), of_key=True)
        return None
    if found.size > row.log.expanded_left:
        row.fault("DT1703", f"{text} stands for {found.size:,} replicas", of_key=True)
        return None
    row.log.expanded_left -= found.size
    return found


def _warn_if_undeclared(replicas: ReplicaRange, row: Cursor, workloads: Mapping[str, Workload]) -> None:
    workload = workloads.get(replicas.workload)
    if workload is None:
        row.warn("DT1914", f"no workload '{replicas.workload}' is declared", of_key=True)
    elif replicas.role not in workload.by_role:
        what = f"role '{replicas.role}'" if replicas.role else "replicas outside its roles"
        row.warn("DT1914", f"the workload '{replicas.workload}' has no {what}", of_key=True)
