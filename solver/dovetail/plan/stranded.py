"""GPU that lies idle because nothing of the project's own work fits on it any more."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
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
    asks = [_asks(Room(nodes[0], spec.accelerators), own) for nodes, own in zip(makes.members, usable, strict=True)]
    total = 0
    for node, make in zip(spec.cluster.nodes, makes.of, strict=True):
        if not node.down and not node.cordoned:
            total += _stranded_on(rooms.get(node.name) or Room(node, spec.accelerators), asks[make])
    return total


class _Ask(NamedTuple):
    """A request, and the profiles of the instances that could serve it."""

    request: Request
    profiles: frozenset[str]

    def least_of(self, other: _Ask) -> bool:
        """Tell whether a node that has room for another, which is served on the same GPUs, has room for this one."""
        mine, theirs = self.request, other.request
        more = all(amount <= theirs.resources.get(name, 0) for name, amount in mine.resources.items())
        return more and mine.cpu <= theirs.cpu and mine.memory <= theirs.memory


def _asks(room: Room, requests: Iterable[Request]) -> list[_Ask]:
    """Return what is asked of nodes of a make, but for what the same GPUs serve and takes no less beside them."""
    alike: dict[Hashable, list[_Ask]] = {}
    for request in requests:
        ask = _Ask(request, room.profiles_for(request))
        share = request.share
        if share is not None and room.crowd is None:  # which hosts are listed for it is all said by the profiles
            fraction = share.takes_fraction(room.node.accelerator)
            share = replace(request.on(room.node.accelerator).share or share, rated=((str(fraction), 0),))
        key = request.gpus, request.inside, request.mig, request.mig_milli, share, ask.profiles
        known = alike.setdefault(key, [])
        if not any(other.least_of(ask) for other in known):
            known[:] = [*(other for other in known if not ask.least_of(other)), ask]
    return [ask for known in alike.values() for ask in known]


def request_classes(spec: Spec) -> tuple[RequestClass, ...]:
    """Return one role per GPU request class, smallest requests first."""
    found: dict[object, RequestClass] = {}
    for workload in spec.workloads:
        for role in workload.roles:
            if role.request.gpu_count:
                found.setdefault(ask_of(workload, role), RequestClass(workload, role))
    return tuple(sorted(found.values(), key=lambda c: (c.role.request.gpu_milli, c.role.request.cpu)))


def _stranded_on(room: Room, asks: Iterable[_Ask]) -> int:
    idle = [index for index, milli in enumerate(room.compute) if milli > 0]
    beside = {index: room.profiles_beside(index) for index in idle}
    for request, profiles in asks if idle else ():
        if not host_fits(room, request):
            continue
        if request.gpus:
            fitting = set(usable_gpus(room, request))
            idle = [index for index in idle if index not in fitting]
        else:
            idle = [i for i in idle if profiles.isdisjoint(beside[i]) and not room.gpu_fits(request, i)]
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
    beside = [room.profiles_beside(i) for i in indices] if room.may_cut_for(request) else []
    profiles = room.profiles_for(request, frozenset[str]().union(*beside)) if any(beside) else frozenset[str]()
    return [i for i in indices if room.gpu_fits(request, i) or (profiles and not profiles.isdisjoint(beside[i]))]
