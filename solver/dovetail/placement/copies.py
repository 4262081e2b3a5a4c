"""How many replicas of one request fit beside what a node holds."""

from __future__ import annotations

from dovetail.placement.room import Room, share_memory
from dovetail.spec import Request
from dovetail.spec.workload import MILLI

_LOTS = 10**9


def copies(room: Room, request: Request) -> int:
    """Return how many replicas with one request fit beside what a node hosts: exact, nothing else being added."""
    limits = [_ratio(room.cpu, request.cpu), _ratio(room.memory, request.memory)]
    limits += [_ratio(room.resources.get(name, 0), amount) for name, amount in request.resources.items()]
    if request.share is not None:
        memory = share_memory(request, room.card)
        pairs = zip(room.compute, room.vram, strict=True)
        limits.append(sum(min(_ratio(milli, request.share.compute), _ratio(vram, memory)) for milli, vram in pairs))
    elif request.gpus:
        untouched = sum(m == MILLI and not t for m, t in zip(room.compute, room.tenants, strict=True))
        limits.append(untouched // request.gpus)
    return min(limits)


def _ratio(free: int, asked: int) -> int:
    return free // asked if asked else _LOTS
