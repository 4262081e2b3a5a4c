"""`quota`: what the admitted replicas of a group may request in all, and what groups lend to each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from dovetail.linear import Linear, rounded
from dovetail.placement import View
from dovetail.rules.base import Guard, Part, RuleDefaults, Violations
from dovetail.rules.claims import Cap, Claims
from dovetail.rules.cohort_trees import Cohort, CohortGuard, Tree, outermost, tree_of
from dovetail.rules.cohorts import (
    DOMINANT,
    Amounts,
    Lends,
    Queue,
    counted,
    keyed,
    lent_by,
    requested_of,
    spelt_out,
)
from dovetail.rules.grouping import group_of, grouped
from dovetail.rules.scope import Scope
from dovetail.rules.totals import TotalGuard
from dovetail.spec import Policy, Role, Spec, Workload, WorkloadSelector
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Quota(RuleDefaults):
    """Limit the requested amounts per group of workloads, and let groups lend what they leave.

    Amounts map `gpus` (milli-GPU), `cpu` (milli-cores), `memory` (MiB) or a resource's name to a number, or
    `dominantShare` to thousandths of what the cluster has of everything. The violation of a subject
    `group/resource` is what the group requests above its limit, or above what is guaranteed and may be borrowed;
    that of a subject `cohort NAME/resource` is what groups take of a cohort above what it has and may borrow
    (`rules.cohort_trees` has the formula). Of the policies of a tree of cohorts the first by name tells the latter.
    A policy of a cohort itself (`for_cohort`) says what is the cohort's own, and which one it lies in.

    Parameters
    ----------
    limits : the most that a group may request, whatever others lend.
    guaranteed : what is a group's own (Kueue: nominalQuota).
    borrowing, lending : the most that a group borrows and lends; None is no limit. Of a cohort, no amounts at all are
        nothing of anything.
    lends : `idle`, what its workloads do not ask for; or `unused`, what a plan leaves of its own.
    cohort : who lends to each other; empty for the groups of this policy alone. Of a policy of a cohort, the cohort
        that this one lies in; empty for none.
    for_cohort : the cohort of which this policy is; empty for a policy of the groups that it matches.
    """

    kind: ClassVar[str] = "quota"
    unit: ClassVar[str] = "amount above the limit"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = False

    limits: Amounts = ()
    per: str = "all"
    label: str | None = None
    guaranteed: Amounts = ()
    borrowing: Amounts | None = None
    lending: Amounts | None = None
    lends: Lends = "idle"
    cohort: str = ""
    for_cohort: str = ""

    @property
    def lets_more(self) -> bool:
        """Let others of a cohort borrow."""
        return bool(self.cohort)

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return each group's requested amount above each limit, and what its cohort borrows too much."""
        found = {}
        for queue in _changed(part, self._queues(scope)):
            for name, most in queue.most.items():
                above = part.requested(queue.members, name).plus(-most)
                found[f"{queue.group}/{name}"] = part.model.positive_part(above)
        tree = self._tree(scope)
        if tree and any(True for _ in _changed(part, tree.queues)):
            taken = tree.encoded(part.model, lambda queue, name: part.requested(queue.members, name))
            found |= {f"cohort {subject}": amount for subject, amount in taken.items()}
        return found

    def tighten(self, part: Part, scope: Scope, excused: Mapping[str, int]) -> None:
        """Count each group's GPUs in whole ones: what a limit has beyond these is of use to parts of a GPU only."""
        for queue in self._queues(scope):
            if "gpus" in queue.most:
                most = queue.most["gpus"] + excused.get(f"{queue.group}/gpus", 0)
                whole, limit = rounded(part.requested(queue.members, "gpus"), most, MILLI)
                if whole.terms:
                    part.model.require(whole, upper=limit)

    def check(self, view: View, scope: Scope) -> Violations:
        """Add up what each group's admitted replicas request, and what its cohort borrows."""
        found = {
            f"{queue.group}/{name}": _held(view, queue.members, name) - most
            for queue in self._queues(scope)
            for name, most in queue.most.items()
        }
        if tree := self._tree(scope):
            above = tree.above(lambda queue, name: _held(view, queue.members, name))
            found |= {f"cohort {subject}": amount for subject, amount in above.items()}
        return {subject: above for subject, above in found.items() if above > 0}

    def guard(self, scope: Scope) -> Guard | None:
        """Keep each group's requested amounts within the limits, and its cohort within what it has."""
        queues = self._queues(scope)
        shares = keyed(queues)

        def amounts(workload: Workload, role: Role) -> Mapping[Hashable, int]:
            return counted(workload, role, shares, queues)

        def limit(key: Hashable) -> int:
            return queues[key[0]].most[key[1]] if isinstance(key, tuple) else 0

        tree = self._tree(scope)
        if tree is None:
            return TotalGuard(amounts, limit)
        return CohortGuard(amounts, limit, tree=tree, shares=keyed(tree.queues))

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish workloads by their quota group."""
        return None if self.for_cohort else group_of(workload, self.per, self.label)

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
        if self.for_cohort:
            return self._unsound_cohort()
        if not self.limits and not self.guaranteed:
            return "give 'limit', 'guaranteed' or both"
        lends = self.lending is not None or self.lends != "idle"
        if not self.guaranteed and (self.cohort or self.borrowing is not None or lends):
            return "'cohort', 'borrowing', 'lending' and 'lends' count from 'guaranteed', which is missing"
        return self._without_effect()

    def _unsound_cohort(self) -> str | None:
        if self.limits or self.per != "all":
            return "'limit' and 'per' are of workloads; a cohort has 'guaranteed', 'borrowing' and 'lending'"
        if not self.cohort and (self.borrowing is not None or self.lending is not None or self.lends != "idle"):
            return f"the cohort '{self.for_cohort}' lies in no other, 'cohort', that it could borrow from or lend to"
        if not self.cohort and not self.guaranteed:
            return "give 'guaranteed', 'cohort' or both"
        return None

    def _without_effect(self) -> str | None:
        """Tell a limit on borrowing or lending what is not guaranteed, and so neither kept nor lent."""
        own = {name for name, _ in self.guaranteed}
        for key, amounts in (("borrowing", self.borrowing), ("lending", self.lending)):
            for name, _ in amounts or ():
                if not own & {name, DOMINANT} and name != DOMINANT:
                    return f"'{key}' limits '{name}', which 'guaranteed' does not name"
        return None

    def unsound_beside(self, own: Policy, spec: Spec) -> str | None:
        """Refuse cohorts in a ring, said twice or by nobody used, and those whose policies do not bind alike."""
        home = self.for_cohort or self.cohort
        if not home:
            return None
        forest = _forest(spec)
        if forest.roots.get(home, home) is None:
            return f"the cohort '{home}' lies in a ring, by way of '{forest.parents[home]}'"
        problem = self._unsound_for(own, spec) if self.for_cohort else None
        return problem or self._bound_otherwise(own, spec)

    def _unsound_for(self, own: Policy, spec: Spec) -> str | None:
        """Tell what is said of a cohort twice, of workloads, or in vain."""
        for policy, rule in _quotas(spec):
            if policy.name != own.name and rule.for_cohort == self.for_cohort:
                return f"policy '{policy.name}' is of the cohort '{self.for_cohort}' too"
        if own.workloads != WorkloadSelector():
            return "'match' has no effect on a policy of a cohort; its groups have policies of their own, which match"
        groups = [rule for _, rule in _forest(spec).around(self.for_cohort) if not rule.for_cohort]
        named = {name for rule in groups for name, _ in rule.guaranteed}
        idle = next((name for name, _ in self.guaranteed if not named & {name, DOMINANT} and name != DOMINANT), None)
        return None if idle is None else f"'guaranteed' names '{idle}', which no group of the cohort's tree does"

    def never_lifted(self, own: Policy) -> str | None:
        """Refuse waivers of a policy of a cohort, which is about no workloads."""
        return "it is of a cohort; waive the policies of its groups" if self.for_cohort else None

    def _bound_otherwise(self, own: Policy, spec: Spec) -> str | None:
        """Tell a policy of the same tree that is enforced in another way: what cohorts borrow violates them all."""
        for policy, _ in _forest(spec).around(self.for_cohort or self.cohort):
            if policy.enforcement != own.enforcement:
                return f"the cohort is enforced in another way by policy '{policy.name}'"
        return None

    # Groups and cohorts.

    def _queues(self, scope: Scope) -> list[Queue]:
        if self.for_cohort:
            return []
        return scope.once(("groups", self), lambda: self._grouped(scope))

    def _grouped(self, scope: Scope) -> list[Queue]:
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

    def _tree(self, scope: Scope) -> Tree | None:
        """Return the tree of cohorts that this policy answers for, None where another one does."""
        return scope.once(("tree", self), lambda: self._found_tree(scope))

    def _found_tree(self, scope: Scope) -> Tree | None:
        home = self.for_cohort or self.cohort
        if not home:
            queues = [(scope.policy, queue) for queue in self._queues(scope)] if self.guaranteed else []
            return tree_of((), queues) if queues else None
        members = _forest(scope.spec).around(home)
        if not members or members[0][0].name != scope.policy:
            return None
        cohorts = [rule._cohort(scope) for _, rule in members if rule.for_cohort]
        return tree_of(cohorts, [(rule.cohort, q) for p, rule in members for q in rule._queues(scope.beside(p))])

    def _cohort(self, scope: Scope) -> Cohort:
        """Return what this policy says of its cohort."""
        capacity = scope.capacity

        def limits(given: Amounts | None) -> Mapping[str, int]:
            return dict.fromkeys(capacity, 0) if given == () else spelt_out(given or (), capacity)

        return Cohort(
            name=self.for_cohort,
            parent=self.cohort,
            own=spelt_out(self.guaranteed, capacity),
            borrowing=limits(self.borrowing),
            lending=limits(self.lending),
            lends=self.lends,
        )


def _quotas(spec: Spec) -> list[tuple[Policy, Quota]]:
    """Return the policies of this rule, each with its parameters, in order."""
    return [(policy, policy.rule) for policy in spec.policies if isinstance(policy.rule, Quota)]


class _Forest(NamedTuple):
    """The cohorts of a Spec: what each lies in, the outermost around it, and the policies of each tree."""

    parents: Mapping[str, str]
    roots: Mapping[str, str | None]
    trees: Mapping[str | None, Sequence[tuple[Policy, Quota]]]

    def around(self, name: str) -> Sequence[tuple[Policy, Quota]]:
        """Return the policies of the tree that a cohort is in, by name."""
        return self.trees.get(self.roots.get(name, name), ())


def _forest(spec: Spec) -> _Forest:
    """Return the cohorts of a Spec, worked out once."""
    known = spec.__dict__.get("cohorts")
    if not isinstance(known, _Forest):
        quotas = _quotas(spec)
        parents = {rule.for_cohort: rule.cohort for _, rule in quotas if rule.for_cohort and rule.cohort}
        roots = outermost(parents)
        trees: dict[str | None, list[tuple[Policy, Quota]]] = {}
        for policy, rule in quotas:
            if name := rule.for_cohort or rule.cohort:
                trees.setdefault(roots.get(name, name), []).append((policy, rule))
        known = spec.__dict__["cohorts"] = _Forest(parents, roots, trees)
    return known


def _changed(part: Part, queues: Iterable[Queue]) -> Iterator[Queue]:
    """Yield the groups of which a part can change anything."""
    return (queue for queue in queues if any(True for _ in part.changing(queue.members)))


def _held(view: View, members: Iterable[Workload], name: str) -> int:
    """Return what the admitted replicas of some workloads request of a resource."""
    return sum(view.count(w, role) * requested_of(role.request, name) for w in members for role in w.roles)


__all__ = ["Quota", "requested_of"]
