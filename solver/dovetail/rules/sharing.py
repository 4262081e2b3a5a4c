"""`sharing`: how many replicas may be on one GPU."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, NodeTerms, Part, RuleDefaults, Violations
from dovetail.rules.guards import ClientsGuard
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Workload
from dovetail.spec.cluster import GPU_LEVEL


@dataclass(frozen=True, slots=True)
class Sharing(RuleDefaults):
    """Keep the clients of each GPU few; a client is a replica, on an instance of the GPU or not.

    The violation of a GPU is `max(0, n - maxClients)`, n the number of matched replicas on it. One on whole GPUs
    shares them with nobody, so it never adds to a violation.
    """

    kind: ClassVar[str] = "sharing"
    unit: ClassVar[str] = "extra replicas on a GPU"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    max_clients: int

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return, per GPU that could hold too many, how many are too many."""
        found = {}
        for domain in part.domains(GPU_LEVEL) if _sharing(scope) else ():
            clients = part.count(scope.workloads, domain, scope.nodes)
            if part.model.range_of(clients)[1] > self.max_clients:
                found[domain.path] = part.model.positive_part(clients.plus(-self.max_clients))
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the matched replicas on each GPU."""
        domains = view.tenants_of_domains(GPU_LEVEL, scope.workloads, scope.nodes)
        counts = {path: who.total() for path, who in domains.items()}
        return {path: count - self.max_clients for path, count in counts.items() if count > self.max_clients}

    def guard(self, scope: Scope) -> Guard | None:
        """Keep matched replicas off a GPU that has as many as it may."""
        return ClientsGuard(scope, self.max_clients)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish no matched workloads: each replica is one client."""
        return None

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish matched nodes from others."""
        return scope.nodes is None or node.name in scope.nodes

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Let a node hold no more of a workload that shares GPUs than the largest one's GPUs have clients."""
        nodes = (n for n in scope.spec.cluster.nodes if scope.nodes is None or n.name in scope.nodes)
        most = self.max_clients * max((len(node.healthy_gpus()) for node in nodes), default=0)
        alike = (w for w in _sharing(scope) if all(role.request.partial for role in w.roles))
        return NodeTerms(most={workload.id: most for workload in alike}, all=False)


def _sharing(scope: Scope) -> tuple[Workload, ...]:
    """Return the matched workloads of which any replica takes part of a GPU only."""

    def find() -> tuple[Workload, ...]:
        return tuple(w for w in scope.workloads if any(role.request.partial for role in w.roles))

    return scope.once("sharing", find)
