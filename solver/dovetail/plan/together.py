"""Whether it is certain that a workload finds no room where it has to be together (S2.5), on a finished placement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.plan.space import Space, Wanting
from dovetail.spec import Nest, Node, Workload
from dovetail.spec.inside import INNER_LEVELS, Mask

Room = Mapping[str, Mapping[str, int]]  # per role, how many more replicas each node has room for, nothing else added


def too_few_together(space: Space, workload: Workload, missing: Sequence[Wanting], needed: int) -> bool:
    """Tell whether no domain that the workload demands has room for `needed` more replicas in whole groups.

    Where anything of it is admitted already, that decides where it may grow: in the domain that it is in. Nothing is
    claimed then of one that comes in groups, or that is within an island or a socket.
    """
    topology = workload.topology
    if topology is None or not topology.binds:
        return False
    held = {space.view.places[replica].node for replica in space.view.admitted(workload)}
    if held and (topology.groups or topology.within in INNER_LEVELS):
        return False
    if topology.within in INNER_LEVELS:
        return all(
            _short_inside(space, node, mask, missing, needed) for node, mask in _masks(missing, topology.within)
        )
    room = {wanting.role.name: space.by_node(wanting) for wanting in missing}
    nodes = {name: space.view.spec.cluster.by_name[name] for found in room.values() for name in found}
    areas = _by_domain(nodes.values(), topology.within) if topology.within else [list(nodes.values())]
    if held and topology.within:
        known = space.view.spec.cluster.by_name
        home = {known[name].domain(topology.within) for name in held}
        areas = [area for area in areas if area[0].domain(topology.within) in home]
    wanted = {wanting.role.name: wanting.replicas for wanting in missing}
    return all(_most(area, room, topology.nests, wanted) < needed for area in areas)


def _masks(missing: Sequence[Wanting], level: str) -> Iterator[tuple[Node, Mask]]:
    """Yield the islands, or sockets, of the nodes that any of some roles may use."""
    nodes = {node.name: node for wanting in missing for node in wanting.nodes}
    return ((node, mask) for node in nodes.values() for mask in node.parts(level))


def _short_inside(space: Space, node: Node, mask: Mask, missing: Sequence[Wanting], needed: int) -> bool:
    """Tell whether fewer replicas fit on some GPUs of a node, each role counted by itself."""
    fits = (space.inside(wanting, node, mask) for wanting in missing)
    return sum(min(fit, wanting.replicas) for fit, wanting in zip(fits, missing, strict=True)) < needed


def _most(nodes: Sequence[Node], room: Room, nests: Sequence[Nest], wanted: Mapping[str, int]) -> int:
    """Return how many replicas fit on some nodes in whole groups, or more: each role is counted by itself."""
    total, grouped = 0, set[str]()
    for nest in nests:
        grouped |= nest.group.sizes.keys()
        number = _whole(nodes, room, nest)
        total += sum(min(number * size, wanted.get(role, 0)) for role, size in nest.group.sizes.items())
    return total + sum(min(_sum(nodes, room[role]), wanted[role]) for role in room if role not in grouped)


def _whole(nodes: Sequence[Node], room: Room, nest: Nest) -> int:
    """Return how many groups fit, each within one domain of its level and with what it has at the least."""
    return sum(_in_domain(area, room, nest) for area in _by_domain(nodes, nest.group.within))


def _in_domain(nodes: Sequence[Node], room: Room, nest: Nest) -> int:
    numbers = [_whole(nodes, room, inner) // inner.least for inner in nest.inner if inner.least]
    fewest = {role: nest.fewest(role) for role in nest.group.sizes if role in room}
    numbers += [_sum(nodes, room[role]) // size for role, size in fewest.items() if size]
    return min(numbers, default=0)


def _sum(nodes: Iterable[Node], room: Mapping[str, int]) -> int:
    return sum(room.get(node.name, 0) for node in nodes)


def _by_domain(nodes: Iterable[Node], level: str) -> list[list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        path = node.name if level in INNER_LEVELS else node.domain(level)  # of whole nodes: no fewer than inside
        if path is not None:
            found.setdefault(path, []).append(node)
    return list(found.values())
