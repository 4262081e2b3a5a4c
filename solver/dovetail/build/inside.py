"""What lies inside nodes, islands and sockets, and what workloads demand of it (S1.1, S2.5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

from dovetail.build.cursor import Cursor
from dovetail.placement.nested import every_nest
from dovetail.spec import Cluster, Node, Role, Topology, Workload
from dovetail.spec.inside import INNER_LEVELS, Parts, holds, mask_of


def read_inside(group: Cursor, gpus: int) -> tuple[Parts, Parts]:
    """Return the islands and the sockets of a group's nodes; faults go to the log.

    One island that holds all GPUs is what a node without a word of islands has, and means the same.
    """
    before = group.log.size
    found = {key: _parts(group, key, gpus) for key in ("islands", "sockets")}
    if group.log.size == before:
        for island, socket in product(found["islands"], found["sockets"]):
            both = mask_of(island) & mask_of(socket)
            if both not in (0, mask_of(island), mask_of(socket)):
                message = f"the island {list(island)} is partly at the socket {list(socket)}"
                group["islands"].fault("DT1427", message, "one holds the other, or they are apart", of_key=True)
                break
    islands, sockets = (parts if len(parts) > 1 else () for parts in found.values())
    return islands, sockets


def _parts(group: Cursor, key: str, gpus: int) -> Parts:
    if key not in group.value:
        return ()
    found = tuple(sorted(tuple(sorted(part)) for part in group.raw(key)))
    held = Counter(gpu for part in found for gpu in part)
    wrong = [gpu for gpu in sorted({*held, *range(gpus)}) if held[gpu] != 1 or gpu >= gpus]
    if wrong:
        gpu = wrong[0]
        what = f"GPU {gpu} is in none of them"
        if gpu >= gpus:
            what = f"there is no GPU {gpu}: the nodes have {gpus} GPUs"
        elif held[gpu]:
            what = f"GPU {gpu} is in {held[gpu]} of them"
        group[key].fault("DT1426", f"{what} ({key})", "list every GPU index once", of_key=True)
        return ()
    return found


def with_inside(here: Cursor, roles: tuple[Role, ...], topology: Topology | None) -> tuple[Role, ...]:
    """Return roles whose requests say within which parts of a node the GPUs of a replica lie."""
    if topology is None:
        return roles
    found = []
    for role in roles:
        demanded = _levels_of(topology, role)
        if demanded and not role.request.gpu_count:
            who = f"the role '{role.name}'" if role.name else "the workload"
            message = f"{who} asks for no GPU, and is to lie within one {demanded[0]}"
            here["topology"].fault("DT1527", message, "demand the level 'node' of it", of_key=True)
        preferred = topology.prefer in INNER_LEVELS
        if preferred and not role.request.gpu_count:
            message = f"'{topology.prefer}' is preferred for replicas without GPU"
            here["topology"]["prefer"].fault("DT1527", message, "prefer the level 'node'")
        across = topology.across and role.request.gpus > 1
        found.append(replace(role, request=replace(role.request, across=across, within=demanded)))
    return tuple(found)


def check_nests(here: Cursor, workload: Workload, cluster: Cluster) -> None:
    """Refuse groups with a minimum inside others where they are not inside on any node: islands may hold sockets."""
    topology = workload.topology
    for outer in every_nest(topology.nests) if topology is not None and topology.loose else ():
        for inner in outer.counted_inner if outer.group.within in INNER_LEVELS else ():
            levels = inner.group.within, outer.group.within
            node = next((node for node in cluster.nodes if not _lies_in(node, *levels)), None)
            if topology is not None and node is not None:
                message = (
                    f"on {node.name} one {levels[1]} does not hold a whole {levels[0]}, and its minimum counts these"
                )
                place = here["topology"].item("groups", topology.groups.index(inner.group))["within"]
                place.fault("DT1522", message, "leave out the minimum, or list the groups the other way round")


def _lies_in(node: Node, inner: str, outer: str) -> bool:
    """Tell whether each domain of a level inside a node lies in one of another level there."""
    around = node.parts(outer)
    return all(any(holds(mask, part) for mask in around) for part in node.parts(inner))


def _levels_of(topology: Topology, role: Role) -> tuple[str, ...]:
    """Return the levels inside a node of which one domain holds each replica of a role."""
    named = [topology.within, *(group.within for group in topology.groups if role.name in group.sizes)]
    return tuple(level for level in INNER_LEVELS if level in named)
