"""The check of ranks: who is next to whom among the replicas of a gang."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dovetail.placement.nested import path_of
from dovetail.spec import Workload
from dovetail.spec.inside import INNER_LEVELS
from dovetail.verify.case import Case, Row
from dovetail.verify.model import Finding, Found, Open


def ranks(case: Case) -> Iterator[Found]:
    """Of a gang of which nobody runs today, replicas of a role that share a domain follow each other (S2.5).

    Which domain comes first is open, and who of a domain comes first in it. What runs keeps its index, and of groups
    that may be there in part the minimum decides who comes where: nothing is asked of these.
    """
    running = {replica.workload for replica in case.context.today.present()}
    for name, rows in case.by_workload.items():
        workload = case.spec.by_id[name]
        if workload.ranked and name not in running and not _in_part(workload):
            found = next(_torn(case, rows), None)
            if found is not None:
                yield found if case.known else Open(name)


def _in_part(workload: Workload) -> bool:
    return workload.topology is not None and workload.topology.loose


def _torn(case: Case, rows: Sequence[Row]) -> Iterator[Finding]:
    """Yield who comes back to a domain that its role has left, the outermost level first."""
    for level in (*case.spec.cluster.levels, *INNER_LEVELS):
        for _, members in groupby(rows, key=lambda row: row.role.name):
            seen, last = set[str](), None
            for row in members:
                path = path_of(case.spec.cluster, level, row.place)
                if path is not None and path != last and path in seen:
                    told = f"is in {level} {path} again, which replicas before it have left: ranks go astray"
                    yield Finding(str(row.replica), told)
                last = path or last
                seen.add(path or "")
