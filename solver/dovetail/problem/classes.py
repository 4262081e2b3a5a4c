"""Node classes: nodes that nothing tells apart (S4.6)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from dovetail.rules import Context
from dovetail.spec import Node


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Interchangeable nodes, by their position in the Problem's node list, ascending.

    `empty` nodes hold nothing today; only these may swap their contents freely.
    """

    index: int
    nodes: tuple[int, ...]
    empty: bool


def classes_of(context: Context, nodes: tuple[Node, ...]) -> tuple[NodeClass, ...]:
    """Group nodes into classes, in the order of their first member; a node with running replicas is its own."""
    busy = {place.node for place in context.today.places.values()}
    groups: dict[Hashable, list[int]] = {}
    for position, node in enumerate(nodes):
        key: Hashable = node.name if node.name in busy else _key(context, node)
        groups.setdefault(key, []).append(position)
    return tuple(
        NodeClass(index, tuple(members), nodes[members[0]].name not in busy)
        for index, members in enumerate(groups.values())
    )


def _key(context: Context, node: Node) -> Hashable:
    return (
        node.accelerator,
        node.gpus,
        node.cpu,
        node.memory,
        tuple(sorted(node.resources.items())),
        node.mechanism,
        node.price,
        node.gpu_price,
        node.taints,
        node.cordoned,
        node.down,
        node.failed_gpus,
        tuple(p.rule.node_key(node, context.scopes[p.name]) for p in context.spec.policies),
    )
