"""Groups under a quota, and cohorts of them: what is a group's own, what it may borrow, what it lends.

The words are those of Kueue's ClusterQueues (nominalQuota, borrowingLimit, lendingLimit, cohort). Of a group with its
own amount n, use u and lent amount l, what it takes from its cohort is max(0, u - k), k being what it keeps for
itself: n - l where it lends whatever it does not use, n where it lends only what its workloads do not ask for. A
cohort is in order where all groups together take no more than they put in. `rules.cohort_trees` has trees of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dovetail.spec import Request, Role, Workload
from dovetail.spec.workload import MILLI

DOMINANT = "dominantShare"
"""A name among amounts: thousandths of everything that the cluster has, resource by resource."""

Amounts = tuple[tuple[str, int], ...]
Lends = Literal["idle", "unused"]


def requested_of(request: Request, resource: str) -> int:
    """Return how much of a resource one request asks for: milli-GPU, milli-cores, MiB, or a resource's own count."""
    if resource == "gpus":
        return request.gpu_milli
    if resource in ("cpu", "memory"):
        return int(getattr(request, resource))
    return request.resources.get(resource, 0)


def spelt_out(amounts: Amounts, capacity: Mapping[str, int]) -> dict[str, int]:
    """Return amounts by resource; a dominant share is that part of every resource, rounded down."""
    found = {name: amount for name, amount in amounts if name != DOMINANT}
    share = dict(amounts).get(DOMINANT)
    if share is not None:
        for name, total in capacity.items():
            part = share * total // MILLI
            found[name] = min(part, found.get(name, part))
    return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Queue:
    """A group under a quota; amounts by resource.

    Parameters
    ----------
    most : what it may hold at the most, borrowed amounts included.
    kept : what it may hold without taking anything from its cohort; resources without an entry are free.
    lent : what it puts into its cohort.
    """

    policy: str
    group: str
    members: Sequence[Workload]
    most: Mapping[str, int]
    kept: Mapping[str, int] = field(default_factory=dict)
    lent: Mapping[str, int] = field(default_factory=dict)


def asked_by(members: Sequence[Workload], resource: str) -> int:
    """Return how much of a resource all replicas of some workloads ask for, admitted or not."""
    return sum(role.replicas * requested_of(role.request, resource) for w in members for role in w.roles)


def lent_by(
    members: Sequence[Workload], own: Mapping[str, int], lending: Mapping[str, int], lends: Lends
) -> Mapping[str, int]:
    """Return what a group with its own amounts puts into its cohort, within its lending limits."""
    found = {}
    for name, amount in own.items():
        idle = amount if lends == "unused" else max(0, amount - asked_by(members, name))
        found[name] = min(idle, lending.get(name, idle))
    return found


def keyed(queues: Sequence[Queue]) -> dict[str, list[int]]:
    """Return, per workload id, the positions of the groups that it is in."""
    found: dict[str, list[int]] = {}
    for position, queue in enumerate(queues):
        for workload in queue.members:
            found.setdefault(workload.id, []).append(position)
    return found


def counted(
    workload: Workload, role: Role, shares: Mapping[str, Sequence[int]], queues: Sequence[Queue]
) -> dict[Hashable, int]:
    """Return what a replica counts towards in the limits of its groups, by group and resource."""
    positions = shares.get(workload.id, ())
    return {(p, name): requested_of(role.request, name) for p in positions for name in queues[p].most}
