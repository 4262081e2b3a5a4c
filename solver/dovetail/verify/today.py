"""Checks of what the current state is owed (S5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dovetail.objectives.admitted import Admitted
from dovetail.objectives.violations import Mend
from dovetail.placement import Place
from dovetail.spec import ReplicaId, Workload
from dovetail.verify.case import Case
from dovetail.verify.model import Finding
from dovetail.verify.returns import Returns


def protected(case: Case) -> Iterator[Finding]:
    """What runs, is not preemptible and still has its place stays admitted."""
    if case.has_plan:
        for replica in sorted(case.context.today.protected):
            if replica not in case.plan.placements:
                yield Finding(str(replica), "runs today, is protected, and is not admitted")


def precedence(case: Case) -> Iterator[Finding]:
    """Of a role's replicas those that run are admitted before those whose place is gone, both before others (S6.5).

    Of what could not go on as it is, both come before others, in any order. Who of groups goes on follows from which
    groups are whole.
    """
    if not case.has_plan:
        return
    left_out: dict[tuple[str, str], ReplicaId] = {}
    turn = _turns(case)
    for replica in sorted(case.context.today.present(), key=lambda each: (turn(each), each)):
        if replica not in case.plan.placements and not case.spec.by_id[replica.workload].grouped:
            left_out.setdefault((replica.workload, replica.role), replica)
    for replica in sorted(case.plan.placements):
        first = left_out.get((replica.workload, replica.role))
        if first is not None and turn(replica) > turn(first):
            yield Finding(str(replica), f"is admitted before {first}, whose turn is earlier")


def _turns(case: Case) -> Callable[[ReplicaId], int]:
    """Return what tells when it is whose turn: what must or may go on, what was hit, what waits."""
    today = case.context.today
    present = frozenset(today.present())
    return lambda replica: (
        0 if replica in today.protected or replica in today.preemptible else 1 if replica in present else 2
    )


def fixed(case: Case) -> Iterator[Finding]:
    """What runs and is not movable stays exactly where it is, while it is admitted."""
    for replica in sorted(case.context.today.fixed):
        place, planned = case.context.today.places[replica], case.plan.placements.get(replica)
        if planned is not None and planned != place:
            yield Finding(str(replica), f"may not be moved from {place.node} {list(place.gpus)}")
        elif replica in case.view.restarted and planned is not None:
            yield Finding(str(replica), "may not be moved, and its GPU is cut anew under it")


def retained(case: Case) -> Iterator[Finding]:
    """Preemptible work is evicted only where a strictly higher band gains by it, or a hard policy is mended.

    Where the plan says that no more can be retained, nobody is evicted who could be on its place beside all that the
    plan admits, with every rule kept.
    """
    today = case.context.today
    lost = [w for w in case.spec.workloads if any(r in today.preemptible for r in case.view.evicted(w))]
    if not case.has_plan or not lost:
        return
    idle, returns = set(_without_gain(case, lost)), Returns(case)
    for workload in lost:
        if workload.id in idle:
            evicted = (r for r in case.view.evicted(workload) if r in today.preemptible)
            yield Finding(str(next(evicted)), "is evicted though no higher priority gains")
        elif (back := returns.first(workload)) is not None:
            yield Finding(str(back), "is evicted as if it had to be, and has room beside all that the plan admits")


def _without_gain(case: Case, workloads: Sequence[Workload]) -> Iterator[str]:
    """Yield which workloads go though no strictly higher band gains anything.

    What is compared with is today going on as it is, without workloads that run with too few replicas. Nothing is
    asked where that may not be: a hard policy that excuses nothing (`admission`) is broken, hard policies that each
    have room for the places they hold have none together, or who restarts for such a place may not. Nor where the
    objective does not put admission first.
    """
    if not _admission_first(case) or _must_change(case) or _holding_disturbs(case):
        return
    for workload in workloads:
        if not _somebody_gains(case, workload) and not _makes_room_to_hold(case, workload):
            yield workload.id


def _admission_first(case: Case) -> bool:
    return [tier for tier in case.spec.objective.tiers if tier != "mend"][:1] == ["admitted"]


def _must_change(case: Case) -> bool:
    violations = case.context.violations(case.unchanged)
    return any(any(violations[policy.name].values()) for policy in case.hard if not policy.rule.grandfathered)


def _holding_disturbs(case: Case) -> bool:
    """Tell whether places that hard policies could hold beside today's work restart there who may not restart.

    GPUs are set or cut anew for them, which may be against `movable: false` or a policy of moves.
    """
    held = dict[str, tuple[Place, ...]]()
    for policy in case.hard:
        if policy.rule.placeholders(policy):
            view = case.context.view(case.unchanged.places, dict(held))
            held[policy.name] = policy.rule.could_hold(view, case.context.scopes[policy.name])
    view = case.context.view(case.unchanged.places, held)
    return bool(view.restarted) and (
        not view.restarted.isdisjoint(case.context.today.fixed) or not case.keeps_hard_policies(view)
    )


def _makes_room_to_hold(case: Case, workload: Workload) -> bool:
    """Tell whether places that several hard policies hold in the plan lack room beside a workload of today.

    What today excuses is counted for each policy alone (S4.5), so together they may ask for more than is excused.
    """
    hard = {policy.name for policy in case.hard}
    held = [(r, place) for r, place in case.view.placeholders if case.spec.by_id[r.workload].holds in hard]
    if len({replica.workload for replica, _ in held}) < 2:
        return False
    own = {place.node for r, place in case.context.today.places.items() if r.workload == workload.id}
    rooms = case.unchanged.fresh_rooms()
    for replica, place in held:
        if place.node in own and place.node in rooms:
            request, room = case.view.role(replica).request, rooms[place.node]
            if room.lacks(request, place.gpus, place.instance) is not None:
                return True
            room.take(request, place.gpus, place.instance)
    return False


def _somebody_gains(case: Case, workload: Workload) -> bool:
    band = case.spec.band_of(workload)
    higher = [Admitted(b, gpu) for b in case.spec.bands if b > band for gpu in (True, False)]
    if any(tier.measure(case.view, case.context) > tier.measure(case.unchanged, case.context) for tier in higher):
        return True
    return Mend().measure(case.view, case.context) < Mend().measure(case.unchanged, case.context)
