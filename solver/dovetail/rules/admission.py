"""`admission`: everything that matches must be admitted."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Part, RuleDefaults, Scope, Violations
from dovetail.spec import Workload


@dataclass(frozen=True, slots=True)
class Admission(RuleDefaults):
    """Admit every replica of the matched workloads.

    The violation of a workload is its number of replicas not admitted. Work that merely waits today is no excuse,
    so today's violation is not tolerated.
    """

    kind: ClassVar[str] = "admission"
    unit: ClassVar[str] = "replicas not admitted"
    grandfathered: ClassVar[bool] = False
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = False
    judges_node_alone: ClassVar[bool] = False

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return each matched workload's replicas that are not admitted."""
        return {w.id: Linear(constant=w.replicas).minus(part.admitted(w)) for w in part.changing(scope.workloads)}

    def check(self, view: View, scope: Scope) -> Violations:
        """Count each matched workload's replicas that are not admitted."""
        counts = {w.id: w.replicas - len(view.admitted(w)) for w in scope.workloads}
        return {workload: count for workload, count in counts.items() if count}

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload: each is a subject of its own."""
        return workload.id
