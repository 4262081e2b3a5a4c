"""Checks of capacity, summed up straight from the rows: nothing here is shared with what places replicas."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.quantities import format_milli
from dovetail.spec.workload import MILLI
from dovetail.verify.case import Case
from dovetail.verify.model import Finding


def cpu(case: Case) -> Iterator[Finding]:
    """The replicas of a node ask for no more cpu than it has (S3.6)."""
    for name, rows in case.by_node.items():
        asked, has = sum(row.request.cpu for row in rows), case.spec.cluster.by_name[name].cpu
        if asked > has:
            yield Finding(name, f"{asked} milli-cores are asked for, {has} are there")


def memory(case: Case) -> Iterator[Finding]:
    """The replicas of a node ask for no more memory than it has (S3.6)."""
    for name, rows in case.by_node.items():
        asked, has = sum(row.request.memory for row in rows), case.spec.cluster.by_name[name].memory
        if asked > has:
            yield Finding(name, f"{asked} MiB are asked for, {has} are there")


def resources(case: Case) -> Iterator[Finding]:
    """The replicas of a node ask for no more of any resource than it has (S1.5, S3.6)."""
    for name, rows in case.by_node.items():
        there = case.spec.cluster.by_name[name].resources
        for resource in sorted({key for row in rows for key in row.request.resources}):
            asked = sum(row.request.resources.get(resource, 0) for row in rows)
            if asked > there.get(resource, 0):
                yield Finding(name, f"{asked} {resource} are asked for, {there.get(resource, 0)} are there")


def whole_gpus(case: Case) -> Iterator[Finding]:
    """A GPU that is given as a whole holds one replica only (S3.1)."""
    for node, index, rows in case.gpus():
        if len(rows) > 1 and any(not row.request.partial for row in rows):
            yield Finding(f"{node.name}/{index}", f"holds {', '.join(str(row.replica) for row in rows)}")


def share_compute(case: Case) -> Iterator[Finding]:
    """The shares on a GPU that is shared by fractions take at most 1000 milli of it (S3.5)."""
    for node, index, rows in case.gpus():
        if node.mechanism != "fraction":
            continue
        total = sum(row.request.share.compute for row in rows if row.request.share and not row.place.instance)
        if total > MILLI:
            yield Finding(f"{node.name}/{index}", f"shares take {total} milli-GPU of {MILLI}")


def share_memory(case: Case) -> Iterator[Finding]:
    """The shares on a GPU take at most its memory; one that names no memory takes its fraction of the card (S2.2)."""
    for node, index, rows in case.gpus():
        card = case.spec.accelerators[node.accelerator].memory if node.accelerator else 0
        shares = [row.request.share for row in rows if row.request.share and not row.place.instance]
        thousandths = sum(s.compute * card if s.memory is None else s.memory * 1000 for s in shares)
        if thousandths > card * 1000:
            yield Finding(f"{node.name}/{index}", f"shares take {format_milli(thousandths)} MiB of {card}")
