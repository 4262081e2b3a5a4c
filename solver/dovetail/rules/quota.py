"""`quota`: what the admitted replicas of a group may request in all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, Part, RuleDefaults, Scope, Violations, group_of, grouped
from dovetail.rules.guards import TotalGuard
from dovetail.spec import Node, Request, Role, Spec, Workload


@dataclass(frozen=True, slots=True)
class Quota(RuleDefaults):
    """Limit the requested amounts per group of workloads.

    `limits` maps `gpus` (milli-GPU), `cpu` (milli-cores), `memory` (MiB) or a resource's name to the most a group
    may request. The violation of a subject `group/resource` is the amount above the limit.
    """

    kind: ClassVar[str] = "quota"
    unit: ClassVar[str] = "amount above the limit"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = False
    judges_node_alone: ClassVar[bool] = False

    limits: tuple[tuple[str, int], ...]
    per: str = "all"
    label: str | None = None

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return each group's requested amount above each limit."""
        return {
            f"{group}/{resource}": part.model.positive_part(part.requested(members, resource).plus(-limit))
            for group, members in grouped(scope.workloads, self.per, self.label).items()
            if any(True for _ in part.changing(members))
            for resource, limit in self.limits
        }

    def check(self, view: View, scope: Scope) -> Violations:
        """Add up what each group's admitted replicas request."""
        found = {}
        for group, members in grouped(scope.workloads, self.per, self.label).items():
            counts = [(role.request, view.count(w, role)) for w in members for role in w.roles]
            for resource, limit in self.limits:
                above = sum(count * requested_of(request, resource) for request, count in counts) - limit
                if above > 0:
                    found[f"{group}/{resource}"] = above
        return found

    def guard(self, scope: Scope) -> Guard | None:
        """Keep each group's requested amounts within the limits."""
        group = {w.id: group_of(w, self.per, self.label) for w in scope.workloads}

        def amounts(workload: Workload, role: Role) -> Mapping[Hashable, int]:
            value = group.get(workload.id)
            if value is None:
                return {}
            return {(value, name): requested_of(role.request, name) for name, _ in self.limits}

        limits = dict(self.limits)
        return TotalGuard(amounts, lambda key: limits[key[1]] if isinstance(key, tuple) else 0)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish workloads by their quota group."""
        return group_of(workload, self.per, self.label)

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish no nodes: a quota counts what is requested, wherever it lands."""
        return None

    def unsound(self, spec: Spec) -> str | None:
        """Refuse a label key without `per: label`, and the reverse."""
        if (self.per == "label") != (self.label is not None):
            return "'label' names the label key where 'per' is 'label', and only there"
        return None


def requested_of(request: Request, resource: str) -> int:
    """Return how much of a resource one request asks for, in the units of `Quota.limits`."""
    if resource == "gpus":
        return request.gpu_milli
    if resource in ("cpu", "memory"):
        return int(getattr(request, resource))
    return request.resources.get(resource, 0)
