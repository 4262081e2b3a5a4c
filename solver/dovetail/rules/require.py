"""`require` and `forbid`: on which nodes matched workloads must, or must not, run."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Part, RuleDefaults, Violations
from dovetail.rules.leaving import Leaving
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Workload


@dataclass(frozen=True, slots=True)
class _NodeChoice(RuleDefaults):
    """A rule on the nodes of `match.nodes`; the violation of a workload is its number of misplaced replicas."""

    kind: ClassVar[str] = ""
    unit: ClassVar[str] = "misplaced replicas"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    def closed_nodes(self, scope: Scope) -> frozenset[str]:
        """Return the nodes that matched workloads may not run on."""
        raise NotImplementedError

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the replicas of each matched workload on closed nodes."""
        closed = self.closed_nodes(scope)
        return {workload.id: part.misplaced(workload, closed) for workload in part.changing(scope.workloads)}

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the replicas of each matched workload on closed nodes."""
        closed = self.closed_nodes(scope)
        counts = {w.id: sum(view.places[r].node in closed for r in view.admitted(w)) for w in scope.workloads}
        return {workload: count for workload, count in counts.items() if count}

    def leaving(self, view: View, scope: Scope) -> Sequence[Leaving]:
        """Tell that all leave who are on closed nodes."""
        return [Leaving.each([workload], count) for workload, count in self.check(view, scope).items()]

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload: each is a subject of its own."""
        return workload.id

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish matched nodes from others."""
        return scope.nodes is not None and node.name in scope.nodes


@dataclass(frozen=True, slots=True)
class Require(_NodeChoice):
    """Matched workloads run on matched nodes only."""

    kind: ClassVar[str] = "require"

    def closed_nodes(self, scope: Scope) -> frozenset[str]:
        """Return all nodes but the matched ones."""
        matched = scope.nodes or frozenset()
        return frozenset(scope.spec.cluster.by_name) - matched


@dataclass(frozen=True, slots=True)
class Forbid(_NodeChoice):
    """Matched workloads never run on matched nodes."""

    kind: ClassVar[str] = "forbid"

    def closed_nodes(self, scope: Scope) -> frozenset[str]:
        """Return the matched nodes."""
        return scope.nodes or frozenset()
