"""Checks of single rows: the replica, the node and the GPUs exist, are healthy, and are as many as asked for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dovetail.quantities import counted
from dovetail.verify.case import Case, role_of
from dovetail.verify.model import Finding


def replicas_exist(case: Case) -> Iterator[Finding]:
    """Every placed replica is declared."""
    for replica in sorted(case.places):
        stands_in = replica in case.plan.placements and replica.workload not in case.spec.declared
        if stands_in or role_of(case.spec, replica) is None:
            yield Finding(str(replica), "no workload declares this replica")


def nodes_exist(case: Case) -> Iterator[Finding]:
    """Every place is on a node of the cluster."""
    for replica, place in sorted(case.places.items()):
        if place.node not in case.spec.cluster.by_name:
            yield Finding(str(replica), f"the cluster has no node {place.node}")


def gpu_indices(case: Case) -> Iterator[Finding]:
    """GPU indices exist on the node and ascend, so that none is listed twice."""
    for row in case.rows:
        gpus = row.place.gpus
        if any(not 0 <= index < row.node.gpus for index in gpus):
            yield Finding(
                str(row.replica), f"node {row.node.name} has {row.node.gpus} GPUs, the row names {list(gpus)}"
            )
        elif any(left >= right for left, right in pairwise(gpus)):
            yield Finding(str(row.replica), f"the indices {list(gpus)} do not ascend")


def health(case: Case) -> Iterator[Finding]:
    """Nothing is on a node that is down or on a GPU that has failed (S3.7)."""
    for row in case.rows:
        failed = row.node.failed_gpus.intersection(row.place.gpus)
        if row.node.down:
            yield Finding(str(row.replica), f"node {row.node.name} is down")
        elif failed:
            yield Finding(str(row.replica), f"GPU {min(failed)} of node {row.node.name} has failed")


def gpu_count(case: Case) -> Iterator[Finding]:
    """A replica has exactly as many GPUs as it asks for: one for a share, none without a GPU request."""
    for row in case.rows:
        if len(row.place.gpus) != row.request.gpu_count:
            yield Finding(
                str(row.replica), f"asks for {counted(row.request.gpu_count, 'GPUs')} and has {len(row.place.gpus)}"
            )
