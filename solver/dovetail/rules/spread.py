"""`spread`: the replicas of each matched workload are distributed over domains."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, NodeTerms, Part, RuleDefaults, Violations
from dovetail.rules.claims import Claims, Crowd
from dovetail.rules.guards import CrowdGuard, SkewGuard
from dovetail.rules.leaving import Leaving, evened
from dovetail.rules.levels import counts_at, inner, level_problem
from dovetail.rules.scope import Scope
from dovetail.spec import Node, Spec, Workload


@dataclass(frozen=True, slots=True)
class Spread(RuleDefaults):
    """Bound the replicas of a workload per domain, or the difference between its fullest and emptiest domain.

    The violation of a workload is, with `max_per_domain` m, the sum over domains of `max(0, replicas - m)`; with
    `max_skew` s, `max(0, fullest - emptiest - s)` over the domains that hold a node the workload may use.
    """

    kind: ClassVar[str] = "spread"
    unit: ClassVar[str] = "replicas too many"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True

    over: str
    max_per_domain: int | None = None
    max_skew: int | None = None

    @property
    def inner_level(self) -> str:
        """The level, where it lies inside nodes."""
        return inner(self.over)

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return the excess of each matched workload, as far as the part's domains tell it."""
        encode = self._encode_skew if self.max_skew is not None else self._encode_excess
        return {workload.id: encode(part, workload, scope) for workload in part.changing(scope.workloads)}

    def _encode_excess(self, part: Part, workload: Workload, scope: Scope) -> Linear:
        limit = self.max_per_domain or 0
        counts = counts_at(part, workload, self.over, scope.nodes)
        return Linear.total(part.model.positive_part(count.plus(-limit)) for count in counts.values())

    def _encode_skew(self, part: Part, workload: Workload, scope: Scope) -> Linear:
        eligible = scope.reach(workload, self.over)
        if len(eligible) < 2:
            return Linear()
        found = part.counts(workload, self.over, scope.nodes)
        counts = [found[path] for path in eligible if path in found]
        # Of what is fixed only the fullest and the emptiest domain matter; those without entry are empty.
        fixed = {count.constant for count in counts if count.is_constant}
        fixed |= {0} if len(counts) < len(eligible) else set()
        counts = [count for count in counts if not count.is_constant]
        counts += [Linear(constant=end) for end in sorted({min(fixed), max(fixed)})] if fixed else []
        return self._skew_of(part, counts)

    def _skew_of(self, part: Part, counts: list[Linear]) -> Linear:
        ends = [part.model.range_of(count) for count in counts]
        low = part.model.integer(min(e[0] for e in ends), max(e[1] for e in ends))
        high = part.model.integer(min(e[0] for e in ends), max(e[1] for e in ends))
        for count in counts:
            part.model.require(count.minus(Linear.of(low)), lower=0)
            part.model.require(count.minus(Linear.of(high)), upper=0)
        return part.model.positive_part(Linear({high: 1, low: -1}, -(self.max_skew or 0)))

    def tighten(self, part: Part, scope: Scope, excused: Mapping[str, int]) -> None:
        """Bound each workload by what every single domain has of it, where `max_skew` says how much others may have.

        With n in one of D domains there are Dn + (D - 1)s replicas at the most, and never more than N. As n is whole,
        the step of n that reaches N adds what is left up to there and no more (mixed-integer rounding; Nemhauser and
        Wolsey 1990). With n in one of them there are Dn - (D - 1)s at the least, and never more than N: n is at most
        what a whole number of these leaves.
        """
        for workload in scope.workloads if self.max_skew is not None else ():
            reach = scope.reach(workload, self.over)
            others = len(reach) - 1
            spare = others * ((self.max_skew or 0) + excused.get(workload.id, 0))
            if others < 1 or workload.replicas <= spare:
                continue
            full = -(-(workload.replicas - spare) // (others + 1))  # in a domain, for all to be there
            most = (others + 1) * (full - 1) + spare  # with one less
            rest = workload.replicas - most
            found = part.counts(workload, self.over, scope.nodes)
            counts = [found.get(path, Linear()) for path in reach]
            total = Linear.total(counts)
            largest = (workload.replicas + spare) // (others + 1)
            for count in counts:
                part.model.require(total.minus(count.scaled(rest)), upper=most - rest * (full - 1))
                part.model.require(count, upper=largest)

    def check(self, view: View, scope: Scope) -> Violations:
        """Recount each matched workload's domains."""
        counts = {workload.id: self._violation(view, workload, scope) for workload in scope.workloads}
        return {workload: count for workload, count in counts.items() if count}

    def _violation(self, view: View, workload: Workload, scope: Scope) -> int:
        counts = self._counts(view, workload, scope)
        if self.max_per_domain is not None:
            return sum(max(0, count - self.max_per_domain) for count in counts.values())
        reached = [counts.get(path, 0) for path in scope.reach(workload, self.over)]
        return max(0, max(reached, default=0) - min(reached, default=0) - (self.max_skew or 0))

    def _counts(self, view: View, workload: Workload, scope: Scope) -> Mapping[str, int]:
        """Return the replicas of a workload in each domain that has any."""
        domains = view.tenants_of_domains(self.over, [workload], scope.nodes)
        return {path: who.total() for path, who in domains.items()}

    def leaving(self, view: View, scope: Scope) -> Sequence[Leaving]:
        """Tell who is too many, nothing inside nodes, where a replica may be in several domains."""
        if self.inner_level:
            return ()
        found = []
        for workload in scope.workloads:
            if self.max_per_domain is not None:
                found.append(Leaving.each([workload.id], self._violation(view, workload, scope)))
            elif reach := scope.reach(workload, self.over):
                counts = self._counts(view, workload, scope)
                fewer = evened([counts.get(path, 0) for path in reach], workload.replicas, self.max_skew or 0)
                found.append(Leaving(frozenset([workload.id]), fewer))
        return found

    def guard(self, scope: Scope) -> Guard | None:
        """Keep each workload within its limit per domain, or its domains even; per node to begin with."""
        if self.max_per_domain is None:
            return self._skew_guard(scope)
        level = "node" if self.inner_level else self.over
        return CrowdGuard(scope, level, self.max_per_domain, gpus_alone=bool(self.inner_level))

    def _skew_guard(self, scope: Scope) -> Guard:
        eligible = {workload.id: scope.reach(workload, self.over) for workload in scope.workloads}
        return SkewGuard(scope, self.over, self.max_skew or 0, eligible)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish every workload: each is spread by itself."""
        return workload.id

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain, where it is wider than a node."""
        domain = None if self.over == "node" or self.inner_level else node.domain(self.over)
        return domain, scope.nodes is None or node.name in scope.nodes

    def node_terms(self, scope: Scope) -> NodeTerms:
        """Bound the replicas of each matched workload on a node."""
        if self.over != "node" or self.max_per_domain is None:
            return NodeTerms()
        return NodeTerms(most={workload.id: self.max_per_domain for workload in scope.workloads})

    def claims(self, scope: Scope) -> Claims:
        """Bound the replicas of each matched workload per domain."""
        most = self.max_per_domain
        return Claims() if most is None or self.inner_level else Claims(crowd=Crowd(self.over, most))

    def unsound(self, spec: Spec) -> str | None:
        """Refuse unknown levels, and both or none of the two limits."""
        if (self.max_per_domain is None) == (self.max_skew is None):
            return "give exactly one of 'maxPerDomain' and 'maxSkew'"
        if self.inner_level and self.max_skew is not None:
            return f"'maxSkew' evens out domains of nodes, and a {self.over} lies inside one: give 'maxPerDomain'"
        return level_problem(spec, self.over, gpu=False, inside=True)
