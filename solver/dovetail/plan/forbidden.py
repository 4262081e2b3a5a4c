"""Whether hard policies, and not room, keep work out of a finished placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import islice, takewhile
from typing import Final

from dovetail.placement import Place, Places, View
from dovetail.plan.space import Space, Wanting
from dovetail.rules import Context, Guard, Violations
from dovetail.rules.guards import ApartGuard, CrowdGuard, SkewGuard, domain_of
from dovetail.rules.totals import TotalGuard
from dovetail.spec import Node, Policy, ReplicaId, Role, Spec, Workload

MOST_TRIALS: Final = 256
"""Trial placements per plan; after them nothing more is claimed about policies."""

_SEARCHED: Final = 1_000
"""Of so many replicas, a policy that searches a placement on its own takes as long as a trial."""


def closed_nodes(context: Context, workload: Workload) -> frozenset[str]:
    """Return the nodes that hard policies close to a workload, whatever else runs."""
    found: frozenset[str] = frozenset()
    for policy in context.spec.policies:
        scope = context.scopes[policy.name]
        if policy.enforcement.kind == "hard" and workload.id in scope.ids:
            found |= policy.rule.closed_nodes(scope)
    return found


class Trials:
    """Tries places for replicas that are left out, and asks the hard policies."""

    def __init__(self, view: View, context: Context) -> None:
        self.view = view
        self.context = context
        self.left = MOST_TRIALS
        self._before: dict[str, Violations] = {}
        self._guards: dict[str, Guard | None] = {}

    @cached_property
    def _mended_first(self) -> bool:
        """Whether nothing is admitted for which more stays broken, though today excuses that."""
        return "mend" in takewhile(lambda tier: tier != "admitted", self.view.spec.objective.tiers)

    @cached_property
    def _every_hard(self) -> list[Policy]:
        return [policy for policy in self.context.spec.policies if policy.enforcement.kind == "hard"]

    @cached_property
    def hard(self) -> list[Policy]:
        """The hard policies that one replica more can break, and then whatever follows cannot mend.

        A rule without an account is broken on closed nodes only, and these are no options, or, as an `admission`, by
        what is missing.
        """
        return [policy for policy in self._every_hard if self.guard(policy) is not None]

    @cached_property
    def amounts(self) -> list[Policy]:
        """Those of the hard policies that do not judge places, such as quotas."""
        return [policy for policy in self.hard if not policy.rule.judges_places]

    def all_forbidden(self, workload: Workload, missing: Sequence[Wanting], needed: int, space: Space) -> bool:
        """Tell whether it is certain that hard policies forbid `needed` more replicas of a workload.

        One more replica is tried on every place there is room for. Several together are only held against rules
        that do not judge places, such as quotas, and where domains must be even against their number.
        """
        if self._waits_for_others(workload):
            return True
        if not self.hard:
            return False
        total = sum(wanting.replicas for wanting in missing)
        rounds = {p.name: found for p in self.hard if (found := self._round(p, workload, missing)) is not None}
        if any(total // len(found) * len(found) < needed for found in rounds.values()):
            return True
        if needed > 1:
            if needed < total and len(missing) > 1:
                return False  # which roles would join is open, and so is what they ask for
            return self._breaks(workload, self._several(workload, missing, needed, space), self.amounts)
        # Where one alone may not join, one in each domain may.
        open_to = {name for name, found in rounds.items() if all(map(space.any_room, found))}
        hard = [policy for policy in self.hard if policy.name not in open_to]
        return all(self._one_forbidden(workload, wanting, space, hard) for wanting in missing)

    def _waits_for_others(self, workload: Workload) -> bool:
        """Tell whether a hard policy admits a workload with others only, and these are left out."""
        bound = ((policy.rule, self.context.scopes[policy.name]) for policy in self._every_hard)
        return any(
            workload.id in scope.ids and rule.waits_for_others(workload, self.view, scope) for rule, scope in bound
        )

    def _round(
        self, policy: Policy, workload: Workload, missing: Sequence[Wanting]
    ) -> Sequence[Sequence[Wanting]] | None:
        """Return, per domain, what is missing and may be there, where a policy lets replicas join all at once only.

        None where it may let others join: today's differences are excused, and what lies in no domain is free.
        """
        guard = self.guard(policy)
        if not isinstance(guard, SkewGuard) or guard.skew or self.context.tolerated.get(policy.name):
            return None
        domains: dict[str | None, list[Wanting]] = {path: [] for path in guard.eligible.get(workload.id, ())}
        if len(domains) < 2 or guard.ahead(workload):
            return None
        for wanting in missing:
            nodes: dict[str | None, list[Node]] = {}
            for node in wanting.nodes:
                nodes.setdefault(domain_of(guard.level, guard.scope, node, None), []).append(node)
            for path, inside in nodes.items():
                domains.setdefault(path, []).append(wanting._replace(nodes=tuple(inside)))
        return None if None in domains else list(domains.values())

    def _one_forbidden(self, workload: Workload, wanting: Wanting, space: Space, hard: Sequence[Policy]) -> bool:
        replica = self._absent(workload, wanting.role, 1)[0]
        first = next(space.options(wanting), None)
        allowed = self.left + 1
        if first is not None and self._breaks(workload, {replica: first}, self.amounts):
            return True
        options = list(islice(space.options(wanting), allowed))
        if len(options) > self.left:
            return False
        return all(self._breaks(workload, {replica: place}, hard) for place in options)

    def _several(self, workload: Workload, missing: Sequence[Wanting], needed: int, space: Space) -> Places:
        """Return `needed` more replicas, each role on one of its places: only amounts count."""
        found: dict[ReplicaId, Place] = {}
        for wanting in missing:
            where = next(space.options(wanting))
            found |= dict.fromkeys(self._absent(workload, wanting.role, min(wanting.replicas, needed)), where)
        return found

    def _absent(self, workload: Workload, role: Role, count: int) -> list[ReplicaId]:
        every = (ReplicaId(workload.id, role.name, index) for index in range(role.replicas))
        return list(islice((replica for replica in every if replica not in self.view.places), count))

    def _breaks(self, workload: Workload, more: Places, policies: Sequence[Policy]) -> bool:
        """Tell whether adding replicas breaks one of some hard policies beyond what today excuses."""
        if not policies or self.left <= 0:
            return False
        self.left -= 1
        suspects = [policy for policy in policies if self._rises(policy, workload, more)]
        if any(self._certain(policy, more) for policy in suspects):
            return True
        if any(policy.rule.searches for policy in suspects):
            self.left -= len(self.view.places) // _SEARCHED
        view = self.view.extended(workload, more)
        return any(self._broken(policy, view) for policy in suspects)

    def forbidding(self, workload: Workload, more: Places, policies: Sequence[Policy]) -> list[Policy] | None:
        """Return which of some hard policies forbid more replicas, None where that is not known: trials are used up.

        Those that keep no account are looked at in full, and so are those about modes, as what a share lands on is
        not known to an account.
        """
        blind = {p.name for p in policies if self.guard(p) is None or p.rule.closes()}
        suspects = [p for p in policies if p.name in blind or self._rises(p, workload, more)]
        found = [p for p in suspects if p.name not in blind and self._certain(p, more)]
        open_yet = [p for p in suspects if p not in found]
        if not open_yet:
            return found
        if self.left <= 0:
            return None
        self.left -= 1
        view = self.view.extended(workload, more)
        return [*found, *(p for p in open_yet if self._broken(p, view))]

    def _certain(self, policy: Policy, more: Places) -> bool:
        """Tell whether a policy whose account would be broken is broken for sure: the account is exact there."""
        guard = self.guard(policy)
        if self.context.tolerated.get(policy.name):
            return False
        if isinstance(guard, ApartGuard):
            wanted = [_of_guard(self.view.spec, replica, place) for replica, place in more.items()]
            return any(guard.clashes(workload, node, gpu) for workload, _, node, gpu in wanted)
        return isinstance(guard, TotalGuard) or (isinstance(guard, CrowdGuard) and not guard.gpus_alone)

    def _rises(self, policy: Policy, workload: Workload, more: Places) -> bool:
        """Tell whether a policy's account holds it possible that adding replicas raises a violation."""
        guard = self.guard(policy)
        if guard is None:
            return False
        added = []
        try:
            for replica, place in more.items():
                it = _of_guard(self.view.spec, replica, place)
                if guard.blocks(*it):
                    return True
                guard.add(*it, 1)
                added.append(it)
        finally:
            for it in added:
                guard.add(*it, -1)
        return False

    def guard(self, policy: Policy) -> Guard | None:
        """Return a policy's account of the placement as it is, None where the rule keeps none."""
        if policy.name not in self._guards:
            scope = self.context.scopes[policy.name]
            guard = self._guards[policy.name] = policy.rule.guard(scope)
            if guard is not None:
                own = isinstance(guard, CrowdGuard | SkewGuard) or type(guard) is TotalGuard
                for (workload, role, node, gpu), count in self._placed.items():
                    if not own or workload in scope.ids:
                        work = self.view.spec.by_id[workload]
                        guard.add(work, work.by_role[role], self.view.spec.cluster.by_name[node], gpu, count)
        return self._guards[policy.name]

    @cached_property
    def _placed(self) -> Counter[tuple[str, str, str, int | None]]:
        """How many replicas of each role there are on each node, shares by GPU."""
        found: Counter[tuple[str, str, str, int | None]] = Counter()
        for replica, place in self.view.places.items():
            shared = self.view.role(replica).request.partial
            found[replica.workload, replica.role, place.node, place.gpus[0] if shared else None] += 1
        return found

    def _broken(self, policy: Policy, view: View) -> bool:
        excused = {} if self._mended_first else self.context.tolerated.get(policy.name, {})
        if policy.name not in self._before:
            self._before[policy.name] = policy.rule.check(self.view, self.context.scopes[policy.name])
        before = self._before[policy.name]
        after = policy.rule.check(view, self.context.scopes[policy.name])
        return any(n > max(excused.get(s, 0), before.get(s, 0)) for s, n in after.items())


def _of_guard(spec: Spec, replica: ReplicaId, place: Place) -> tuple[Workload, Role, Node, int | None]:
    """Return what a guard wants to know of a replica and its place."""
    workload = spec.by_id[replica.workload]
    role = workload.by_role[replica.role]
    return workload, role, spec.cluster.by_name[place.node], place.gpus[0] if role.request.partial else None
