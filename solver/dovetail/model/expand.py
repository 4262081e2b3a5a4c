"""From counts back to names: which replica is where, running ones first, in canonical order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping

from dovetail.model.ranks import Ranks, claim
from dovetail.model.seats import is_pinned, whole_gpus, without_kept
from dovetail.model.starts import new_instances
from dovetail.model.state import Fill, Slot, State
from dovetail.placement import Place, Places
from dovetail.problem import Problem
from dovetail.spec import ReplicaId


def expand(problem: Problem, state: State, cut_first: bool = False) -> Places:
    """Give every admitted replica its node and GPUs.

    Replicas that stay keep their place; the other running ones of a shape take the next places, then those that
    wait, each in canonical order. Whole GPUs are those that are not cut today where there are enough of them, or the
    other way round (`cut_first`), which leaves others for what restarts after a failure.
    """
    places: dict[ReplicaId, Place] = {}
    open_places: dict[int, list[Place]] = defaultdict(list)
    stayed = {key: list(replicas) for key, replicas in problem.standing.items()}
    known: dict[Hashable, list[tuple[int, tuple[int, ...]]]] = {}  # what is on which GPUs, by contents
    for index in sorted(state.fills):
        fill = state.fills[index]
        for present, count in sorted(fill.kept.items()):
            place = Place(problem.nodes[index].name, present.gpus, present.instance)
            for _ in range(count):
                places[stayed[index, present].pop(0)] = place
        if not _is_plain(problem, index, fill):
            for shape, place in _new_places(problem, index, fill, cut_first):
                open_places[shape].append(place)
            continue
        node = problem.nodes[index]
        key = node.gpus, node.failed_gpus, node.down, frozenset(fill.slots.items())
        if key not in known:
            known[key] = [(shape, place.gpus) for shape, place in _new_places(problem, index, fill, cut_first)]
        for shape, gpus in known[key]:
            open_places[shape].append(Place(node.name, gpus))
    places.update(_ranked(problem, open_places, places))
    for shape, waiting in open_places.items():
        for replica, place in zip(_claimants(problem, shape, places), waiting, strict=False):
            places[replica] = place
    return dict(sorted(places.items()))


def _is_plain(problem: Problem, index: int, fill: Fill) -> bool:
    """Tell whether contents alone say what is on which GPU of a node: nothing runs there, and no GPU is cut."""
    node = problem.nodes[index]
    bare = not (fill.kept or problem.present.get(index) or problem.layouts[index] or node.islands or node.sockets)
    return bare and not any(slot.profile for slot in fill.slots)


def _ranked(problem: Problem, places: dict[int, list[Place]], kept: Places) -> Iterator[tuple[ReplicaId, Place]]:
    """Take the places of workloads whose ranks matter out of `places`, and yield who has which."""
    for workload in problem.ranked:
        shapes = {role.name: problem.shapes_of_role.get((workload.id, role.name), -1) for role in workload.roles}
        found = {role: places.pop(shape) for role, shape in shapes.items() if shape in places}
        if found:
            own = {replica: place for replica, place in kept.items() if replica.workload == workload.id}
            yield from Ranks(problem, workload, own).assign(found).items()


def _claimants(problem: Problem, shape: int, placed: Places) -> Iterator[ReplicaId]:
    """Yield a shape's replicas without a place yet: running ones, those that lost theirs, the rest."""
    replicas = [
        ReplicaId(member.workload.id, member.role.name, ordinal)
        for member in problem.shapes[shape].members
        for ordinal in range(member.role.replicas)
    ]
    if not problem.running[shape] and not problem.lost[shape]:
        return iter(replicas)
    waiting = [replica for replica in replicas if replica not in placed]
    return iter(sorted(waiting, key=claim(problem.context.today)))


def _new_places(problem: Problem, index: int, fill: Fill, cut_first: bool) -> Iterator[tuple[int, Place]]:
    """Yield shape and place of a node's replicas that do not stay where they run today.

    GPUs of a node that holds nothing today, and nothing that keeps within a part of it, are renumbered: whole-GPU
    replicas first, then those that parts are taken of, by load.
    """
    if fill.slots.total() == fill.kept.total():  # all stays where it runs
        return
    node, rest = problem.nodes[index], without_kept(problem, index, fill)
    parts: dict[int, dict[Slot, int]] = {}
    for slot, count in fill.slots.items():
        if slot.gpu >= 0:
            parts.setdefault(slot.gpu, {})[slot] = count
    whole, free = whole_gpus(problem, index, fill, cut_first)
    for slot, gpus in whole:
        yield slot.shape, Place(node.name, gpus)
    pinned = is_pinned(problem, index, fill)
    rename = {gpu: gpu for gpu in parts} if pinned else _by_load(problem, parts, free)
    instances = {gpu: new_instances(problem, index, own, fill.kept, gpu) for gpu, own in parts.items()}
    for slot, count in sorted(rest.items()):
        if not problem.shapes[slot.shape].request.gpus:
            gpus = (rename[slot.gpu],) if slot.gpu >= 0 else ()
            for _ in range(count):
                instance = str(instances[slot.gpu][slot.profile].pop(0)) if slot.profile else ""
                yield slot.shape, Place(node.name, gpus, instance)


def _by_load(problem: Problem, parts: Mapping[int, Mapping[Slot, int]], free: list[int]) -> dict[int, int]:
    """Return new numbers for GPUs that parts are taken of, the fullest first.

    Parameters
    ----------
    parts : what each holds.
    """
    shapes = problem.shapes
    load = {
        gpu: sum(count * shapes[slot.shape].request.gpu_milli for slot, count in own.items())
        for gpu, own in parts.items()
    }
    contents = {gpu: sorted((slot.shape, count) for slot, count in own.items()) for gpu, own in parts.items()}
    order = sorted(sorted(parts), key=lambda gpu: (-load[gpu], contents[gpu]))
    return dict(zip(order, free, strict=False))
