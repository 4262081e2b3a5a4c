"""GPU that lies idle because nothing of the project's own work fits on it any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dovetail.placement import Makes, Room, View, ask_of
from dovetail.spec import Request, Role, Spec, Workload


class RequestClass(NamedTuple):
    """What makes two GPU requests alike for a node: amounts, accelerators, tolerations; and one that has it."""

    workload: Workload
    role: Role


def stranded(view: View) -> int:
    """Return the stranded milli-GPU of a finished placement, exactly.

    The idle milli-GPU of a healthy GPU on a node that is neither down nor cordoned is stranded where no GPU request
    class of the project fits on that GPU: a class fits where its accelerators, its tolerations and the node's
    mechanism allow the node, the node has its cpu, memory and resources free, and the GPU is among enough free ones.
    Policies and what waits play no part. Nothing is stranded where the project has no GPU work.
    """
    spec = view.spec
    rooms = view.rooms
    classes = request_classes(spec)
    if not classes:
        return 0
    makes = Makes(spec.cluster.nodes, spec.accelerators)
    usable: list[list[Request]] = [[] for _ in makes.members]
    for one in classes:
        for make in makes.hosting(one.workload, one.role):
            usable[make].append(one.role.request)
    total = 0
    for node, make in zip(spec.cluster.nodes, makes.of, strict=True):
        if not node.down and not node.cordoned:
            total += _stranded_on(rooms.get(node.name) or Room(node, spec.accelerators), usable[make])
    return total


def request_classes(spec: Spec) -> tuple[RequestClass, ...]:
    """Return one role per GPU request class, smallest requests first."""
    found: dict[object, RequestClass] = {}
    for workload in spec.workloads:
        for role in workload.roles:
            if role.request.gpu_count:
                found.setdefault(ask_of(workload, role), RequestClass(workload, role))
    return tuple(sorted(found.values(), key=lambda c: (c.role.request.gpu_milli, c.role.request.cpu)))


def _stranded_on(room: Room, requests: Iterable[Request]) -> int:
    idle = [index for index, milli in enumerate(room.compute) if milli > 0]
    if not idle:
        return 0
    for request in requests:
        if not host_fits(room, request):
            continue
        fitting = set(usable_gpus(room, request))
        if fitting:
            idle = [index for index in idle if index not in fitting]
        if not idle:
            return 0
    return sum(room.compute[index] for index in idle)


def host_fits(room: Room, request: Request) -> bool:
    """Tell whether a node has a request's cpu, memory and resources free."""
    return (
        request.cpu <= room.cpu
        and request.memory <= room.memory
        and all(amount <= room.resources.get(name, 0) for name, amount in request.resources.items())
    )


def usable_gpus(room: Room, request: Request) -> list[int]:
    """Return the GPUs that could serve a request, those for whole GPUs block by block; none where too few do."""
    if request.gpus:
        return [index for block in room.choices(request) for index in block]
    return gpus_that_fit(room, request)


def gpus_that_fit(room: Room, request: Request) -> list[int]:
    """Return the indices of the GPUs that could serve a request, or be one of the several that it asks for."""
    indices = range(len(room.compute))
    cut = room.may_cut_for(request)
    return [i for i in indices if room.gpu_fits(request, i) or (cut and room.instance_for(request, i) is not None)]
