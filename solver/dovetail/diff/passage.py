"""The way from a base to a target, as the target's documents see it: who starts anew, and what that costs (S5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from dovetail.diff.model import Cost
from dovetail.diff.start import tells_start
from dovetail.mig import parse_instance
from dovetail.objectives.disruption import GpuTimeLost
from dovetail.placement import Place, View
from dovetail.placement.layouts import restarted
from dovetail.plan import current_of
from dovetail.plan.model import Plan
from dovetail.rules import Context, context_of
from dovetail.spec import ReplicaId, Spec


@dataclass(frozen=True)
class Passage:
    """A target beside what runs when it is carried out; by the same measures as the disruption tiers."""

    context: Context
    view: View

    @cached_property
    def in_place(self) -> Mapping[ReplicaId, str]:
        """The replicas that start anew on the place that they have, and why."""
        today, places = self.context.today, self.view.places
        cut = restarted(self.context.spec, self.view.recut, today.places, places)
        gone = {r: "the place was gone" for r, place in today.lost.items() if places.get(r) == place}
        set_anew = dict.fromkeys(self.view.restarted, "GPUs are shared in another way")
        return {**gone, **set_anew, **dict.fromkeys(cut & self.view.restarted, "GPUs are cut anew")}

    def cost(self) -> Cost:
        """Return what it costs."""
        workloads = self.context.spec.workloads
        evicted = [len(self.view.evicted(workload)) for workload in workloads]
        return Cost(
            moves=sum(len(self.view.moved(workload)) for workload in workloads),
            restarts=sum(self._restarts(workload.id) for workload in workloads),
            evicted_workloads=sum(count > 0 for count in evicted),
            evicted_replicas=sum(evicted),
            gpu_time_lost=GpuTimeLost().measure(self.view, self.context),
        )

    def _restarts(self, workload: str) -> int:
        """Count the replicas of a workload that ran, run on, and start anew."""
        view = self.view
        running = [r for r in view.present_by_workload.get(workload, ()) if r in view.places]
        moved = view.today.lost.keys() | view.restarted
        anew = [r for r in running if r in moved or view.today.places[r] != view.places[r]]
        return len(running) if anew and view.spec.by_id[workload].atomic else len(anew)


def passage_from(base: Plan, target: Plan, spec: Spec) -> Passage:
    """Return the way to a target that starts from a base, which the documents tell as today, or else the plan itself.

    Only the documents know how long it has run; how GPUs are cut and shared a base plan tells.
    """
    if tells_start(spec, target):
        return own_passage(target, spec)
    start = replace(current_of(base), elapsed=spec.current.elapsed)
    return own_passage(target, replace(spec, current=start))


def own_passage(target: Plan, spec: Spec) -> Passage:
    """Return the way to a target from what a Spec tells of today."""
    context = context_of(spec)
    known = {replica: place for replica, place in target.placements.items() if _is_known(spec, replica, place)}
    return Passage(context, context.view(known))


def _is_known(spec: Spec, replica: ReplicaId, place: Place) -> bool:
    """Tell whether the documents know all of a row; a diff of a plan with other documents' rows still has a cost."""
    workload, node = spec.by_id.get(replica.workload), spec.cluster.by_name.get(place.node)
    role = workload.by_role.get(replica.role) if workload else None
    if role is None or node is None or role.request.gpu_count != len(place.gpus):
        return False
    card = spec.accelerators.get(node.accelerator or "")
    profiles = card.mig.by_name if card and card.mig else {}
    return max(place.gpus, default=-1) < node.gpus and (
        not place.instance or parse_instance(place.instance).profile in profiles
    )
