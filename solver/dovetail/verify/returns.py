"""Who of those that a plan evicts could simply be where they run today, beside all that the plan admits (S5.3).

That refutes a plan which says that no more can be retained. One that leaves it open may have been cut short.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice

from dovetail.objectives.admitted import Retained
from dovetail.placement import Place, Places, Room, View, mix_holds
from dovetail.placement.nested import groups_missing
from dovetail.spec import ReplicaId, Workload
from dovetail.verify.case import Case

_MOST = 20  # of a workload's replicas that are tried one by one


class Returns:
    """A plan's nodes with what they have left, asked whether preemptible work could stay where it is.

    Nobody is moved or started anew for it, and no GPU is cut or set in another way: what is found is a better plan,
    for certain. Where a hard policy searches a placement of its own nothing is.
    """

    def __init__(self, case: Case) -> None:
        self._case, self._view = case, case.view
        self._rooms = case.view.fresh_rooms()
        self._bounds = {tier.name: tier.bound for tier in case.plan.tiers}
        self._silent = any(policy.rule.searches for policy in case.hard)

    def first(self, workload: Workload) -> ReplicaId | None:
        """Return a replica of a workload that was evicted for nothing: with all others of it, or alone."""
        if self._silent:
            return None
        today = self._case.context.today
        gone = {r: today.places[r] for r in self._view.evicted(workload) if r in today.preemptible}
        for some in (gone, *({replica: place} for replica, place in islice(gone.items(), _MOST))):
            if self._fits(some) and self._is_better(workload, some):
                return min(some)
        return None

    def _fits(self, some: Places) -> bool:
        """Tell whether there is room for some replicas together."""
        taken: list[tuple[Room, ReplicaId, Place]] = []
        for replica, place in some.items():
            node = self._case.spec.cluster.by_name[place.node]
            room = self._rooms.setdefault(node.name, Room(node, self._case.spec.accelerators))
            request = self._view.role(replica).request
            if room.lacks(request, place.gpus, place.instance, running=True) is not None:
                break
            room.take(request, place.gpus, place.instance)
            taken.append((room, replica, place))
        for room, replica, place in taken:
            room.give(self._view.role(replica).request, place.gpus, place.instance)
        return bool(some) and len(taken) == len(some)

    def _is_better(self, workload: Workload, some: Places) -> bool:
        """Tell whether the plan with some more replicas keeps every rule and refutes a bound."""
        again = self._view.extended(workload, some)
        return (
            _as_cut(self._view, again)
            and not again.restarted & some.keys()
            and _may_be(again, workload)
            and self._case.keeps_hard_policies(again)
            and self._beats_bound(workload, again)
        )

    def _beats_bound(self, workload: Workload, again: View) -> bool:
        """Tell whether more is retained than the plan says can be, no earlier tier being worse."""
        context, own = self._case.context, Retained(self._case.spec.band_of(workload))
        for tier in self._case.tiers:
            after = tier.measure(again, context)
            if tier == own:
                bound = self._bounds.get(tier.name)
                return bound is not None and after > bound
            before = tier.measure(self._view, context)
            if after < before if tier.sense == "max" else after > before:
                return False
        return False


def _as_cut(view: View, again: View) -> bool:
    """Tell whether GPUs are cut and set in both as in the first, as far as anybody is on them there."""
    alike = (again.settings.get(pool) == setting for pool, setting in view.settings.items())
    return again.layouts == view.layouts and all(alike)


def _may_be(view: View, workload: Workload) -> bool:
    """Tell whether a workload may be admitted with the replicas that a view has of it."""
    own: Mapping[ReplicaId, Place] = {replica: view.places[replica] for replica in view.admitted(workload)}
    return (
        workload.allows(Counter(replica.role for replica in own))
        and not groups_missing(workload, own)
        and mix_holds(view.spec, workload, own)
    )
