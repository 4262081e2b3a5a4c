"""Running accounts of rules, for constructions that add one replica at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from dovetail.rules.base import Scope
from dovetail.spec import Node, Role, Workload
from dovetail.spec.cluster import GPU_LEVEL


def domain_of(level: str, scope: Scope, node: Node, gpu: int | None) -> str | None:
    """Return the domain that a place lies in, None where the level does not concern it (a GPU nobody can share)."""
    if scope.nodes is not None and node.name not in scope.nodes:
        return None
    if level == GPU_LEVEL:
        return None if gpu is None else f"{node.name}/{gpu}"
    return node.domain(level)


@dataclass(slots=True)
class NodeGuard:
    """Blocks nodes for matched workloads."""

    workloads: frozenset[str]
    nodes: frozenset[str]

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block matched workloads on the named nodes."""
        return node.name in self.nodes and workload.id in self.workloads

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Nothing to count."""


@dataclass(slots=True)
class ApartGuard:
    """Blocks a domain for a key that is not there while another key is, where the two may not meet.

    `key` gives a workload's key in a domain, None for no subject; `conflict` tells whether two keys may not meet.
    """

    scope: Scope
    level: str
    key: Callable[[Workload], Hashable | None]
    conflict: Callable[[Hashable, Hashable], bool]
    held: defaultdict[str, Counter[Hashable]] = field(default_factory=lambda: defaultdict(Counter))

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where a conflicting key is present."""
        path, key = domain_of(self.level, self.scope, node, gpu), self.key(workload)
        if path is None or key is None:
            return False
        return any(count > 0 and self.conflict(key, other) for other, count in self.held[path].items())

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by domain and key."""
        path, key = domain_of(self.level, self.scope, node, gpu), self.key(workload)
        if path is not None and key is not None:
            self.held[path][key] += count


@dataclass(slots=True)
class CapGuard:
    """Blocks what would take an amount above its limit.

    `amounts` gives, for one replica on a node, the subjects it counts towards and by how much.
    """

    amounts: Callable[[Workload, Role, Node], Mapping[Hashable, int]]
    limit: Callable[[Hashable], int]
    used: Counter[Hashable] = field(default_factory=Counter)

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where any subject would exceed its limit."""
        amounts = self.amounts(workload, role, node)
        return any(amount and self.used[key] + amount > self.limit(key) for key, amount in amounts.items())

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count amounts in."""
        for key, amount in self.amounts(workload, role, node).items():
            self.used[key] += count * amount


@dataclass(slots=True)
class SkewGuard:
    """Blocks a workload's domain that is already `skew` fuller than its emptiest eligible one."""

    scope: Scope
    level: str
    skew: int
    eligible: Mapping[str, tuple[str, ...]]
    held: Counter[tuple[str, str]] = field(default_factory=Counter)

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where one more would widen the difference beyond the limit."""
        path = domain_of(self.level, self.scope, node, None)
        domains = self.eligible.get(workload.id)
        if path is None or not domains:
            return False
        least = min(self.held[workload.id, domain] for domain in domains)
        return self.held[workload.id, path] + 1 - least > self.skew

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas by workload and domain."""
        path = domain_of(self.level, self.scope, node, None)
        if path is not None and workload.id in self.eligible:
            self.held[workload.id, path] += count
