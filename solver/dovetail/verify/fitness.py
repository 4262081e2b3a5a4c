"""Checks of what a workload accepts and what a node takes in."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.placement.hosts import host_at
from dovetail.spec.inside import ISLAND_LEVEL
from dovetail.verify.case import Case, Row
from dovetail.verify.model import Finding, Found, Open


def accelerators(case: Case) -> Iterator[Finding]:
    """A replica with GPUs runs on an accelerator that its role accepts (S2.4)."""
    for row in case.rows:
        accepted = row.role.accelerators
        if row.request.gpu_count and accepted and row.node.accelerator not in accepted:
            yield Finding(str(row.replica), f"does not accept {row.node.accelerator} of node {row.node.name}")


def mechanism(case: Case) -> Iterator[Finding]:
    """A share that is not on MIG may do without, and is on a node that says how its GPUs are shared (S3.5)."""
    for row in case.rows:
        share = None if row.place.instance else row.request.share
        if share is not None and "fraction" not in share.modes:
            yield Finding(str(row.replica), "may only be on a MIG instance, and is on none")
        elif share is not None and row.node.mechanism != "fraction" and row.node.sharing is None:
            yield Finding(str(row.replica), f"node {row.node.name} does not share GPUs")
        elif share is not None and row.node.mechanism == "fraction" and share.bars("fraction", row.node.accelerator):
            yield Finding(str(row.replica), f"keeps a latency, and clients take turns on node {row.node.name} (S2.7)")


def rates(case: Case) -> Iterator[Finding]:
    """A replica of a service with a rate runs on what its table lists, or an instance that contains that (S2.8)."""
    for row in case.rows:
        slo = row.workload.slo
        if slo is not None and slo.listed and host_at(case.spec, row.place) not in slo.rates:
            yield Finding(str(row.replica), f"has no rate on {host_at(case.spec, row.place)}")


def taints(case: Case) -> Iterator[Found]:
    """Taints are tolerated (S3.6); `NoSchedule` does not drive away what runs there and stays in its place."""
    for row in case.rows:
        for taint in row.node.taints:
            tolerated = any(toleration.tolerates(taint) for toleration in row.workload.tolerations)
            if tolerated or taint.effect not in ("NoSchedule", "NoExecute"):
                continue
            message = f"node {row.node.name} has taint {taint.key}:{taint.effect}"
            if taint.effect == "NoExecute":
                yield Finding(str(row.replica), message)
            else:
                yield from _unless_it_stays(case, row, message)


def cordons(case: Case) -> Iterator[Found]:
    """A cordoned node takes nothing new: what is there runs there today, in the same place (S3.7)."""
    for row in case.rows:
        if row.node.cordoned:
            message = f"node {row.node.name} is cordoned and does not run this replica today"
            yield from _unless_it_stays(case, row, message)


def together(case: Case) -> Iterator[Found]:
    """The GPUs of a replica lie in one island, or socket, as it demands (S2.5); what runs across several may stay."""
    for row in case.rows:
        for level in row.request.inside:
            parts = row.node.islands if level == ISLAND_LEVEL else row.node.sockets
            if not parts or any(set(row.place.gpus) <= set(part) for part in parts):
                continue
            message = f"GPUs {list(row.place.gpus)} are in no one {level} of {row.node.name}"
            yield from _unless_it_stays(case, row, message)


def _unless_it_stays(case: Case, row: Row, message: str) -> Iterator[Found]:
    """Yield what is wrong with a replica unless it stays where it runs, or that nobody can tell without the state."""
    if not _may_stay(case, row):
        yield Finding(str(row.replica), message)
    elif not case.known:
        yield Open(str(row.replica))


def _may_stay(case: Case, row: Row) -> bool:
    """Tell whether a replica is where it runs today, or may be, for all that is known; a place held free never is."""
    if not case.known:
        return not row.workload.holds
    return case.context.today.places.get(row.replica) == row.place and row.replica not in case.view.restarted
