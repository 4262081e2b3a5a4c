"""A plan of much the same documents as a state to start from: everything where it has it, as far as that may be.

What runs stays or moves as in that plan, and what stands or falls together is where that has it: a search for a plan
that differs in little need not find again what another one has found.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from dovetail.engine.construction.field import Field
from dovetail.engine.generation.filling import Wished, grant_owed
from dovetail.model.state import State, staying
from dovetail.placement import Places
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
    wishes = [each for replica in sorted(hint) for each in _wish(problem, replica, hint)]
    grant_owed(field, wishes, {shape.index: shape.demand for shape in problem.shapes})
    return field.state()


def _is_new(problem: Problem, replica: ReplicaId, hint: Places) -> bool:
    """Tell whether a hint has a replica elsewhere than today, or one that waits and is no matter by itself."""
    today, there = problem.context.today.places.get(replica), hint.get(replica)
    workload = problem.spec.by_id.get(replica.workload)
    return today != there and (today is not None or (workload is not None and workload.joint))


def _wish(problem: Problem, replica: ReplicaId, hint: Places) -> list[Wished]:
    """Return where a hint has a replica, unless that stays; nothing where replica, node or GPUs are not there."""
    place = hint[replica]
    shape = problem.shapes_of_role.get((replica.workload, replica.role))
    node = problem.node_index.get(place.node)
    stays = problem.context.today.places.get(replica) == place
    if stays or shape is None or node is None or not _has(problem, node, shape, place.gpus):
        return []
    return [(node, shape, place.gpus, 1)]


def _has(problem: Problem, node: int, shape: int, gpus: tuple[int, ...]) -> bool:
    """Tell whether a node has GPUs, as many as a replica takes."""
    there, count = problem.nodes[node].healthy_gpus(), problem.shapes[shape].request.gpu_count
    return len(set(gpus)) == len(gpus) == count and all(gpu in there for gpu in gpus)
