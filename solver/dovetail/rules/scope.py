"""What a policy applies to: matched workloads and nodes, and what rules ask of these."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from dovetail.placement import Makes
from dovetail.spec import Current, Policy, Spec, Workload
from dovetail.spec.workload import MILLI

T = TypeVar("T")


@dataclass(frozen=True)
class Scope:
    """What a policy applies to: its matched workloads, and the names of its matched nodes (None: all).

    `current` is what runs today, which a Spec that is bounded as if nothing ran sets aside: instances that there are
    today do not go for that.
    """

    spec: Spec
    policy: str
    workloads: tuple[Workload, ...]
    nodes: frozenset[str] | None
    current: Current

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of the matched workloads."""
        return frozenset(workload.id for workload in self.workloads)

    @cached_property
    def running(self) -> frozenset[str]:
        """Ids of the workloads of which anything runs today, whether or not its place stands."""
        return frozenset(row.replica.workload for row in self.spec.current.replicas)

    @classmethod
    def of(cls, spec: Spec, policy: Policy) -> Scope:
        """Return what a policy applies to."""
        selector = policy.nodes
        nodes = None if selector is None else frozenset(n.name for n in spec.cluster.nodes if selector.selects(n))
        return cls(spec, policy.name, spec.matched(policy), nodes, spec.current)

    @cached_property
    def _known(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what a rule works out of the scope, worked out once per key."""
        if key not in self._known:
            self._known[key] = make()
        found: T = self._known[key]
        return found

    @cached_property
    def _others(self) -> dict[str, Scope]:
        return {self.policy: self}

    def beside(self, policy: Policy) -> Scope:
        """Return what another policy of the Spec applies to, for rules of which several policies act together."""
        if policy.name not in self._others:
            self._others[policy.name] = Scope.of(self.spec, policy)
        return self._others[policy.name]

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """What the nodes that are up have in all: `gpus` in milli-GPU, `cpu`, `memory` and resources by name."""
        found = self.spec.cluster.capacity
        return {name: MILLI * amount if name == "gpus" else amount for name, amount in found.items()}

    @cached_property
    def makes(self) -> Makes:
        """The cluster's nodes by make."""
        return Makes(self.spec.cluster.nodes, self.spec.accelerators)

    def hosts(self, workload: Workload) -> frozenset[str]:
        """Return the matched nodes that may newly take a replica of a workload, whatever room they have left."""
        hosts = self.makes.nodes_for(workload)
        return hosts if self.nodes is None else hosts & self.nodes

    @cached_property
    def _reached(self) -> dict[tuple[frozenset[str], str], tuple[str, ...]]:
        return {}

    def reach(self, workload: Workload, level: str) -> tuple[str, ...]:
        """Return the paths of the domains of a level that hold any of a workload's `hosts`, sorted."""
        key = self.makes.nodes_for(workload), level
        if key not in self._reached:
            by_name = self.spec.cluster.by_name
            paths = {by_name[name].domain(level) for name in self.hosts(workload)}
            self._reached[key] = tuple(sorted(path for path in paths if path is not None))
        return self._reached[key]


def scope_of(spec: Spec, policy: Policy) -> Scope:
    """Return what a policy applies to."""
    return Scope.of(spec, policy)


def scopes_of(spec: Spec) -> Mapping[str, Scope]:
    """Return the scopes of all policies by policy name."""
    return {policy.name: scope_of(spec, policy) for policy in spec.policies}
