"""`quota`: what the admitted replicas of a group may request in all, and what groups lend to each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.placement import View
from dovetail.rules.base import Guard, Part, RuleDefaults, Scope, Violations, group_of, grouped
from dovetail.rules.claims import Cap, Claims
from dovetail.rules.cohorts import (
    DOMINANT,
    Amounts,
    CohortGuard,
    Lends,
    Queue,
    counted,
    keyed,
    lent_by,
    requested_of,
    resources_of,
    spelt_out,
)
from dovetail.rules.guards import TotalGuard
from dovetail.spec import Policy, Role, Spec, Workload


@dataclass(frozen=True, slots=True)
class Quota(RuleDefaults):
    """Limit the requested amounts per group of workloads, and let groups lend what they leave.

    Amounts map `gpus` (milli-GPU), `cpu` (milli-cores), `memory` (MiB) or a resource's name to a number, or
    `dominantShare` to thousandths of what the cluster has of everything. The violation of a subject
    `group/resource` is what the group requests above its limit, or above what is guaranteed and may be borrowed;
    that of a subject `cohort NAME/resource` is what groups borrow above what others lend
    (`rules.cohorts` has the formula). Of the policies of a cohort the first by name tells the latter.

    Parameters
    ----------
    limits : the most that a group may request, whatever others lend.
    guaranteed : what is a group's own (Kueue: nominalQuota).
    borrowing, lending : the most that a group borrows and lends; None is no limit.
    lends : `idle`, what its workloads do not ask for; or `unused`, what a plan leaves of its own.
    cohort : who lends to each other; empty for the groups of this policy alone.
    """

    kind: ClassVar[str] = "quota"
    unit: ClassVar[str] = "amount above the limit"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = False
    judges_node_alone: ClassVar[bool] = False

    limits: Amounts = ()
    per: str = "all"
    label: str | None = None
    guaranteed: Amounts = ()
    borrowing: Amounts | None = None
    lending: Amounts | None = None
    lends: Lends = "idle"
    cohort: str = ""

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return each group's requested amount above each limit, and what its cohort borrows too much."""
        found = {}
        for queue in _changed(part, self._queues(scope)):
            for name, most in queue.most.items():
                above = part.requested(queue.members, name).plus(-most)
                found[f"{queue.group}/{name}"] = part.model.positive_part(above)
        queues = self._cohort(scope)
        if any(True for _ in _changed(part, queues)):
            for name in resources_of(queues):
                found[self._subject(scope, name)] = _above(part, queues, name)
        return found

    def check(self, view: View, scope: Scope) -> Violations:
        """Add up what each group's admitted replicas request, and what its cohort borrows."""
        found = {
            f"{queue.group}/{name}": _held(view, queue.members, name) - most
            for queue in self._queues(scope)
            for name, most in queue.most.items()
        }
        queues = self._cohort(scope)
        for name in resources_of(queues):
            taken = sum(max(0, _held(view, q.members, name) - q.kept[name]) for q in queues if name in q.kept)
            found[self._subject(scope, name)] = taken - sum(q.lent.get(name, 0) for q in queues)
        return {subject: above for subject, above in found.items() if above > 0}

    def guard(self, scope: Scope) -> Guard | None:
        """Keep each group's requested amounts within the limits, and its cohort within what it has."""
        queues = self._queues(scope)
        shares = keyed(queues)

        def amounts(workload: Workload, role: Role) -> Mapping[Hashable, int]:
            return counted(workload, role, shares, queues)

        def limit(key: Hashable) -> int:
            return queues[key[0]].most[key[1]] if isinstance(key, tuple) else 0

        cohort = self._cohort(scope)
        if not cohort:
            return TotalGuard(amounts, limit)
        return CohortGuard(amounts, limit, queues=cohort, shares=keyed(cohort))

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish workloads by their quota group."""
        return group_of(workload, self.per, self.label)

    def claims(self, scope: Scope) -> Claims:
        """Bound what each group requests, whatever others lend it."""
        return Claims(
            caps=tuple(
                Cap(f"{queue.group}/{name}", tuple(queue.members), name, most)
                for queue in self._queues(scope)
                for name, most in queue.most.items()
            )
        )

    def unsound(self, spec: Spec) -> str | None:
        """Refuse a label key without `per: label`, the reverse, and lending without anything to lend."""
        if (self.per == "label") != (self.label is not None):
            return "'label' names the label key where 'per' is 'label', and only there"
        if not self.limits and not self.guaranteed:
            return "give 'limit', 'guaranteed' or both"
        if not self.guaranteed and (self.cohort or self.borrowing is not None or self.lending is not None):
            return "'cohort', 'borrowing' and 'lending' count from 'guaranteed', which is missing"
        return self._without_effect()

    def _without_effect(self) -> str | None:
        """Tell a limit on borrowing or lending what is not guaranteed, and so neither kept nor lent."""
        own = {name for name, _ in self.guaranteed}
        for key, amounts in (("borrowing", self.borrowing), ("lending", self.lending)):
            for name, _ in amounts or ():
                if not own & {name, DOMINANT} and name != DOMINANT:
                    return f"'{key}' limits '{name}', which 'guaranteed' does not name"
        return None

    def unsound_beside(self, own: Policy, spec: Spec) -> str | None:
        """Refuse a cohort whose policies do not bind alike: what it borrows is the violation of all of them."""
        if not self.cohort:
            return None
        for policy in spec.policies:
            rule = policy.rule
            if isinstance(rule, Quota) and rule.cohort == self.cohort and policy.enforcement != own.enforcement:
                return f"the cohort '{self.cohort}' is enforced in another way by policy '{policy.name}'"
        return None

    # Groups and cohorts.

    def _queues(self, scope: Scope) -> list[Queue]:
        groups = grouped(scope.workloads, self.per, self.label)
        if self.per == "all":
            groups.setdefault("all", [])  # without any workload it still lends
        return [self._queue(scope, group, members) for group, members in groups.items()]

    def _queue(self, scope: Scope, group: str, members: Sequence[Workload]) -> Queue:
        capacity = scope.capacity
        most = spelt_out(self.limits, capacity)
        own = spelt_out(self.guaranteed, capacity)
        borrowing = {} if self.borrowing is None else spelt_out(self.borrowing, capacity)
        lending = {} if self.lending is None else spelt_out(self.lending, capacity)
        for name, more in borrowing.items():
            if name in own:
                most[name] = min(own[name] + more, most.get(name, own[name] + more))
        lent = lent_by(members, own, lending, self.lends)
        kept = {name: amount - (lent[name] if self.lends == "unused" else 0) for name, amount in own.items()}
        return Queue(scope.policy, group, members, most, kept, lent)

    def _cohort(self, scope: Scope) -> list[Queue]:
        """Return all groups of the cohort that this policy answers for, none where another one does."""
        if not self.guaranteed:
            return []
        if not self.cohort:
            return self._queues(scope)
        policies = [p for p in scope.spec.policies if isinstance(p.rule, Quota) and p.rule.cohort == self.cohort]
        if not policies or policies[0].name != scope.policy:
            return []
        return [queue for p in policies for queue in _queues_of(p, scope)]

    def _subject(self, scope: Scope, name: str) -> str:
        return f"cohort {self.cohort or scope.policy}/{name}"


def _queues_of(policy: Policy, scope: Scope) -> list[Queue]:
    rule = policy.rule
    return rule._queues(scope.beside(policy)) if isinstance(rule, Quota) else []


def _changed(part: Part, queues: Iterable[Queue]) -> Iterator[Queue]:
    """Yield the groups of which a part can change anything."""
    return (queue for queue in queues if any(True for _ in part.changing(queue.members)))


def _above(part: Part, queues: Sequence[Queue], name: str) -> Linear:
    """Return what the groups of a cohort take of a resource above what they put in."""
    taken = Linear(constant=-sum(queue.lent.get(name, 0) for queue in queues))
    for queue in queues:
        if name in queue.kept:
            held = part.requested(queue.members, name)
            taken.add(part.model.positive_part(held.plus(-queue.kept[name])))
    return part.model.positive_part(taken)


def _held(view: View, members: Iterable[Workload], name: str) -> int:
    """Return what the admitted replicas of some workloads request of a resource."""
    return sum(view.count(w, role) * requested_of(role.request, name) for w in members for role in w.roles)


__all__ = ["Quota", "requested_of"]
