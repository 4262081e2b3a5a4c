"""What a workload lacks in a plan, role by role, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from dovetail.placement import Room, View, copies
from dovetail.placement.served import served
from dovetail.plan import Plan
from dovetail.plan.forbidden import closed_nodes
from dovetail.plan.space import Space
from dovetail.plan.stranded import gpus_that_fit
from dovetail.rules import context_of
from dovetail.rules.reserve import places_of
from dovetail.spec import Request, Role, Spec, Workload


@dataclass(frozen=True, slots=True)
class Shortage:
    """What replicas of a role lack.

    Parameters
    ----------
    missing : replicas that are not admitted; of a service that asks for its rate alone, the most that would serve the
        rest of it, on the slowest hosts that it lists.
    nodes : nodes of the cluster.
    able : those that could host a replica if they were empty.
    open : those of them that no hard policy closes.
    free : idle milli-GPU on the open ones, beside what policies hold free.
    held : idle milli-GPU on them that policies hold free.
    rate : what is missing of a rate that alone is asked for, in thousandths, and the fewest replicas that would serve
        that.
    most : the most GPUs that one open node has free for such a replica.
    fit : replicas for which the open nodes have room, all of it, whatever policies say beyond closing nodes.
    """

    role: Role
    missing: int
    nodes: int
    able: int
    open: int
    free: int
    most: int
    fit: int
    held: int = 0
    rate: tuple[int, int] | None = None


def shortages(spec: Spec, plan: Plan, workload: Workload) -> tuple[Shortage, ...]:
    """Return what each role of a workload lacks that is not admitted in full."""
    context = context_of(spec)
    view = context.view(plan.placements, dict(places_of(plan.held, spec)))
    space, closed = Space(view), closed_nodes(context, workload)
    unheld = Space(context.view(plan.placements)) if view.placeholders else space
    admitted = Counter(replica.role for replica in view.admitted(workload))
    found = []
    for role in workload.roles:
        missing, rate = _missing_of_rate(view, workload) or (role.replicas - admitted[role.name], None)
        able, nodes = space.usable(workload, role, frozenset()), space.usable(workload, role, closed)
        rooms = [space.room(node) for node in nodes]
        found.append(
            Shortage(
                role=role,
                missing=missing,
                nodes=len(spec.cluster.nodes),
                able=len(able),
                open=len(nodes),
                free=space.free_milli(nodes),
                most=max((_together(room, role.request) for room in rooms), default=0),
                fit=sum(copies(room, role.request) for room in rooms),
                held=unheld.free_milli(nodes) - space.free_milli(nodes),
                rate=rate,
            )
        )
    return tuple(each for each in found if each.missing > 0)


def _missing_of_rate(view: View, workload: Workload) -> tuple[int, tuple[int, int]] | None:
    """Return the most replicas that would serve what is missing of a rate that alone is asked for, and `rate`.

    Hosts where a replica sustains nothing do not count; where there are no others, no number would serve it.
    """
    rates = [rate for rate in workload.slo.rates.values() if rate] if workload.slo is not None else []
    if workload.slo is None or not workload.asks_rate or not rates:
        return None
    missing = max(0, workload.slo.rate - served(view, workload))
    return -(-missing // min(rates)), (missing, -(-missing // max(rates)))


def _together(room: Room, request: Request) -> int:
    """Return how many GPUs of a node fit a request, those of the best island where it keeps within one."""
    fitting = gpus_that_fit(room, request)
    return max(sum(mask >> index & 1 for index in fitting) for mask in room.node.blocks(request.inside))
