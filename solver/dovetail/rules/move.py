"""`move`: how many running replicas may change their place, and on which days."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Part, RuleDefaults, Violations
from dovetail.rules.claims import Claims
from dovetail.rules.scope import Scope
from dovetail.spec import Spec, Workload

DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True, slots=True)
class Window:
    """Days on which replicas may move: the named ones, all where none is named, from `first` to `last` inclusive."""

    days: tuple[str, ...] = ()
    first: dt.date | None = None
    last: dt.date | None = None

    def holds(self, day: dt.date) -> bool:
        """Tell whether a day is in the window."""
        named = not self.days or DAYS[day.weekday()] in self.days
        return named and (self.first is None or self.first <= day) and (self.last is None or day <= self.last)


@dataclass(frozen=True, slots=True)
class Move(RuleDefaults):
    """Bound the moves of matched workloads in all (`max_moves`), or forbid them: always, or outside some windows.

    Where moves are forbidden, by `never` or as the Spec's date is in none of `only_in`, every workload is a subject
    and its violation its moves. Else with `max_moves` the subject is the policy and its violation the moves above the
    budget. A replica whose place is gone is not a move (it restarts).
    """

    kind: ClassVar[str] = "move"
    unit: ClassVar[str] = "moves"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = True
    judges_places: ClassVar[bool] = True

    max_moves: int | None = None
    never: bool = False
    only_in: tuple[Window, ...] = ()

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return each workload's moves, or those of all above the budget."""
        if self.forbidden(scope.spec.as_of):
            return {workload.id: part.moved(workload) for workload in part.changing(scope.workloads)}
        if self.max_moves is None:
            return {}
        above = Linear.total(part.moved(workload) for workload in scope.workloads).plus(-self.max_moves)
        return {scope.policy: part.model.positive_part(above)}

    def check(self, view: View, scope: Scope) -> Violations:
        """Count the moves."""
        moves = {workload.id: len(view.moved(workload)) for workload in scope.workloads}
        if self.forbidden(scope.spec.as_of):
            return {workload: count for workload, count in moves.items() if count}
        above = 0 if self.max_moves is None else sum(moves.values()) - self.max_moves
        return {scope.policy: above} if above > 0 else {}

    def forbidden(self, day: dt.date | None) -> bool:
        """Tell whether nothing may move on a day; without one no window is open."""
        return self.never or (bool(self.only_in) and not (day is not None and self._open(day)))

    def _open(self, day: dt.date) -> bool:
        return any(window.holds(day) for window in self.only_in)

    def dated(self, day: dt.date | None) -> Hashable:
        """Tell whether moves are forbidden, where that depends on the day."""
        return self.forbidden(day) if self.only_in else None

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload that runs, as its moves are its own; what does not run cannot move."""
        return workload.id if workload.id in scope.running else None

    def claims(self, scope: Scope) -> Claims:
        """Keep where they are those that do not move, and let no more move than the budget."""
        return Claims(stays=scope.workloads) if self.forbidden(scope.spec.as_of) else Claims(moves=self.max_moves)

    def unsound(self, spec: Spec) -> str | None:
        """Refuse both or none of the two forms, and windows that no day is in."""
        if self.never == (self.max_moves is not None or bool(self.only_in)):
            return "give 'never: true', or 'maxMoves', 'onlyIn' or both"
        if any(w.first is not None and w.last is not None and w.last < w.first for w in self.only_in):
            return "a window of 'onlyIn' ends before it begins"
        return None
