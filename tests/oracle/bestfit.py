"""Best fit, the baseline that a plan is measured against: one replica after the other where it leaves least free.

What runs and may go on as it is stays; nothing is moved or evicted. Waiting replicas come by priority, then by
identity; hard policies hold after every workload.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.brute import Stock, keeps_hard, stock_of, welcomes

from dovetail.placement import Place, Places, mix_holds
from dovetail.rules import Context
from dovetail.spec import ReplicaId, Role, Workload


def best_fit(context: Context) -> Places:
    """Return where best fit puts the replicas of a Spec."""
    today = context.today
    places = {r: p for r, p in today.places.items() if r in today.protected | today.preemptible}
    stock = stock_of(context.spec)
    for replica, place in places.items():
        stock[place.node].change(_role(context, replica), place.gpus, 1)
    for workload in sorted(context.spec.workloads, key=lambda w: (-w.priority, w.id)):
        _admit(context, workload, places, stock)
    return places


def _role(context: Context, replica: ReplicaId) -> Role:
    return context.spec.by_id[replica.workload].by_role[replica.role]


def _admit(context: Context, workload: Workload, places: dict[ReplicaId, Place], stock: dict[str, Stock]) -> None:
    added: list[ReplicaId] = []
    alone = workload.min_replicas <= 1
    for replica in workload.replica_ids():
        role = _role(context, replica)
        if replica in places or (replica in context.today.places and not workload.movable):
            continue
        for place in sorted(_fitting(workload, role, stock), key=lambda p: (_left(stock[p.node], role, p), p)):
            places[replica] = place
            if mix_holds(context.spec, workload, places) and (not alone or keeps_hard(context, context.view(places))):
                stock[place.node].change(role, place.gpus, 1)
                added.append(replica)
                break
            del places[replica]
    own = sum(replica.workload == workload.id for replica in places)
    if own < workload.min_replicas or not keeps_hard(context, context.view(places)):
        for replica in added:
            place = places.pop(replica)
            stock[place.node].change(_role(context, replica), place.gpus, -1)


def _fitting(workload: Workload, role: Role, stock: dict[str, Stock]) -> Iterator[Place]:
    for name, one in stock.items():
        if not welcomes(workload, role, one.node):
            continue
        if role.request.share is None:
            free = tuple(gpu for gpu, holders in one.holders.items() if not holders)[: role.request.gpus]
            choices = [free] if len(free) == role.request.gpus else []
        else:
            choices = [(gpu,) for gpu in one.compute]
        yield from (Place(name, gpus) for gpus in choices if one.fits(role, gpus))


def _left(stock: Stock, role: Role, place: Place) -> tuple[int, int, int]:
    """Return the free milli-GPU on the GPU in question, on the node, and its free milli-cores, after placing."""
    on_gpu = stock.compute[place.gpus[0]] if role.request.share else 0
    return on_gpu, sum(stock.compute.values()) - role.request.gpu_milli, stock.cpu - role.request.cpu
