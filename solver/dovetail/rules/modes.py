"""`sharing` with `modes`: in which modes the GPUs may be that matched workloads are on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, Part, RuleDefaults, Violations
from dovetail.rules.guards import ClosedGuard
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Workload

MODES: Final = ("whole", "mig", "mps", "time-slice")


@dataclass(frozen=True, slots=True)
class Modes(RuleDefaults):
    """Keep the matched workloads on GPUs in some modes (S3.2).

    The violation of a workload is the number of its replicas on GPUs in other modes. A replica on whole GPUs, and a
    share alone on a GPU that nobody shares, is in the mode `whole`; one on an instance in `mig`; GPUs that are shared
    by fractions are in `time-slice`, as their clients take turns.
    """

    kind: ClassVar[str] = "sharing"
    unit: ClassVar[str] = "replicas in other modes"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    modes: tuple[str, ...]

    def closes(self) -> tuple[str, ...]:
        """Return the other modes."""
        return tuple(mode for mode in MODES if mode not in self.modes)

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the replicas of each matched workload in other modes."""
        closed = self.closes()
        found = (
            {w.id: part.in_modes(w, closed, scope.nodes) for w in part.changing(scope.workloads)} if closed else {}
        )
        return {workload: count for workload, count in found.items() if count.terms or count.constant}

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the replicas of each matched workload in other modes."""
        closed = frozenset(self.closes())
        counts = {}
        for workload in scope.workloads:
            here = [r for r in view.admitted(workload) if scope.nodes is None or view.places[r].node in scope.nodes]
            counts[workload.id] = sum(view.mode_of(replica) in closed for replica in here)
        return {workload: count for workload, count in counts.items() if count}

    def guard(self, scope: Scope) -> Guard | None:
        """Keep those who ask for whole GPUs, or for a profile, off nodes where that mode is closed."""
        return ClosedGuard(scope, frozenset(self.closes()))

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload: each is a subject of its own."""
        return workload.id

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish matched nodes from others."""
        return scope.nodes is None or node.name in scope.nodes
