"""`separate`: replicas with different values of an attribute never share a domain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, NodeTerms, Part, RuleDefaults, Violations
from dovetail.rules.claims import Apart, Claims
from dovetail.rules.grouping import group_of, grouped
from dovetail.rules.guards import ApartGuard
from dovetail.rules.leaving import Leaving
from dovetail.rules.levels import inner, level_problem, reached
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Role, Spec, Workload
from dovetail.spec.cluster import GPU_LEVEL
from dovetail.spec.inside import INNER_LEVELS


@dataclass(frozen=True, slots=True)
class Separate(RuleDefaults):
    """Keep values of `by` apart at a level.

    The violation of a domain is `max(0, v - 1)`, v the number of distinct values of `by` among the matched
    replicas in it. Workloads without the label are not subjects, nor are replicas on MIG instances with
    `unless: mig`: the hardware keeps them apart (S4.1).
    """

    kind: ClassVar[str] = "separate"
    unit: ClassVar[str] = "extra values in a domain"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    by: str
    at: str
    label: str | None = None
    unless: str | None = None

    @property
    def inner_level(self) -> str:
        """The level, where it lies inside nodes."""
        return inner(self.at)

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the number of values present in each domain, less one."""
        groups = list(grouped(scope.workloads, self.by, self.label).values())
        if len(groups) < 2:
            return {}
        if self.inner_level:
            return {path: _extra(part, counts) for path, counts in reached(part, groups, self.at).items()}
        found = {}
        for domain in part.domains(self.at):
            seen = domain._replace(uncut=self.unless == "mig")
            counts = [part.count(members, seen, scope.nodes) for members in groups]
            found[domain.path] = _extra(part, counts)
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the distinct values in each domain."""
        value = self._values(scope)
        domains = view.tenants_of_domains(self.at, scope.workloads, scope.nodes, uncut=self.unless == "mig")
        counts = {path: len({value[w] for w in who if w in value}) for path, who in domains.items()}
        return {path: count - 1 for path, count in counts.items() if count > 1}

    def leaving(self, view: View, scope: Scope) -> Sequence[Leaving]:
        """Tell that of each domain's values all but one leave, those of the fewest replicas; nothing within nodes."""
        if self.inner_level or self.at == GPU_LEVEL:
            return ()
        value, found = self._values(scope), []
        for who in view.tenants_of_domains(self.at, scope.workloads, scope.nodes).values():
            sizes = Counter[str]()
            for workload, count in who.items():
                if workload in value:
                    sizes[value[workload]] += count
            if len(sizes) > 1:
                found.append(Leaving(frozenset(who) & value.keys(), tuple(sorted(sizes.values(), reverse=True)[1:])))
        return found

    def guard(self, scope: Scope) -> Guard | None:
        """Keep other values out of a domain that has one, on instances too where a share may be on either."""
        instances_only = {w.id for w in scope.workloads if self.unless and all(map(_on_instances, w.roles))}
        value = {w: value for w, value in self._values(scope).items() if w not in instances_only}
        if self.inner_level:  # apart by nodes to begin with
            return ApartGuard(scope, "node", lambda w: value.get(w.id), exact=False, gpus_alone=True)
        return ApartGuard(scope, self.at, lambda w: value.get(w.id), exact=self.unless is None)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish workloads by the value kept apart, each by itself where that is told inside nodes."""
        value = group_of(workload, self.by, self.label)
        return workload.id if self.inner_level and value is not None else value

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain, where it is wider than a node."""
        domain = None if self.at in ("gpu", "node", *INNER_LEVELS) else node.domain(self.at)
        return domain, scope.nodes is None or node.name in scope.nodes

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Keep the values apart on a node, or on one GPU of it."""
        sides = self._values(scope)
        if self.unless:
            sides = {w.id: sides[w.id] for w in scope.workloads if w.id in sides and not _may_use_mig(w)}
        return NodeTerms(sides, by_gpu=self.at == "gpu") if self.at in ("gpu", "node") else NodeTerms()

    def claims(self, scope: Scope) -> Claims:
        """Keep the values apart."""
        return Claims() if self.unless or self.inner_level else Claims(apart=Apart(self.at, self._values(scope)))

    def unsound(self, spec: Spec) -> str | None:
        """Refuse unknown levels and `by: label` without a label."""
        if (self.by == "label") != (self.label is not None):
            return "'label' names the label key where 'by' is 'label', and only there"
        if self.unless and self.at != GPU_LEVEL:
            return "'unless: mig' needs 'at: gpu': instances keep apart what shares a GPU, not what shares a node"
        return level_problem(spec, self.at, gpu=True, inside=True)

    def _values(self, scope: Scope) -> dict[str, str]:
        """Return the value of each matched workload that has one."""
        values = ((workload.id, group_of(workload, self.by, self.label)) for workload in scope.workloads)
        return {workload: value for workload, value in values if value is not None}


def _extra(part: Part, counts: Iterable[Linear]) -> Linear:
    """Return how many values beyond one are present in a domain."""
    present = Linear(constant=-1)
    for count in counts:
        if part.model.range_of(count)[1] > 0:
            present.add_term(part.model.at_least_one(count).variable)
    return part.model.positive_part(present)


def _on_instances(role: Role) -> bool:
    """Tell whether the replicas of a role, where they take part of a GPU, are on MIG instances wherever they are."""
    share = role.request.share
    return share is None or share.modes == ("mig",)


def _may_use_mig(workload: Workload) -> bool:
    return any(role.request.may_use_mig for role in workload.roles)
