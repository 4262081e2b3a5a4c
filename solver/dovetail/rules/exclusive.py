"""`exclusive`: a domain that holds a matched replica holds no other."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, NodeTerms, Part, RuleDefaults, Violations
from dovetail.rules.claims import Apart, Claims
from dovetail.rules.guards import ApartGuard
from dovetail.rules.leaving import Leaving
from dovetail.rules.levels import inner, level_problem, reached
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Spec, Workload
from dovetail.spec.cluster import GPU_LEVEL
from dovetail.spec.inside import INNER_LEVELS


@dataclass(frozen=True, slots=True)
class Exclusive(RuleDefaults):
    """Keep everybody else out of the domains that matched replicas use.

    The violation of a domain with at least one matched replica is the number of unmatched replicas in it.
    """

    kind: ClassVar[str] = "exclusive"
    unit: ClassVar[str] = "foreign replicas"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    at: str

    @property
    def inner_level(self) -> str:
        """The level, where it lies inside nodes."""
        return inner(self.at)

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return, per domain, a variable that is at least the foreign replicas where a matched one is present."""
        others = _others(scope)
        found = {}
        if self.inner_level:
            for path, (own, foreign) in reached(part, [scope.workloads, others], self.at).items():
                if part.model.range_of(own)[1] > 0 and part.model.range_of(foreign)[1] > 0:
                    found[path] = part.model.positive_part_if(foreign, own)
            return found
        for domain in part.domains(self.at):
            own = part.count(scope.workloads, domain, scope.nodes)
            foreign = part.count(others, domain, scope.nodes)
            if part.model.range_of(own)[1] > 0 and part.model.range_of(foreign)[1] > 0:
                found[domain.path] = part.model.positive_part_if(foreign, own)
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the unmatched replicas in the domains that hold a matched one."""
        own = view.tenants_of_domains(self.at, scope.workloads, scope.nodes)
        foreign = view.tenants_of_domains(self.at, _others(scope), scope.nodes)
        return {path: foreign[path].total() for path in own if path in foreign}

    def leaving(self, view: View, scope: Scope) -> Sequence[Leaving]:
        """Tell that of each domain either side leaves; nothing within nodes."""
        if self.inner_level or self.at == GPU_LEVEL:
            return ()
        own = view.tenants_of_domains(self.at, scope.workloads, scope.nodes)
        foreign = view.tenants_of_domains(self.at, _others(scope), scope.nodes)
        return [
            Leaving.each((*own[path], *foreign[path]), min(own[path].total(), foreign[path].total()))
            for path in own
            if path in foreign
        ]

    def guard(self, scope: Scope) -> Guard | None:
        """Keep matched and unmatched replicas apart."""
        matched = scope.ids
        if self.inner_level:  # apart by nodes to begin with
            return ApartGuard(scope, "node", lambda w: w.id in matched, exact=False, gpus_alone=True)
        return ApartGuard(scope, self.at, lambda w: w.id in matched)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish matched workloads from others, which the engine does for every rule, inside nodes each."""
        return workload.id if self.inner_level else None

    def other_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish each workload where the rule tells where replicas are inside nodes."""
        return workload.id if self.inner_level else None

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain, where it is wider than a node."""
        domain = None if self.at in ("gpu", "node", *INNER_LEVELS) else node.domain(self.at)
        return domain, scope.nodes is None or node.name in scope.nodes

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Keep matched and unmatched replicas apart on a node, or on one GPU of it."""
        sides = {workload.id: workload.id in scope.ids for workload in scope.spec.workloads}
        return NodeTerms(sides, by_gpu=self.at == "gpu") if self.at in ("gpu", "node") else NodeTerms()

    def claims(self, scope: Scope) -> Claims:
        """Keep matched and unmatched replicas apart."""
        return (
            Claims()
            if self.inner_level
            else Claims(apart=Apart(self.at, {w.id: w.id in scope.ids for w in scope.spec.workloads}))
        )

    def unsound(self, spec: Spec) -> str | None:
        """Refuse unknown levels."""
        return level_problem(spec, self.at, gpu=True, inside=True)


def _others(scope: Scope) -> tuple[Workload, ...]:
    matched = scope.ids
    return tuple(workload for workload in scope.spec.workloads if workload.id not in matched)
