"""A plan of much the same documents as a state to start from: everything where it has it, as far as that may be.

What runs stays or moves as in that plan, and what stands or falls together is where that has it: a search for a plan
that differs in little need not find again what another one has found.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from dovetail.engine.construction.field import Field
from dovetail.engine.generation.filling import Wished, grant_owed
from dovetail.model.state import State, staying
from dovetail.placement import Place, Places
from dovetail.problem import Present, Problem
from dovetail.spec import ReplicaId


def hinted(problem: Problem, hint: Places) -> State | None:
    """Return the state that a hint tells; None where it moves nothing and tells of nothing that belongs together.

    What has no room there, or what hard rules keep off, is left out, and so is what the hint leaves out. What is left
    of workloads that stand or fall together need not be enough.
    """
    today = problem.context.today.places
    if not any(_is_new(problem, replica, hint) for replica in {*today, *hint}):
        return None
    stays: dict[int, Counter[Present]] = defaultdict(Counter)
    for (node, place), replicas in problem.standing.items():
        if count := sum(hint.get(replica) == today[replica] for replica in replicas):
            stays[node][place] = count
    field = Field(problem, staying(problem, stays))
    elsewhere = [(replica, place) for replica, place in sorted(hint.items()) if today.get(replica) != place]
    wishes = [wish for replica, place in elsewhere if (wish := _wish(field, replica, place))]
    grant_owed(field, wishes, {shape.index: shape.demand for shape in problem.shapes})
    return field.state()


def _is_new(problem: Problem, replica: ReplicaId, hint: Places) -> bool:
    """Tell whether a hint has a replica elsewhere than today, or one that waits and is no matter by itself."""
    today, there = problem.context.today.places.get(replica), hint.get(replica)
    workload = problem.spec.by_id.get(replica.workload)
    return today != there and (today is not None or (workload is not None and workload.joint))


def _wish(field: Field, replica: ReplicaId, place: Place) -> Wished | None:
    """Return where a replica is wished for; None where it, the node or the GPUs are not there or have no room."""
    problem = field.problem
    shape = problem.shapes_of_role.get((replica.workload, replica.role))
    node = problem.node_index.get(place.node)
    if shape is None or node is None or not field.room_on(node, problem.shapes[shape], place.gpus):
        return None
    return Wished(node, shape, place.gpus, 1, place.instance.partition("@")[0])
