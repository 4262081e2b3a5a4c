"""`colocate`: workloads with the same value of an attribute share one domain."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, Part, RuleDefaults, Violations
from dovetail.rules.claims import Claims, Together
from dovetail.rules.grouping import group_of, grouped
from dovetail.rules.guards import TogetherGuard
from dovetail.rules.levels import counts_at, inner, level_problem
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Spec, Workload


@dataclass(frozen=True, slots=True)
class Colocate(RuleDefaults):
    """Keep all replicas of the workloads of one value of `by` in one domain of a level.

    The violation of a value is `max(0, d - 1)`, d the number of domains that hold any of its matched replicas.
    Workloads without the label are not subjects, nor are replicas on nodes in no domain of the level.
    """

    kind: ClassVar[str] = "colocate"
    unit: ClassVar[str] = "extra domains"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True
    keeps_sets: ClassVar[bool] = True

    by: str
    at: str
    label: str | None = None

    @property
    def inner_level(self) -> str:
        """The level, where it lies inside nodes."""
        return inner(self.at)

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the number of domains of each value, less one."""
        return {
            value: self._extra(part, members, scope)
            for value, members in grouped(scope.workloads, self.by, self.label).items()
            if any(True for _ in part.changing(members))
        }

    def _extra(self, part: Part, members: Sequence[Workload], scope: Scope) -> Linear:
        held: dict[str, Linear] = {}
        for workload in members:
            for path, count in counts_at(part, workload, self.at, scope.nodes).items():
                held.setdefault(path, Linear()).add(count)
        domains = Linear(constant=-1)
        for count in held.values():
            low, high = part.model.range_of(count)
            if low > 0:
                domains.constant += 1
            elif high > 0:
                domains.add_term(part.model.at_least_one(count).variable)
        return part.model.positive_part(domains)

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the domains of each value."""
        found = {}
        for value, members in grouped(scope.workloads, self.by, self.label).items():
            domains = len(view.tenants_of_domains(self.at, members, scope.nodes))
            if domains > 1:
                found[value] = domains - 1
        return found

    def guard(self, scope: Scope) -> Guard | None:
        """Keep replicas out of other domains than the one where their value is."""
        value = {w.id: group_of(w, self.by, self.label) for w in scope.workloads}
        return TogetherGuard(scope, "node" if self.inner_level else self.at, value, gpus_alone=bool(self.inner_level))

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload that has a value: models count each by itself."""
        return None if group_of(workload, self.by, self.label) is None else workload.id

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain, where it is wider than a node."""
        domain = None if self.at == "node" or self.inner_level else node.domain(self.at)
        return domain, scope.nodes is None or node.name in scope.nodes

    def claims(self, scope: Scope) -> Claims:
        """Keep the workloads of each value together, unless some nodes do not count; inside nodes those with GPUs."""
        groups = self.sets(scope)
        if self.inner_level:
            groups = tuple(tuple(filter(_all_with_gpus, group)) for group in groups)
        together = Together("node" if self.inner_level else self.at, tuple(filter(None, groups)))
        return Claims(together=(together,)) if together.groups else Claims()

    def sets(self, scope: Scope) -> tuple[tuple[Workload, ...], ...]:
        """Return the workloads of each value, unless some nodes do not count."""
        groups = grouped(scope.workloads, self.by, self.label).values() if scope.nodes is None else ()
        return tuple(map(tuple, groups))

    def unsound(self, spec: Spec) -> str | None:
        """Refuse unknown levels and `by: label` without a label."""
        if (self.by == "label") != (self.label is not None):
            return "'label' names the label key where 'by' is 'label', and only there"
        return level_problem(spec, self.at, gpu=False, inside=True)


def _all_with_gpus(workload: Workload) -> bool:
    """Tell whether every replica of a workload has GPUs: others lie in no part of a node."""
    return all(role.request.gpu_count for role in workload.roles if role.replicas)
