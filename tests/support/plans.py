"""Makes valid plans without an engine: a greedy placement, with every tier measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dovetail.objectives import tiers_of
from dovetail.placement import Place, Places, Room, mix_holds, obstacle
from dovetail.plan import Outcome, Plan, SecondOpinion, Status, TierResult, finish
from dovetail.rules import Context, context_of
from dovetail.spec import ReplicaId, Request, Spec, Workload


def plan_for(
    spec: Spec, places: Places, status: Status = "optimal", *, second_opinion: SecondOpinion | None = None
) -> Plan:
    """Return the plan with given places; a plan called optimal has every value as its bound, and the other way."""
    context = context_of(spec)
    tiers = measured(context, places, proved=status == "optimal")
    outcome = Outcome("optimal" if all(tier.proved for tier in tiers) else status)
    return finish(context, places, tiers, outcome, second_opinion=second_opinion)


def measured(context: Context, places: Places, *, proved: bool) -> tuple[TierResult, ...]:
    """Return every tier with its value, and a bound that is the value (`proved`) or arithmetic."""
    view = context.view(places)
    found: list[TierResult] = []
    for tier in tiers_of(context):
        value, limit = tier.measure(view, context), tier.limit(context)
        given = {earlier.name: earlier.value for earlier in found}
        bound, proof = (limit, "trivial") if value == limit or not proved else (value, "solver")
        found.append(TierResult(tier.name, value, bound, tier.unit, tier.sense, proof, given))  # type: ignore[arg-type]
    return tuple(found)


def greedy_plan(spec: Spec) -> Plan:
    """Return a valid plan: what runs goes on, then workloads by priority, each as far as it fits."""
    return plan_for(spec, greedy(spec), "feasible")


PLANNERS: dict[str, Callable[[Spec], Plan]] = {"greedy": greedy_plan}
"""Everything that makes plans which must verify; an engine joins with a line here."""


def greedy(spec: Spec) -> dict[ReplicaId, Place]:
    """Return a valid placement, rather short of the best one."""
    context = context_of(spec)
    places = dict(context.today.places)
    for workload in spec.workloads:
        running = [replica for replica in places if replica.workload == workload.id]
        if not mix_holds(spec, workload, places) or len(running) < workload.min_replicas:
            for replica in running:
                del places[replica]
    for workload in sorted(spec.workloads, key=lambda w: (-w.priority, w.id)):
        _admit(context, workload, places)
    return dict(sorted(places.items()))


def _admit(context: Context, workload: Workload, places: dict[ReplicaId, Place]) -> None:
    """Add what fits of a workload; all of it goes again where too few fit."""
    before, today = dict(places), context.today
    full: set[str] = set()
    for replica in sorted(
        workload.replica_ids(), key=lambda each: (each not in today.places, each not in today.lost)
    ):
        if replica in places or replica.role in full:
            continue
        for place in _options(context, workload, replica, places):
            places[replica] = place
            if _allowed(context, workload, places, replica):
                break
            del places[replica]
        else:
            full.add(replica.role)
    own = [replica for replica in places if replica.workload == workload.id]
    if len(own) < workload.min_replicas or not _policies_hold(context, places):
        places.clear()
        places.update(before)


def _options(
    context: Context, workload: Workload, replica: ReplicaId, places: Mapping[ReplicaId, Place]
) -> Iterator[Place]:
    spec = context.spec
    role = workload.by_role[replica.role]
    today = context.today.places.get(replica)
    if today is not None:
        yield from ([today] if _rooms(spec, places)[today.node].lacks(role.request, today.gpus) is None else [])
        if not workload.movable:
            return
    rooms = _rooms(spec, places)
    for node in spec.cluster.nodes:
        if obstacle(workload, role, node, spec.accelerators) is None:
            yield from _fitting(rooms[node.name], role.request)


def _fitting(room: Room, request: Request) -> Iterator[Place]:
    if request.share is not None:
        choices = [(index,) for index in range(room.node.gpus)]
    else:
        free = [i for i in range(room.node.gpus) if room.lacks(Request(gpus=1), (i,)) is None]
        choices = [tuple(free[: request.gpus])]  # type: ignore[list-item]
    for gpus in choices:
        if room.lacks(request, gpus) is None:
            yield Place(room.node.name, gpus)


def _rooms(spec: Spec, places: Mapping[ReplicaId, Place]) -> dict[str, Room]:
    rooms = {node.name: Room(node, spec.accelerators) for node in spec.cluster.nodes}
    for replica, place in places.items():
        rooms[place.node].take(spec.by_id[replica.workload].by_role[replica.role].request, place.gpus)
    return rooms


def _allowed(context: Context, workload: Workload, places: Places, replica: ReplicaId) -> bool:
    return mix_holds(context.spec, workload, places) and (
        workload.min_replicas > 1 or _policies_hold(context, places)
    )


def _policies_hold(context: Context, places: Places) -> bool:
    violations = context.violations(context.view(places))
    return all(
        count <= context.tolerated[policy.name].get(subject, 0)
        for policy in context.spec.policies
        if policy.enforcement.kind == "hard"
        for subject, count in violations[policy.name].items()
    )
