"""Groups inside groups that may be there in part: who of them is in order (S2.5)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from dovetail.placement.place import Place, Places
from dovetail.spec import Cluster, Nest, ReplicaId, Workload
from dovetail.spec.inside import mask_of


def path_of(cluster: Cluster, level: str, place: Place) -> str | None:
    """Return the one domain of a level that holds a place, None where none or several do."""
    return cluster.by_name[place.node].around(level, mask_of(place.gpus))


def in_order(cluster: Cluster, places: Places, workload: Workload, nest: Nest, number: int) -> frozenset[ReplicaId]:
    """Return who of a group is in order, nobody where the group is not.

    All that is there of it is in one domain of its level; of each kind of counted group inside as many are in order
    as it has at the least, and whoever is in none of these is there.
    """
    found: list[ReplicaId] = []
    for inner in nest.counted_inner:
        numbers = range(number * inner.number, (number + 1) * inner.number)
        whole = [own for k in numbers if (own := in_order(cluster, places, workload, inner, k))]
        if len(whole) < inner.least:
            return frozenset()
        found += [replica for own in whole for replica in own]
    counted = {role for inner in nest.counted_inner for role in inner.group.sizes}
    present = list(_present(places, workload, nest, number))
    plain = [replica for replica in present if replica.role not in counted]
    if len(plain) < sum(size for role, size in nest.group.sizes.items() if role not in counted):
        return frozenset()
    paths = {path_of(cluster, nest.group.within, places[replica]) for replica in present}
    return frozenset([*plain, *found]) if len(paths) == 1 and None not in paths else frozenset()


def _present(places: Places, workload: Workload, nest: Nest, number: int) -> Iterator[ReplicaId]:
    for role, size in nest.group.sizes.items():
        own = (ReplicaId(workload.id, role, i) for i in range(number * size, (number + 1) * size))
        yield from (replica for replica in own if replica in places)


def out_of_order(cluster: Cluster, places: Places, workload: Workload, nest: Nest) -> int:
    """Return how many replicas are in a group and not in order there, groups inside it not counted again."""
    groups = next((workload.by_role[role].replicas // size for role, size in nest.group.sizes.items()), 0)
    return sum(
        len(list(_present(places, workload, nest, number))) - len(in_order(cluster, places, workload, nest, number))
        for number in range(groups)
    )


def all_in_order(cluster: Cluster, places: Places, workload: Workload) -> bool:
    """Tell whether everybody of a workload who is in any group is in order there."""
    nests = workload.topology.nests if workload.topology else ()
    return not any(out_of_order(cluster, places, workload, nest) for nest in every_nest(nests))


def groups_missing(workload: Workload, replicas: Collection[ReplicaId]) -> int:
    """Return how many groups that must be there have none of some replicas of a workload, of whom there is any."""
    if not replicas:
        return 0
    return sum(max(0, workload.groups_owed(nest) - groups_there(nest, replicas)) for nest in workload.squads)


def groups_there(nest: Nest, replicas: Iterable[ReplicaId]) -> int:
    """Return of how many groups there is any of some replicas."""
    sizes = nest.group.sizes
    return len({replica.ordinal // sizes[replica.role] for replica in replicas if replica.role in sizes})


def every_nest(nests: tuple[Nest, ...]) -> Iterator[Nest]:
    """Yield groups and what is inside them, the outer ones first."""
    for nest in nests:
        yield nest
        yield from every_nest(nest.inner)
