"""Node classes: nodes that nothing tells apart (S4.6)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from dovetail.objectives.slowest import speed_of
from dovetail.rules import Context
from dovetail.spec import Node, Policy
from dovetail.spec.inside import ISLAND_LEVEL, SOCKET_LEVEL

POLICY = "policy "
"""What names an attribute that a policy's rule distinguishes: this, then the policy's name."""

RUNNING = "running today"
"""What names the attribute that tells busy nodes, and running workloads, apart."""


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
    busy = busy_nodes(context)
    groups: dict[Hashable, list[int]] = {}
    for position, node in enumerate(nodes):
        # A busy node's name alone tells it from all others: the rest of its key need not be worked out.
        key = node.name if node.name in busy else tuple(node_attributes(context, node, busy).values())
        groups.setdefault(key, []).append(position)
    return tuple(
        NodeClass(index, tuple(members), nodes[members[0]].name not in busy)
        for index, members in enumerate(groups.values())
    )


def busy_nodes(context: Context) -> frozenset[str]:
    """Return the names of the nodes that hold anything whose place stands."""
    return frozenset(place.node for place in context.today.places.values())


def binding(context: Context) -> tuple[Policy, ...]:
    """Return the policies that a plan is judged by; what is only reported need not be told apart."""
    return tuple(policy for policy in context.spec.policies if policy.enforcement.kind != "audit")


def node_attributes(context: Context, node: Node, busy: frozenset[str]) -> Mapping[str, Hashable]:
    """Return all that tells a node from others, by name: nodes of equal values are one class.

    Every node has the same names, in the same order: what it is, its health, what each binding policy's rule
    distinguishes, and what it holds today.
    """
    return {
        "accelerator": node.accelerator,
        "gpus": node.gpus,
        "islands": node.islands if ISLAND_LEVEL in context.spec.asked_inside else (),
        "sockets": node.sockets if SOCKET_LEVEL in context.spec.asked_inside else (),
        "cpu": node.cpu,
        "memory": node.memory,
        "resources": tuple(sorted(node.resources.items())),
        "mechanism": (node.mechanism, node.sharing),
        "price": (node.price, node.gpu_price),
        "taints": node.taints,
        "MIG layout": _layouts(context, node),
        "speed": speed_of(context.spec, node) if "slowest" in context.spec.objective.tiers else None,
        "health: cordoned": node.cordoned,
        "health: down": node.down,
        "health: failed GPUs": node.failed_gpus,
        **{POLICY + p.name: p.rule.node_key(node, context.scopes[p.name]) for p in binding(context)},
        "domains of gangs": tuple(node.domain(level) for level in context.spec.told_levels),
        RUNNING: node.name if node.name in busy else None,
    }


def _layouts(context: Context, node: Node) -> Hashable:
    """Return today's layouts of a node's GPUs in MIG mode."""
    layouts = context.today.layouts
    if not layouts:
        return ()
    return tuple((i, found) for i in range(node.gpus) if (found := layouts.get(f"{node.name}/{i}")) is not None)
