"""What runs today, by the places that still stand."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dovetail.placement.nested import every_nest
from dovetail.problem.shapes import Shape
from dovetail.rules import Context
from dovetail.spec import Node, ReplicaId, Workload

NO_GROUP = -1

Standing = Mapping[tuple[int, "Present"], tuple[ReplicaId, ...]]
"""Who runs where: by the index of a node and by place, in canonical order."""


class Present(NamedTuple):
    """Running replicas of a shape that share one place: the same node, GPU indices and MIG instance.

    Of a workload in groups they are of one group too, of the innermost one: who else of it is where decides whether
    they may stay (S2.5).
    """

    shape: int
    gpus: tuple[int, ...]
    instance: str = ""
    group: int = NO_GROUP


def standing_of(context: Context, shapes: Iterable[Shape], nodes: Iterable[Node]) -> Standing:
    """Return who runs where today, as far as places still stand."""
    shape_of = {(m.workload.id, m.role.name): shape.index for shape in shapes for m in shape.members}
    index_of = {node.name: index for index, node in enumerate(nodes)}
    found: dict[tuple[int, Present], list[ReplicaId]] = {}
    for replica, place in sorted(context.today.places.items()):
        group = _group_of(context.spec.by_id[replica.workload], replica)
        present = Present(shape_of[replica.workload, replica.role], place.gpus, place.instance, group)
        found.setdefault((index_of[place.node], present), []).append(replica)
    return {key: tuple(replicas) for key, replicas in found.items()}


def counted(standing: Standing) -> Mapping[int, Mapping[Present, int]]:
    """Return how many replicas there are, by the index of a node and by place."""
    found: defaultdict[int, Counter[Present]] = defaultdict(Counter)
    for (index, present), replicas in standing.items():
        found[index][present] = len(replicas)
    return dict(found)


def _group_of(workload: Workload, replica: ReplicaId) -> int:
    """Return which of the innermost groups of its role a replica is in."""
    nests = workload.topology.nests if workload.topology else ()
    if not nests:
        return NO_GROUP
    sizes = [nest.group.sizes[replica.role] for nest in every_nest(nests) if replica.role in nest.group.sizes]
    return replica.ordinal // min(sizes) if sizes else NO_GROUP
