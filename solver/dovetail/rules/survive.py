"""`survive`: after the loss of any domains, what is lost restarts elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import ClassVar, NamedTuple

from dovetail.linear import Linear
from dovetail.placement import Places, View
from dovetail.rules.base import Guard, Part, RuleDefaults, Told, Violations
from dovetail.rules.chances import Chances, asked_profiles, on_any_profile
from dovetail.rules.claims import Claims
from dovetail.rules.levels import level_problem
from dovetail.rules.recovery import MOST_CASES, Failure, Rescue, Stakes, failures_of
from dovetail.rules.restarts import search
from dovetail.rules.scope import Scope
from dovetail.rules.standby import StandbyGuard
from dovetail.rules.survivors import Sums
from dovetail.spec import Node, ReplicaId, Role, Spec, Workload, WorkloadSelector
from dovetail.spec.cluster import NODE_LEVEL


class _Recovery(NamedTuple):
    """Where lost replicas restart, by failure case, and how many do not."""

    rows: Mapping[str, Places]
    missing: Violations


@dataclass(frozen=True, slots=True)
class Survive(RuleDefaults):
    """Let matched workloads survive the loss of any `domains` domains of the level `of`.

    A failure case is a subject; its violation is the number of matched replicas on lost nodes that do not restart.
    Survivors stay. What is lost restarts on what the plan leaves idle and on what workloads hold that `may_evict`
    selects and the policy does not match, on GPUs as the plan has cut them. Places held free are not idle.
    Accelerators, taints, cordons, `mix`, nodes and modes that hard policies close and a required domain bind there as
    anywhere; rules about neighbours and amounts do not.
    """

    kind: ClassVar[str] = "survive"
    unit: ClassVar[str] = "replicas that do not restart"
    grandfathered: ClassVar[bool] = True
    needs_current: ClassVar[bool] = False
    judges_places: ClassVar[bool] = True
    searches: ClassVar[bool] = True

    of: str
    domains: int = 1
    may_evict: WorkloadSelector | None = None

    def encode(self, part: Part, scope: Scope) -> Mapping[str, Linear]:
        """Return, per failure case, the replicas that do not restart; in coarse models what sums tell of that."""
        stakes, failures = self._stakes(scope), self._failures(scope)
        most = sum(role.replicas for w in stakes.matched for role in w.roles)
        found = part.not_restarted(stakes, failures)
        if found is None:
            found = {failure.name: Linear.of(part.model.integer(0, most)) for failure in failures}
        sums = Sums(part, scope, self._chances(scope), len(failures))
        domains = {domain.path: domain for domain in part.every_domain(self.of)}
        for failure in failures:
            sums.add(failure, [domains[path] for path in failure.domains if path in domains], found[failure.name])
        return found

    def tighten(self, part: Part, scope: Scope, excused: Mapping[str, int]) -> None:
        """Admit nobody who could restart nowhere, but for as many as today excuses: each is lost some time."""
        without = self._chances(scope).without
        if without and self._takes_all(scope):
            part.model.require(part.together(without), upper=sum(excused.values()))

    def _takes_all(self, scope: Scope) -> bool:
        """Tell whether every node is lost in some failure."""
        taken = frozenset[str]().union(*(failure.nodes for failure in self._failures(scope)))
        return taken >= scope.spec.cluster.by_name.keys()

    def check(self, view: View, scope: Scope) -> Violations:
        """Replay the recovery that is told, or search for one, and count what does not restart."""
        told = None if view.recovery is None else view.recovery.get(scope.policy)
        if told is None:
            return self._searched(view, scope).missing
        rescue = Rescue(view, self._stakes(scope))
        found = {}
        for failure in self._failures(scope):
            lost = rescue.lost(failure)
            found[failure.name] = len(lost) - len(rescue.replay(failure, told.get(failure.name, {}))) if lost else 0
        return {name: missing for name, missing in found.items() if missing}

    def told(self, view: View, scope: Scope) -> Told:
        """Tell for every failure case that takes anything where it restarts."""
        recovery = (view.recovery or {}).get(scope.policy)
        return Told(recovery=self._searched(view, scope).rows if recovery is None else recovery)

    def idle_talk(self, view: View, scope: Scope) -> Sequence[str]:
        """Return the failure cases, as told, of which a row does not hold."""
        recovery = (view.recovery or {}).get(scope.policy, {})
        rescue = Rescue(view, self._stakes(scope))
        known = {failure.name: failure for failure in self._failures(scope)}
        return [
            name
            for name, rows in recovery.items()
            if name not in known or len(rescue.replay(known[name], rows)) < len(rows)
        ]

    def _searched(self, view: View, scope: Scope) -> _Recovery:
        """Return a recovery for every failure case, worked out once for a view.

        Of one that extends another, what restarts as it does there is not looked for anew.
        """
        known: dict[str, _Recovery] = view.__dict__.setdefault("searched", {})
        if scope.policy not in known:
            before = {} if view.origin is None else self._searched(view.origin[0], scope).rows
            rescue, rows, missing = Rescue(view, self._stakes(scope)), dict[str, Places](), dict[str, int]()
            for failure in self._failures(scope):
                lost, again = rescue.lost(failure), before.get(failure.name, {})
                if lost and (again.keys() != set(lost) or len(rescue.replay(failure, again)) < len(lost)):
                    again = search(rescue, failure)
                if lost and again:
                    rows[failure.name] = again
                if len(again) < len(lost):
                    missing[failure.name] = len(lost) - len(again)
            known[scope.policy] = _Recovery(rows, missing)
        return known[scope.policy]

    def too_many(self, view: View, scope: Scope, excused: Violations) -> Collection[ReplicaId]:
        """Return new replicas that a failure takes for good, those that do not restart before others.

        Where they were others restart in the failures that follow.
        """
        rows, missing = self._searched(view, scope)
        if all(count <= excused.get(name, 0) for name, count in missing.items()):
            return ()
        rescue, found = Rescue(view, self._stakes(scope)), list[ReplicaId]()
        for failure in self._failures(scope):
            if failure.name not in missing:
                continue  # whoever leaves takes no room from it
            lost = rescue.lost(failure)
            again = search(rescue, failure) if found else rows.get(failure.name, {})
            many = len(lost) - len(again) - excused.get(failure.name, 0)
            new = [replica for replica in lost if replica not in view.today.protected]
            gone = sorted(new, key=lambda r: (r in again, r in view.today.places))[: max(0, many)]
            rescue.leave(gone)
            found += gone
        return found

    def claims(self, scope: Scope) -> Claims:
        """Bar who could restart nowhere, while nobody runs who has to survive: nothing is excused then."""
        ids = self._stakes(scope).ids
        if any(row.replica.workload in ids for row in scope.current.replicas) or not self._takes_all(scope):
            return Claims()
        return Claims(barred=self._chances(scope).without)

    def guard(self, scope: Scope) -> Guard | None:
        """Keep as many GPUs idle elsewhere as each domain would lose, and out who could restart nowhere."""
        stakes, chances = self._stakes(scope), self._chances(scope)
        return StandbyGuard(stakes, self._failures(scope), scope.spec.cluster.nodes, chances)

    def workload_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish who could restart nowhere, and the MIG profiles that the roles of matched workloads name."""
        return self._chances(scope).hopeless(workload), asked_profiles(workload)

    def other_key(self, workload: Workload, scope: Scope) -> Hashable:
        """Distinguish who may be evicted among those that are not matched, and the instances that they give up."""
        if workload.id not in self._stakes(scope).evictable:
            return None
        return "evictable", asked_profiles(workload), on_any_profile(workload)

    def node_key(self, node: Node, scope: Scope) -> Hashable:
        """Distinguish nodes by the domain that may be lost, where it is wider than a node."""
        return None if self.of == NODE_LEVEL else node.domain(self.of)

    def unsound(self, spec: Spec) -> str | None:
        """Refuse unknown levels, too few domains, and more than 10,000 failure cases at once."""
        problem = level_problem(spec, self.of, gpu=False)
        if problem:
            return problem
        have = len(spec.cluster.members(self.of))
        if have <= self.domains:
            return f"the loss of {self.domains} of {have} domains of level '{self.of}' leaves nothing to restart on"
        cases = comb(have, self.domains)
        if self.domains > 1 and cases > MOST_CASES:
            return f"{cases:,} failure cases, and at most {MOST_CASES:,} are looked at where several domains are lost"
        return None

    # What is at stake.

    def _failures(self, scope: Scope) -> tuple[Failure, ...]:
        return scope.once(
            ("failures", self.of, self.domains), lambda: failures_of(scope.spec.cluster, self.of, self.domains)
        )

    def _stakes(self, scope: Scope) -> Stakes:
        return scope.once("stakes", lambda: self._found_stakes(scope))

    def _chances(self, scope: Scope) -> Chances:
        return scope.once("chances", lambda: Chances(scope.spec, scope.current, self._stakes(scope)))

    def _found_stakes(self, scope: Scope) -> Stakes:
        spec = scope.spec
        others = (w for w in spec.workloads if w.id not in scope.ids)
        evictable = frozenset(w.id for w in others if self.may_evict is not None and self.may_evict.selects(w))
        hosts = {(w.id, role.name): _open_nodes(w, role, scope) for w in scope.workloads for role in w.roles}
        return Stakes(scope.workloads, evictable, hosts)


def _open_nodes(workload: Workload, role: Role, scope: Scope) -> frozenset[str]:
    """Return the nodes that hard policies leave open to what restarts of a role; shares do on fractions."""
    every = frozenset(scope.spec.cluster.by_name)
    mode = role.request.mode if role.request.share is None else "time-slice"
    closed: frozenset[str] = frozenset()
    for policy in scope.spec.policies:
        other = scope.beside(policy)
        if policy.enforcement.kind == "hard" and workload.id in other.ids:
            closed |= policy.rule.closed_nodes(other)
            if mode in policy.rule.closes():
                closed |= every if other.nodes is None else other.nodes
    return every - closed
