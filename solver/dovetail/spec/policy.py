"""Policies: who is matched, one typed rule, and how it is enforced (S4)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from dovetail.spec.cluster import Node
from dovetail.spec.workload import Workload

if TYPE_CHECKING:
    from dovetail.rules.base import Rule

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
WaiverState = Literal["active", "expiring", "expired"]
SOON: Final = dt.timedelta(days=14)
"""A waiver that ends within this time is told, so that somebody renews it or mends what it excuses."""

POLICY_TIER: Final = "policies"
"""The tier that soft policies are weighed in unless they say otherwise."""

_INTEGER: Final = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One `matchExpressions` entry, with Kubernetes' meanings.

    `NotIn` also holds where the key is absent. `Gt` and `Lt`, for labels of nodes only, compare integers and hold for
    no label that is none.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels satisfy the requirement."""
        present = self.key in labels
        if self.operator == "Exists":
            return present
        if self.operator == "DoesNotExist":
            return not present
        if self.operator in ("Gt", "Lt"):
            return present and self._compares(labels[self.key])
        inside = present and labels[self.key] in self.values
        return inside if self.operator == "In" else not inside

    def _compares(self, label: str) -> bool:
        if not _INTEGER.fullmatch(label):
            return False
        there, wanted = int(label), int(self.values[0])
        return there > wanted if self.operator == "Gt" else there < wanted


def _labels_hold(labels: Mapping[str, str], wanted: Mapping[str, str], requirements: tuple[Requirement, ...]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        requirement.holds(labels) for requirement in requirements
    )


@dataclass(frozen=True, slots=True)
class WorkloadSelector:
    """Selects workloads; every given part must hold, none given selects all.

    `priority` is inclusive. `accelerators` selects what may run on one of them: a role with GPUs that lists it, or
    that lists none.
    """

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()
    tenants: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    priority_min: int | None = None
    priority_max: int | None = None
    accelerators: tuple[str, ...] = ()
    slo_classes: tuple[str, ...] = ()

    def selects(self, workload: Workload) -> bool:
        """Tell whether a workload is selected."""
        return (
            _labels_hold(workload.labels, self.match_labels, self.match_expressions)
            and (not self.tenants or workload.tenant in self.tenants)
            and (not self.namespaces or workload.namespace in self.namespaces)
            and (not self.names or workload.id in self.names)
            and (not self.types or workload.type in self.types)
            and (self.priority_min is None or workload.priority >= self.priority_min)
            and (self.priority_max is None or workload.priority <= self.priority_max)
            and (not self.accelerators or self._accepted(workload))
            and (
                not self.slo_classes or (workload.slo is not None and workload.slo.service_class in self.slo_classes)
            )
        )

    def _accepted(self, workload: Workload) -> bool:
        roles = (role for role in workload.roles if role.request.gpu_count)
        return any(not role.accelerators or set(role.accelerators) & set(self.accelerators) for role in roles)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Selects nodes; every given part must hold, none given selects all. `domains` are domain paths."""

    match_labels: Mapping[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()
    groups: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()

    def selects(self, node: Node) -> bool:
        """Tell whether a node is selected."""
        return (
            _labels_hold(node.labels, self.match_labels, self.match_expressions)
            and (not self.groups or node.group in self.groups)
            and (not self.accelerators or node.accelerator in self.accelerators)
            and (not self.names or node.name in self.names)
            and (not self.domains or any(path in self.domains for path in node.domains.values()))
        )


@dataclass(frozen=True, slots=True)
class Enforcement:
    """How a rule binds: `hard` (never), `soft` (weight per unit of violation) or `audit` (reported only).

    Parameters
    ----------
    tier : the tier of the objective that a soft one is weighed in (`policies`), or right after.
    """

    kind: Literal["hard", "soft", "audit"] = "hard"
    weight: int = 0
    tier: str = POLICY_TIER


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy as it applies: its own document's name, or its pack's (S4.2); `origin` is for people."""

    name: str
    rule: Rule
    workloads: WorkloadSelector = field(default_factory=WorkloadSelector)
    nodes: NodeSelector | None = None
    enforcement: Enforcement = field(default_factory=Enforcement)
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Waiver:
    """Lifts one policy for what it selects until the end of `expires`, UTC (S4.3)."""

    name: str
    policy: str
    workloads: WorkloadSelector
    reason: str
    owner: str
    expires: dt.date

    def active(self, as_of: dt.date) -> bool:
        """Tell whether the waiver still lifts its policy on a date; the expiry day is included."""
        return as_of <= self.expires

    def state(self, as_of: dt.date) -> WaiverState:
        """Tell how a waiver stands on a date: `expiring` in its last 14 days."""
        if not self.active(as_of):
            return "expired"
        return "expiring" if self.expires - as_of <= SOON else "active"
