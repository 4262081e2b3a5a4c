"""The difference between what runs today and a plan that starts there (S5.3, S6.5)."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.diff.compare import diff
from dovetail.diff.model import PlanDiff
from dovetail.diff.start import DISRUPTION
from dovetail.objectives import tiers_of
from dovetail.placement import Place, View
from dovetail.plan import AdmissionResult, Outcome, Plan, TierResult, as_planned
from dovetail.plan.policies import policies_of
from dovetail.plan.promises import promises_of
from dovetail.plan.summary import OF_TODAY, state_of, summary_of
from dovetail.rules import Context, context_of
from dovetail.spec import Spec


def since_today(target: Plan, spec: Spec) -> PlanDiff:
    """Return what a plan changes of what runs today, which the Spec tells.

    The base of the difference is today written as a plan; it has no digest, and claims no bounds.
    """
    return diff(_today(context_of(as_planned(spec, target)), target), target, spec)


def _today(context: Context, target: Plan) -> Plan:
    """Return today as a plan: all that runs, judged by the places that still stand.

    What is held free, and where what is lost would restart, nobody knows of today: that is no difference.
    """
    view = context.view(context.today.places)
    return Plan(
        name=target.name,
        inputs="",
        outcome=Outcome("feasible"),
        tiers=tuple(_tiers(view, context)),
        summary={key: value for key, value in summary_of(view, context).items() if key not in OF_TODAY},
        placements={
            each.replica: Place(each.node, each.gpus, each.instance) for each in context.spec.current.replicas
        },
        admitted=dict(_admitted(view, target)),
        policies=policies_of(view, context),
        held=target.held,
        recovery=target.recovery,
        gpus=dict(view.layouts),
        shared=dict(view.shared),
        promises=promises_of(view),
    )


def _tiers(view: View, context: Context) -> Iterator[TierResult]:
    for tier in tiers_of(context):
        if tier.name not in DISRUPTION:
            yield TierResult(tier.name, tier.measure(view, context), None, tier.unit, tier.sense, "none")


def _admitted(view: View, target: Plan) -> Iterator[tuple[str, AdmissionResult]]:
    """Yield what does not run in full; why it waits is what the plan says, where the plan changes nothing.

    A service that asks for a rate alone runs in full with fewer replicas than it may have.
    """
    for workload in view.spec.workloads:
        running = len(view.present_by_workload.get(workload.id, ()))
        if running < workload.replicas and state_of(view, workload) != "full":
            told = target.admitted.get(workload.id)
            waits = AdmissionResult("partial" if running else "none", running, workload.replicas)
            yield workload.id, told if told is not None and told.replicas == running else waits
