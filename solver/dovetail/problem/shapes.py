"""Shapes: replicas that nothing tells apart (S4.6)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.rules import Context
from dovetail.spec import Request, Role, Workload


@dataclass(frozen=True, slots=True)
class Member:
    """A role whose replicas belong to a shape."""

    workload: Workload
    role: Role


@dataclass(frozen=True)
class Shape:
    """Interchangeable replicas: `demand` of them, over the members in canonical order."""

    index: int
    members: tuple[Member, ...]
    demand: int

    @cached_property
    def workload(self) -> Workload:
        """A workload that stands for all members."""
        return self.members[0].workload

    @cached_property
    def role(self) -> Role:
        """A role that stands for all members."""
        return self.members[0].role

    @cached_property
    def request(self) -> Request:
        """What each replica asks for."""
        return self.role.request


def shapes_of(context: Context) -> tuple[Shape, ...]:
    """Group the roles of a Spec into shapes, in the order of their first member.

    Roles of different workloads merge only where each replica stands for itself: no atomicity, no least number
    of replicas beyond one, nothing running today, and no rule that tells the workloads apart.
    """
    groups: dict[Hashable, list[Member]] = {}
    running = {replica.workload for replica in context.today.present()}
    for workload in context.spec.workloads:
        alone = workload.atomic or workload.min_replicas > 1 or workload.id in running
        signature = rule_signature(context, workload)
        for role in workload.roles:
            if role.replicas:
                key = (workload.id, role.name) if alone else _key(context, workload, role, signature)
                groups.setdefault(key, []).append(Member(workload, role))
    return tuple(
        Shape(index, tuple(members), sum(member.role.replicas for member in members))
        for index, members in enumerate(groups.values())
    )


def rule_signature(context: Context, workload: Workload) -> Mapping[str, Hashable]:
    """Return, per policy that matches a workload, what its rule distinguishes about it."""
    return {
        policy.name: policy.rule.workload_key(workload, scope)
        for policy in context.spec.policies
        if workload.id in (scope := context.scopes[policy.name]).ids
    }


def _key(context: Context, workload: Workload, role: Role, signature: Mapping[str, Hashable]) -> Hashable:
    request = role.request
    return (
        context.spec.band_of(workload),
        request.cpu,
        request.memory,
        request.gpus,
        request.share,
        tuple(sorted(request.resources.items())),
        role.accelerators,
        role.value,
        workload.tolerations,
        tuple(signature.items()),
    )
