"""Shapes: replicas that nothing tells apart (S4.6)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from dovetail.problem.classes import POLICY, RUNNING, binding
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
        """What each replica asks for, wherever it is (`on`)."""
        return self.role.request

    @cached_property
    def varies(self) -> bool:
        """Whether what it asks of a GPU depends on the accelerator."""
        return self.request.varies

    def on(self, accelerator: str | None) -> Request:
        """Return what each replica asks of nodes with an accelerator (S2.2)."""
        return self.request.on(accelerator) if self.varies else self.request


def shapes_of(context: Context) -> tuple[Shape, ...]:
    """Group the roles of a Spec into shapes, in the order of their first member.

    Roles of different workloads merge only where each replica stands for itself: no atomicity, no least number
    of replicas beyond one, nothing running today, and no rule that tells the workloads apart.
    """
    groups: dict[Hashable, list[Member]] = {}
    running = running_workloads(context)
    for workload in context.spec.everything:
        signature = rule_signature(context, workload)
        for role in workload.roles:
            if role.replicas:
                key = tuple(role_attributes(context, workload, role, signature, running).values())
                groups.setdefault(key, []).append(Member(workload, role))
    return tuple(
        Shape(index, tuple(members), sum(member.role.replicas for member in members))
        for index, members in enumerate(groups.values())
    )


def running_workloads(context: Context) -> frozenset[str]:
    """Return the ids of the workloads of which anything runs today."""
    return frozenset(replica.workload for replica in context.today.present())


def rule_signature(context: Context, workload: Workload) -> Mapping[str, Hashable]:
    """Return, per binding policy that matches a workload, what its rule distinguishes about it."""
    matched = {
        policy.name: policy.rule.workload_key(workload, scope)
        for policy in binding(context)
        if workload.id in (scope := context.scopes[policy.name]).ids
    }
    return {**matched, **_among_others(context, workload)}


def _among_others(context: Context, workload: Workload) -> Mapping[str, Hashable]:
    """Return, per binding policy that does not match a workload, what its rule still distinguishes about it."""
    rules = ((policy.name, policy.rule, context.scopes[policy.name]) for policy in binding(context))
    keys = {name: rule.other_key(workload, scope) for name, rule, scope in rules if workload.id not in scope.ids}
    return {name: ("not matched", key) for name, key in keys.items() if key is not None}


def request_attributes(request: Request) -> Mapping[str, Hashable]:
    """Return all that a request asks for, by name."""
    return {
        "request: gpus": request.gpus,
        "request: inside a node": (request.within, request.across),
        "request: share": request.share,
        "request: mig": (request.mig, request.mig_milli),
        "request: cpu": request.cpu,
        "request: memory": request.memory,
        "request: resources": tuple(sorted(request.resources.items())),
    }


def role_attributes(
    context: Context,
    workload: Workload,
    role: Role,
    signature: Mapping[str, Hashable],
    running: frozenset[str],
) -> Mapping[str, Hashable]:
    """Return all that tells the replicas of a role from others, by name: roles of equal values are one shape.

    Every role has the same names, in the same order: what it asks for and is worth, what each policy's rule
    distinguishes, None where the policy does not match, and what makes a workload stand for itself, and not each of
    its replicas: there the role itself is the value.

    Parameters
    ----------
    signature : the workload's `rule_signature`.
    running : the workloads of which anything runs today.
    """
    itself = (workload.id, role.name)
    return {
        "priority band": context.spec.band_of(workload),
        **request_attributes(role.request),
        "accelerators": role.accelerators,
        "value": role.value,
        "tolerations": workload.tolerations,
        **{
            POLICY + policy.name: (signature[policy.name],) if policy.name in signature else None
            for policy in binding(context)
        },
        "all or nothing": itself if workload.atomic else None,
        "least replicas": itself if workload.min_replicas > 1 or workload.elastic else None,
        "service level": itself if workload.slo is not None else None,
        "held places": itself if workload.holds else None,
        "domains": itself if workload.ranked else None,
        RUNNING: itself if workload.id in running else None,
    }
