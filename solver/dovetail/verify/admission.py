"""Checks of how many replicas of a workload are admitted together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dovetail.placement.nested import groups_there
from dovetail.verify.case import Case
from dovetail.verify.model import Finding


def atomic(case: Case) -> Iterator[Finding]:
    """An atomic workload has all of its replicas or none (S2.1)."""
    for name, rows in case.by_workload.items():
        workload = case.spec.by_id[name]
        if workload.atomic and not workload.elastic and len(rows) != workload.replicas:
            yield Finding(name, f"is atomic and has {len(rows)} of {workload.replicas} replicas")


def least(case: Case) -> Iterator[Finding]:
    """A workload that is not atomic has no replicas or at least `minReplicas` (S2.1)."""
    for name, rows in case.by_workload.items():
        workload = case.spec.by_id[name]
        if (not workload.atomic or workload.elastic) and len(rows) < workload.min_replicas:
            yield Finding(name, f"has {len(rows)} replicas, fewer than its smallest number {workload.min_replicas}")


def groups(case: Case) -> Iterator[Finding]:
    """Of groups that may be there in part as many are there as are worth admitting (S2.5)."""
    for name, rows in case.by_workload.items():
        workload = case.spec.by_id[name]
        for nest in workload.squads:
            found, least = groups_there(nest, (row.replica for row in rows)), workload.groups_owed(nest)
            if found < least:
                yield Finding(name, f"has {found} groups per {nest.group.within}, not the {least} it must have")


def widths(case: Case) -> Iterator[Finding]:
    """An elastic role has its least number of replicas and whole steps more (S2.6)."""
    for name, rows in case.by_workload.items():
        for role in case.spec.by_id[name].roles:
            count = sum(row.role.name == role.name for row in rows)
            if role.elastic and (count < (role.least or 0) or (count - (role.least or 0)) % role.step):
                what = f" of {role.name}" if role.name else ""
                yield Finding(name, f"has {count} replicas{what}, not {role.least} and steps of {role.step} more")


def mix(case: Case) -> Iterator[Finding]:
    """The GPU replicas of an atomic workload share one accelerator, or those of each role do (S2.4)."""
    for name, rows in case.by_workload.items():
        workload = case.spec.by_id[name]
        if not workload.atomic or workload.mix == "any":
            continue
        kinds: defaultdict[str, set[str]] = defaultdict(set)
        for row in rows:
            if row.request.gpu_count:
                kinds[row.role.name if workload.mix == "perRole" else ""].add(row.node.accelerator or "")
        for mixed in kinds.values():
            if len(mixed) > 1:
                yield Finding(name, f"mixes {', '.join(sorted(mixed))}")
