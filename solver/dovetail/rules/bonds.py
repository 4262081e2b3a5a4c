"""What replicas of a workload have in common wherever they are: a domain, or an accelerator (S2.4, S2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from dovetail.placement import Place
from dovetail.spec import Cluster, Node, ReplicaId, Role, Workload
from dovetail.spec.inside import mask_of

ACCELERATOR: Final = ""


class Bond(NamedTuple):
    """Replicas of a workload that lie in one domain of a level together, or have one `ACCELERATOR`.

    `which` tells apart what a workload has several of: its groups by position and number, its roles by name.
    """

    workload: str
    level: str
    which: str = ""


def bonds_of(workload: Workload, replica: ReplicaId) -> tuple[Bond, ...]:
    """Return the bonds of a replica, the widest first."""
    return (*wide_bonds(workload, workload.by_role[replica.role]), *_groups_of(workload, replica))


def wide_bonds(workload: Workload, role: Role) -> Iterator[Bond]:
    """Yield the bonds that all replicas of a role have: a required domain, and for gangs the accelerator."""
    if workload.topology is not None and workload.topology.within is not None:
        yield Bond(workload.id, workload.topology.within)
    if workload.atomic and workload.mix != "any" and role.request.gpu_count:
        yield Bond(workload.id, ACCELERATOR, role.name if workload.mix == "perRole" else "")


def _groups_of(workload: Workload, replica: ReplicaId) -> Iterator[Bond]:
    for position, group in enumerate(workload.topology.groups if workload.topology is not None else ()):
        if size := group.sizes.get(replica.role):
            yield Bond(workload.id, group.within, f"{position}:{replica.ordinal // size}")


def side_of(bond: Bond, cluster: Cluster, place: Place) -> str | None:
    """Return what all places of a bond have in common, None for a place in no single domain."""
    node = cluster.by_name[place.node]
    if bond.level == ACCELERATOR:
        return node.accelerator
    return node.around(bond.level, mask_of(place.gpus))


def sides_on(bond: Bond, node: Node) -> tuple[str, ...]:
    """Return the sides that places on a node may have."""
    if bond.level == ACCELERATOR:
        return (node.accelerator,) if node.accelerator else ()
    return node.spanned(bond.level, node.healthy)
