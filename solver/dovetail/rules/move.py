"""`move`: how many running replicas may change their place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Part, RuleDefaults, Scope, Violations
from dovetail.rules.claims import Claims
from dovetail.spec import Spec, Workload


@dataclass(frozen=True, slots=True)
class Move(RuleDefaults):
    """Bound the moves of matched workloads in all (`max_moves`), or forbid them (`never`).

    With `max_moves` the subject is the policy and its violation the moves above the budget; with `never` every
    workload is a subject and its violation its moves. A replica whose place is gone is not a move (it restarts).
    """

    kind: ClassVar[str] = "move"
    unit: ClassVar[str] = "moves"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = True
    judges_places: ClassVar[bool] = True
    judges_node_alone: ClassVar[bool] = False

    max_moves: int | None = None
    never: bool = False

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the moves above the budget, or each workload's moves."""
        if self.never:
            return {workload.id: part.moved(workload) for workload in part.changing(scope.workloads)}
        above = Linear.total(part.moved(workload) for workload in scope.workloads).plus(-(self.max_moves or 0))
        return {scope.policy: part.model.positive_part(above)}

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the moves."""
        moves = {workload.id: len(view.moved(workload)) for workload in scope.workloads}
        if self.never:
            return {workload: count for workload, count in moves.items() if count}
        above = sum(moves.values()) - (self.max_moves or 0)
        return {scope.policy: above} if above > 0 else {}

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload that runs, as its moves are its own; what does not run cannot move."""
        return workload.id if workload.id in scope.running else None

    def claims(self, scope: Scope) -> Claims:
        """Keep where they are those that never move."""
        return Claims(stays=scope.workloads) if self.never else Claims()

    def unsound(self, spec: Spec) -> str | None:
        """Refuse both or none of the two forms."""
        if self.never == (self.max_moves is not None):
            return "give exactly one of 'maxMoves' and 'never: true'"
        return None
