"""`admission`: what matches must be admitted, each workload by itself or groups of them together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.placement.served import served
from dovetail.rules.base import Part, RuleDefaults, Violations
from dovetail.rules.claims import Claims
from dovetail.rules.grouping import grouped
from dovetail.rules.rates import absent, shortfall
from dovetail.rules.scope import Scope
from dovetail.spec import Spec, Workload

AtLeast = int | Literal["all", "minimum", "floors"]


@dataclass(frozen=True, slots=True)
class Admission(RuleDefaults):
    """Admit the matched workloads: all replicas, their fewest ones, what they are promised, or a number per group.

    A subject is a group of `per` (by default each workload). With `at_least` `all`, its violation is its number of
    replicas not admitted; with `minimum`, what its workloads lack of their least replicas; with a number, what the
    group lacks of it, in replicas, or with `count` in workloads of which anything is admitted. With `or_none` a group
    of which nothing is admitted violates nothing: it is admitted together or not at all. Of a service that asks for a
    rate alone, `all` is that rate: its violation is the thousandths of it that are missing. With `floors` it is what
    is missing of promises, in thousandths, not weighted (S2.8). Work that merely waits today is no excuse, so today's
    violation is not tolerated.
    """

    kind: ClassVar[str] = "admission"
    unit: ClassVar[str] = "replicas not admitted"  # or workloads, or thousandths of a rate
    grandfathered: ClassVar[bool] = False
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = False

    at_least: AtLeast = "all"
    per: str = "workload"
    label: str | None = None
    or_none: bool = False
    count: Literal["replicas", "workloads"] = "replicas"

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return what each group lacks."""
        found = {}
        for group, members in grouped(scope.workloads, self.per, self.label).items():
            if any(True for _ in part.changing(members)):
                missing = self._missing(part, members)
                admitted = Linear.total(part.admitted(workload) for workload in members)
                found[group] = part.model.positive_part_if(missing, admitted) if self.or_none else missing
        return found

    def _missing(self, part: Part, members: Sequence[Workload]) -> Linear:
        """Return an expression that is at least what a group lacks, and can equal it."""
        if isinstance(self.at_least, int):
            admitted = Linear.total(self._counted(part, workload) for workload in members)
            return part.model.positive_part(Linear(constant=self.at_least).minus(admitted))
        return Linear.total(self._missing_of(part, workload) for workload in members)

    def _counted(self, part: Part, workload: Workload) -> Linear:
        """Return what a workload counts at the most."""
        admitted = part.admitted(workload)
        if self.count == "replicas":
            return admitted
        there = Linear.of(part.model.boolean())
        part.model.require(admitted.minus(there), lower=0)
        return there

    def _missing_of(self, part: Part, workload: Workload) -> Linear:
        slo = workload.slo
        if self.at_least == "floors":
            return (
                Linear()
                if slo is None
                else Linear.total([shortfall(part, workload, slo.owed), absent(part, workload)])
            )
        if slo is not None and self._by_rate(workload):
            return shortfall(part, workload, slo.rate)
        return part.model.positive_part(Linear(constant=self._wanted(workload)).minus(part.admitted(workload)))

    def _by_rate(self, workload: Workload) -> bool:
        """Tell whether a workload is admitted whole once it serves its rate, with however many replicas."""
        return self.at_least == "all" and workload.asks_rate

    def _wanted(self, workload: Workload) -> int:
        return workload.replicas if self.at_least == "all" else workload.min_replicas

    def check(self, view: View, scope: Scope) -> Violations:
        """Count what each group lacks."""
        groups = grouped(scope.workloads, self.per, self.label)
        counts = {group: self._lack(view, members) for group, members in groups.items()}
        return {group: count for group, count in counts.items() if count}

    def _lack(self, view: View, members: Sequence[Workload]) -> int:
        there = [len(view.admitted(workload)) for workload in members]
        if self.or_none and not any(there):
            return 0
        if isinstance(self.at_least, int):
            return max(0, self.at_least - sum(map(bool, there) if self.count == "workloads" else there))
        return sum(self._lack_of(view, workload, count) for workload, count in zip(members, there, strict=True))

    def _lack_of(self, view: View, workload: Workload, count: int) -> int:
        slo = workload.slo
        if self.at_least == "floors":
            return (
                0
                if slo is None
                else slo.missing(served(view, workload), count, workload.replicas) // slo.floors.weight
            )
        if slo is not None and self._by_rate(workload):
            return slo.shortfall(served(view, workload), slo.rate)
        return max(0, self._wanted(workload) - count)

    def waits_for_others(self, workload: Workload, view: View, scope: Scope) -> bool:
        """Tell whether nothing of a workload's group is admitted, and all of the workload alone would not do."""
        groups = grouped(scope.workloads, self.per, self.label).values() if self.or_none else ()
        for members in groups:
            if workload not in members or any(view.admitted(each) for each in members):
                continue
            if isinstance(self.at_least, int):
                return self.at_least > (1 if self.count == "workloads" else workload.replicas)
            return any(self._lack_of(view, each, 0) for each in members if each is not workload)
        return False

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload: each is judged by itself."""
        return workload.id

    def claims(self, scope: Scope) -> Claims:
        """Admit all replicas of those workloads of which no fewer will do."""
        if self.or_none:
            return Claims()
        groups = grouped(scope.workloads, self.per, self.label).values()
        return Claims(admitted=tuple(w for members in groups for w in self._whole(members)))

    def _whole(self, members: Sequence[Workload]) -> Sequence[Workload]:
        if isinstance(self.at_least, int):
            if self.count == "workloads":
                return [w for w in members if self.at_least >= len(members) and w.min_replicas >= w.replicas]
            return members if self.at_least >= sum(workload.replicas for workload in members) else ()
        if self.at_least == "floors":
            return ()
        return [w for w in members if self._wanted(w) >= w.replicas and not self._by_rate(w)]

    def unsound(self, spec: Spec) -> str | None:
        """Refuse a label key without `per: label`, and the reverse, and workloads counted against no number."""
        if self.count == "workloads" and not isinstance(self.at_least, int):
            return "'count' says what a number in 'atLeast' counts, and there is none"
        if (self.per == "label") != (self.label is not None):
            return "'label' names the label key where 'per' is 'label', and only there"
        return None
