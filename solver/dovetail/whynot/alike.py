"""Nodes that nothing tells apart for what a workload would be there, so that one of them stands for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from dovetail.placement import Room, View
from dovetail.rules import Context
from dovetail.spec import Node, Workload

_NAMES: Final = frozenset({"name", "domains", "mig_layout"})
"""Fields of a node that do not say what it is: which one, where, and what is told of its GPUs today."""


class Alike:
    """Compares nodes as other places for the replicas of a workload that are on one node."""

    def __init__(self, view: View, context: Context, workload: Workload, here: Node) -> None:
        self._view, self._context, self._workload, self._here = view, context, workload, here
        self._whose = self._replicas()
        self._scopes = {
            policy.name: context.scopes[policy.name]
            for policy in context.spec.policies
            if policy.enforcement.kind != "audit"
        }
        self._closing = {
            policy.name: policy.rule.closed_nodes(self._scopes[policy.name])
            for policy in context.spec.policies
            if policy.name in self._scopes and workload.id in self._scopes[policy.name].ids
        }
        today = context.today.places.items()
        self._home = Counter(place.node for replica, place in today if replica.workload == workload.id)

    def distinct(self, nodes: Sequence[Node]) -> list[Node]:
        """Return one of the nodes that look alike, those first that differ by more than what is around them."""
        every: dict[tuple[Hashable, Hashable], Node] = {}
        for node in nodes:
            room = self._view.rooms.get(node.name) or Room(node, self._context.spec.accelerators)
            every.setdefault((self._rough(node, room), self._fine(node, room)), node)
        first: dict[Hashable, Node] = {}
        for (rough, _), node in every.items():
            first.setdefault(rough, node)
        leading = {node.name for node in first.values()}
        return [*first.values(), *(node for node in every.values() if node.name not in leading)]

    def _rough(self, node: Node, room: Room) -> Hashable:
        """Return what mostly makes a difference: the make, the price, the GPUs that are free, and how near it is."""
        free = _several(zip(room.compute, room.tenants, strict=True))
        near = tuple(node.domains.get(level) == path for level, path in self._here.domains.items())
        price = node.price, node.gpu_price, node.name in self._view.rooms
        own = self._workload.id in {name for name, _ in self._whose.get(("node", node.name), ())}
        return node.accelerator, price, free, near, own

    def _fine(self, node: Node, room: Room) -> Hashable:
        """Return all else that rules and tiers may see of a node, of what is there, and of what is around it."""
        gpus = [self._gpu(room, index) for index in range(node.gpus)]
        ordered = node.islands or node.sockets or node.failed_gpus
        left = room.cpu, room.memory, _frozen(room.resources), tuple(gpus) if ordered else _several(gpus)
        policies = tuple(
            (scope.nodes is None or node.name in scope.nodes, node.name in self._closing.get(name, ()))
            for name, scope in self._scopes.items()
        )
        around = tuple(self._whose.get((level, path), frozenset()) for level, path in _paths(node))
        what = tuple(_frozen(getattr(node, spot.name)) for spot in fields(node) if spot.name not in _NAMES)
        return what, left, policies, around, self._home[node.name]

    def _gpu(self, room: Room, index: int) -> Hashable:
        """Return what a GPU has left, and how it is cut and shared, today and by the plan."""
        gpu, today = f"{room.node.name}/{index}", self._context.today
        modes = self._view.shared.get(gpu), self._view.layouts.get(gpu), today.layouts.get(gpu)
        used = _several(room.instances.get(index, ()))
        return room.compute[index], room.vram[index], room.tenants[index], used, modes

    def _replicas(self) -> Mapping[tuple[str, str], frozenset[tuple[str, int]]]:
        """Return the replicas by workload in each domain: all where policies may look at them, else the own ones."""
        by_name = self._context.spec.cluster.by_name
        all_of_them = bool(self._context.spec.policies)
        per_node: dict[str, Counter[str]] = {}
        for replica, place in (*self._view.places.items(), *self._view.placeholders):
            if all_of_them or replica.workload == self._workload.id:
                per_node.setdefault(place.node, Counter())[replica.workload] += 1
        found: dict[tuple[str, str], Counter[str]] = {}
        for name, count in per_node.items():
            for level in _paths(by_name[name]):
                found.setdefault(level, Counter()).update(count)
        return {at: frozenset(count.items()) for at, count in found.items()}


def _paths(node: Node) -> Iterator[tuple[str, str]]:
    yield from node.domains.items()
    yield "node", node.name


def _several(values: Any) -> Hashable:
    """Return values whose order means nothing."""
    return frozenset(Counter(values).items())


def _frozen(value: Any) -> Hashable:
    return frozenset(value.items()) if isinstance(value, Mapping) else value
