"""Whether hard policies, and not room, keep work out of a finished placement."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from itertools import islice
from typing import Final, cast

from dovetail.placement import Place, Places, View
from dovetail.plan.space import Space, Wanting
from dovetail.rules import Context, Violations
from dovetail.spec import Policy, ReplicaId, Role, Workload

MOST_TRIALS: Final = 256
"""Trial placements per plan; after them nothing more is claimed about policies."""


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
        self.hard = [p for p in context.spec.policies if p.enforcement.kind == "hard"]
        self._before: dict[str, Violations] = {}
        self.amounts = [p for p in self.hard if not p.rule.judges_places]

    def all_forbidden(self, workload: Workload, missing: Sequence[Wanting], needed: int, space: Space) -> bool:
        """Tell whether it is certain that hard policies forbid `needed` more replicas of a workload.

        One more replica is tried on every place there is room for. Several together are only held against rules
        that do not judge places, such as quotas.
        """
        if not self.hard:
            return False
        if needed > 1:
            if needed < sum(wanting.replicas for wanting in missing) and len(missing) > 1:
                return False  # which roles would join is open, and so is what they ask for
            return self._breaks(workload, self._several(workload, missing, needed, space), self.amounts)
        return all(self._one_forbidden(workload, wanting, space) for wanting in missing)

    def _one_forbidden(self, workload: Workload, wanting: Wanting, space: Space) -> bool:
        replica = self._absent(workload, wanting.role, 1)[0]
        options = list(islice(space.options(wanting), self.left + 1))
        if options and self._breaks(workload, {replica: options[0]}, self.amounts):
            return True
        if len(options) > self.left:
            return False
        return all(self._breaks(workload, {replica: place}, self.hard) for place in options)

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
        view = _extended(self.view, workload, more)
        return any(self._broken(policy, view) for policy in policies)

    def _broken(self, policy: Policy, view: View) -> bool:
        excused = self.context.tolerated.get(policy.name, {})
        if policy.name not in self._before:
            self._before[policy.name] = policy.rule.check(self.view, self.context.scopes[policy.name])
        before = self._before[policy.name]
        after = policy.rule.check(view, self.context.scopes[policy.name])
        return any(n > max(excused.get(s, 0), before.get(s, 0)) for s, n in after.items())


def _extended(view: View, workload: Workload, more: Places) -> View:
    """Return a view with more replicas of a workload, without sorting all of them anew."""
    places = ChainMap(dict(more), cast("dict[ReplicaId, Place]", view.places))  # read only
    extended = View(view.spec, places, view.today)
    own = tuple(sorted([*view.admitted(workload), *more]))
    extended.__dict__["by_workload"] = {**view.by_workload, workload.id: own}
    return extended
