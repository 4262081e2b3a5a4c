"""What checks, tiers and models all start from: a Spec with today judged and every policy's scope found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dovetail.placement import Held, Place, Places, Recovery, Today, View, judge
from dovetail.rules.base import Violations
from dovetail.rules.leaving import Leaving
from dovetail.rules.scope import Scope, scopes_of
from dovetail.rules.tolerance import tolerated
from dovetail.spec import Spec, Workload


@dataclass(frozen=True)
class Context:
    """A Spec, its judged current state, the scope of each policy, and the violations that today excuses (S4.5)."""

    spec: Spec
    today: Today
    scopes: Mapping[str, Scope]
    tolerated: Mapping[str, Violations]

    def about(self, spec: Spec) -> Context:
        """Return this context for a Spec that differs in nothing on which scopes, or what today excuses, depend."""
        return replace(self, spec=spec, scopes={n: replace(scope, spec=spec) for n, scope in self.scopes.items()})

    @cached_property
    def running(self) -> Mapping[str, Mapping[str, int]]:
        """Per workload and role, how many replicas have a place that stands today."""
        found: dict[str, dict[str, int]] = {}
        for replica in self.today.places:
            roles = found.setdefault(replica.workload, {})
            roles[replica.role] = roles.get(replica.role, 0) + 1
        return found

    @cached_property
    def sets(self) -> tuple[tuple[Workload, ...], ...]:
        """The sets of workloads that policies keep together, or would like to; of two or more each (S5.1)."""
        told = (p.rule.sets(self.scopes[p.name]) for p in self.spec.policies if p.enforcement.kind != "audit")
        groups = [group for each in told for group in each if len(group) > 1]
        by_ids = {tuple(sorted(workload.id for workload in group)): group for group in groups}
        return tuple(by_ids[ids] for ids in sorted(by_ids))

    @cached_property
    def leaving(self) -> tuple[tuple[Leaving, ...], ...]:
        """Who of those that are protected must leave their places for a plan to break less of what is excused."""
        today = self.today
        kept = self.view({r: place for r, place in today.places.items() if r in today.protected})
        broken = (policy for policy in self.spec.policies if self.tolerated.get(policy.name))
        return tuple(tuple(policy.rule.leaving(kept, self.scopes[policy.name])) for policy in broken)

    def view(self, places: Places, held: Held | None = None, recovery: Recovery | None = None) -> View:
        """Return the view of a finished placement; `held` and `recovery` where these are known."""
        return View(self.spec, places, self.today, held, recovery)

    def view_of_all(self, places: Places) -> View:
        """Return the view of places of which those of placeholders are held free, where that counts for a policy."""
        if not self.spec.placeholders:
            return self.view(places)
        held: dict[str, list[Place]] = {}
        for workload in self.spec.placeholders:
            held[workload.holds] = [places[r] for r in workload.replica_ids() if r in places]
        own = {replica: place for replica, place in places.items() if not self.spec.by_id[replica.workload].holds}
        view = self.view(own, {policy: tuple(found) for policy, found in held.items()})
        policies = {p.name: p for p in self.spec.policies if p.name in held}
        told = {name: policy.rule.told(view, self.scopes[name]).held for name, policy in policies.items()}
        return view if told == view.held else self.view(own, told)

    def violations(self, view: View) -> Mapping[str, Violations]:
        """Return every policy's violations on a finished placement."""
        return {p.name: p.rule.check(view, self.scopes[p.name]) for p in self.spec.policies}


def context_of(spec: Spec) -> Context:
    """Judge a Spec's current state and find what its policies apply to."""
    today = judge(spec)
    scopes = scopes_of(spec)
    return Context(spec, today, scopes, tolerated(spec, scopes, today))
