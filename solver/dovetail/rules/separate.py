"""`separate`: replicas with different values of an attribute never share a domain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import (
    Guard,
    NodeTerms,
    Part,
    RuleDefaults,
    Scope,
    Violations,
    group_of,
    grouped,
    level_problem,
)
from dovetail.rules.claims import Apart, Claims
from dovetail.rules.guards import ApartGuard
from dovetail.spec import Node, Spec, Workload


@dataclass(frozen=True, slots=True)
class Separate(RuleDefaults):
    """Keep values of `by` apart at a level.

    The violation of a domain is `max(0, v - 1)`, v the number of distinct values of `by` among the matched
    replicas in it. Workloads without the label are not subjects.
    """

    kind: ClassVar[str] = "separate"
    unit: ClassVar[str] = "extra values in a domain"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True
    judges_node_alone: ClassVar[bool] = True

    by: str
    at: str
    label: str | None = None

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the number of values present in each domain, less one."""
        groups = list(grouped(scope.workloads, self.by, self.label).values())
        if len(groups) < 2:
            return {}
        found = {}
        for domain in part.domains(self.at):
            counts = [part.count(members, domain, scope.nodes) for members in groups]
            present = Linear(constant=-1)
            for count in counts:
                if part.model.range_of(count)[1] > 0:
                    present.add_term(part.model.at_least_one(count).variable)
            found[domain.path] = part.model.positive_part(present)
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the distinct values in each domain."""
        value = {w.id: group_of(w, self.by, self.label) for w in scope.workloads}
        domains = view.tenants_of_domains(self.at, scope.workloads, scope.nodes)
        counts = {path: len({value[w] for w in who if value[w] is not None}) for path, who in domains.items()}
        return {path: count - 1 for path, count in counts.items() if count > 1}

    def guard(self, scope: Scope) -> Guard | None:
        """Keep other values out of a domain that has one."""
        value = {w.id: group_of(w, self.by, self.label) for w in scope.workloads}
        return ApartGuard(scope, self.at, lambda w: value.get(w.id))

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish workloads by the value kept apart."""
        return group_of(workload, self.by, self.label)

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain, where it is wider than a node."""
        domain = None if self.at in ("gpu", "node") else node.domain(self.at)
        return domain, scope.nodes is None or node.name in scope.nodes

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Keep the values apart on a node, or on one GPU of it."""
        value = {w.id: group_of(w, self.by, self.label) for w in scope.workloads}
        sides = {workload: side for workload, side in value.items() if side is not None}
        return NodeTerms(sides, by_gpu=self.at == "gpu") if self.at in ("gpu", "node") else NodeTerms()

    def claims(self, scope: Scope) -> Claims:
        """Keep the values apart."""
        value = {w.id: group_of(w, self.by, self.label) for w in scope.workloads}
        return Claims(apart=Apart(self.at, {w: side for w, side in value.items() if side is not None}))

    def unsound(self, spec: Spec) -> str | None:
        """Refuse unknown levels and `by: label` without a label."""
        if (self.by == "label") != (self.label is not None):
            return "'label' names the label key where 'by' is 'label', and only there"
        return level_problem(spec, self.at, gpu=True)
