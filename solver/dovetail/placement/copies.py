"""How many replicas of one request fit beside what a node holds."""

from __future__ import annotations

from dovetail.mig import arrange
from dovetail.placement.clients import terms_of
from dovetail.placement.instances import share_memory
from dovetail.placement.place import Place
from dovetail.placement.room import Room
from dovetail.spec import Request
from dovetail.spec.inside import Mask, mask_of
from dovetail.spec.workload import MILLI

_LOTS = 10**9


def copies(room: Room, request: Request, gpus: Mask | None = None) -> int:
    """Return how many replicas with one request fit beside what a node holds, nothing else being added.

    It is exact but for a share that may be on MIG or not, of which there may be fewer. With `gpus` only those of them
    count that lie on these GPUs.
    """
    every = range(len(room.compute))
    inside = every if gpus is None else [index for index in every if gpus >> index & 1]
    request = request.on(room.node.accelerator)
    limits = [_ratio(room.cpu, request.cpu), _ratio(room.memory, request.memory)]
    limits += [_ratio(room.resources.get(name, 0), amount) for name, amount in request.resources.items()]
    if request.may_use_mig:
        limits.append(sum(_instances(room, request, index) for index in inside))
    elif room.crowd is not None and request.share is not None:
        terms = terms_of(request, room.node, room.card)
        healthy = set(room.node.healthy_gpus())
        alike = [i for i in inside if i in healthy and room.tenants[i] == room.crowd.clients(i)]
        limits.append(0 if terms is None else room.crowd.room_for(terms, alike))
    elif request.share is not None:
        memory = share_memory(request, room.card)
        pairs = [(room.compute[index], room.vram[index]) for index in inside]
        limits.append(sum(min(_ratio(milli, request.share.compute), _ratio(vram, memory)) for milli, vram in pairs))
    elif request.gpus:
        blocks = ([index for index in block if index in inside] for block in room.choices(request))
        limits.append(sum(len(block) // request.gpus for block in blocks))
    return min(limits)


def laid(room: Room, request: Request, most: int, gpus: Mask | None = None) -> list[Place]:
    """Take room for up to so many replicas with one request, one after the other, and return their places."""
    found: list[Place] = []
    while len(found) < most and (place := _place(room, request, gpus)) is not None:
        room.take(request, place.gpus, place.instance)
        found.append(place)
    return found


def _place(room: Room, request: Request, gpus: Mask | None) -> Place | None:
    """Return a place for one replica, on some GPUs alone where given; None where there is none."""
    if copies(room, request, gpus) <= 0:
        return None
    name, mask = room.node.name, mask_of(range(room.node.gpus)) if gpus is None else gpus
    if request.partial:
        for index in (index for index in range(room.node.gpus) if mask >> index & 1):
            if room.gpu_fits(request, index):
                return Place(name, (index,))
            if (instance := room.instance_for(request, index)) is not None:
                return Place(name, (index,), str(instance))
        return None
    if not request.gpus:
        return Place(name, ())
    blocks = ([index for index in block if mask >> index & 1] for block in room.choices(request))
    return next((Place(name, tuple(b[: request.gpus])) for b in blocks if len(b) >= request.gpus), None)


def _instances(room: Room, request: Request, index: int) -> int:
    """Return a number that the replicas that fit on a GPU, cut or not, do not exceed."""
    if room.geometry is None:
        return int(room.gpu_fits(request, index)) * _LOTS
    if request.share is None:
        held = room.instances.get(index, [])
        if not held and (room.tenants[index] or room.compute[index] != MILLI):
            return 0
        most = room.geometry.by_name[request.mig].maximum if request.mig in room.geometry.by_name else 0
        counts = range(most, 0, -1)
        return next((n for n in counts if arrange(room.geometry, {request.mig: n}, held) is not None), 0)
    fits = room.gpu_fits(request, index) or room.instance_for(request, index) is not None
    return _LOTS if fits else 0


def _ratio(free: int, asked: int) -> int:
    return free // asked if asked else _LOTS
