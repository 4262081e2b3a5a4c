"""Idle GPU that the expected work cannot use (S5.5).

Source: the measure of "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent"
(USENIX ATC 2023), over request classes with GPUs only. Of a node with idle thousandths r_j on its GPUs, R in all, a
class m makes useless

    F(m) = sum of r_j over the GPUs that the class does not fit, if enough GPUs fit it, the node has its CPU, and its
           accelerators allow the node; else R

and the classes count by weight. What an instance offers beyond the share on it is idle and useless to every class, so
that nothing is gained by larger instances. Host memory and resources play no part. Here a class fits a GPU where
`Room` says so: a share also needs GPU memory, a MIG profile a legal start beside the instances in use, on a GPU that
is or could be cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dovetail.mig import fits, parse_instance
from dovetail.placement.instances import profiles_for
from dovetail.placement.room import Room
from dovetail.placement.view import View
from dovetail.spec import Accelerator, Expected, Node, Spec

Cause = str
"""Why idle GPU is useless: `deficient` (the GPU has too little left), `blocked` (a MIG instance would fit by count
and finds no start), or `stranded` (the GPU fits; CPU, accelerator or the number of GPUs of the node do not)."""


class Fragments(NamedTuple):
    """Weighted thousandths of a GPU: what is useless, by cause, out of what is idle."""

    idle: int = 0
    deficient: int = 0
    blocked: int = 0
    stranded: int = 0

    @property
    def amount(self) -> int:
        """All that is useless."""
        return self.deficient + self.blocked + self.stranded


def expected_of(spec: Spec) -> tuple[Expected, ...]:
    """Return the request classes that fragmentation is judged by, alike ones together, in a canonical order.

    They are those of the objective's `futureMix`, by default those of the project's own GPU work, by replicas.
    """
    given = spec.objective.future_mix or tuple(
        Expected(role.request, tuple(sorted(role.accelerators)), role.replicas)
        for workload in spec.workloads
        for role in workload.roles
        if role.request.gpu_count and role.replicas
    )
    weights: Counter[str] = Counter()
    first: dict[str, Expected] = {}
    for one in given:
        key = repr(_alike(one))
        first.setdefault(key, one)
        weights[key] += one.weight
    return tuple(Expected(first[key].request, first[key].accelerators, weights[key]) for key in sorted(first))


def _alike(one: Expected) -> tuple[object, ...]:
    request = one.request
    return request.cpu, request.gpus, request.share, request.mig, one.accelerators


@dataclass(frozen=True)
class Judge:
    """Judges rooms by expected requests, each state of a node once.

    Parameters
    ----------
    expected : the classes.
    accelerators : the products of the cluster.
    """

    expected: tuple[Expected, ...]
    accelerators: Mapping[str, Accelerator]
    _known: dict[object, Fragments] = field(default_factory=dict, compare=False, repr=False)

    @property
    def weight(self) -> int:
        """The weight of all classes."""
        return sum(one.weight for one in self.expected)

    def of_view(self, view: View) -> Fragments:
        """Return what is useless on a finished placement; nodes that take nothing new do not count."""
        rooms, surplus = view.rooms, self.weight * _surplus(view)
        found = [surplus, surplus, 0, 0]
        for node in view.spec.cluster.nodes:
            if counts(node):
                room = rooms.get(node.name) or Room(node, self.accelerators)
                for position, amount in enumerate(self.of_room(room)):
                    found[position] += amount
        return Fragments(*found)

    def of_room(self, room: Room) -> Fragments:
        """Return what is useless on one node."""
        key = self._key(room)
        if key not in self._known:
            self._known[key] = _judged(room, self.expected)
        return self._known[key]

    def _key(self, room: Room) -> object:
        gpus = zip(room.compute, room.vram, room.tenants, strict=True)
        states = [(*gpu, tuple(sorted(room.instances.get(index, ())))) for index, gpu in enumerate(gpus)]
        most = max((one.request.cpu for one in self.expected), default=0)
        crowd = None if room.crowd is None else (room.node.sharing, room.crowd.key())
        return room.node.accelerator, room.node.mechanism, crowd, min(room.cpu, most), tuple(sorted(states))


def _surplus(view: View) -> int:
    """Return the thousandths that instances offer beyond the shares on them, on nodes that count."""
    total = 0
    for replica, place in view.places.items():
        request, room = view.role(replica).request, view.rooms[place.node]
        if place.instance and request.share is not None and room.geometry is not None and counts(room.node):
            profile = room.geometry.by_name[parse_instance(place.instance).profile]
            total += profile.milli - request.on(room.node.accelerator).gpu_milli
    return total


def counts(node: Node) -> bool:
    """Tell whether idle GPUs of a node count: not where nothing new may come."""
    return bool(node.gpus) and not node.down and not node.cordoned


def _judged(room: Room, expected: Iterable[Expected]) -> Fragments:
    found = Counter({"idle": 0, "deficient": 0, "blocked": 0, "stranded": 0})
    for one in expected:
        causes = [_cause(room, one, index) for index in range(len(room.compute))]
        usable = _allows(room, one) and causes.count("") >= one.request.gpu_count
        for milli, cause in zip((max(0, left) for left in room.compute), causes, strict=True):
            found["idle"] += one.weight * milli
            if cause or not usable:
                found[cause or "stranded"] += one.weight * milli
    return Fragments(**found)


def _allows(room: Room, one: Expected) -> bool:
    return room.cpu >= one.request.cpu and (not one.accelerators or room.node.accelerator in one.accelerators)


def _cause(room: Room, one: Expected, index: int) -> Cause:
    """Return why a class does not fit a GPU by itself, nothing where it does."""
    if one.accelerators and room.node.accelerator not in one.accelerators:
        return ""
    request = one.request
    if room.gpu_fits(request, index) or (request.partial and room.instance_for(request, index) is not None):
        return ""
    return "blocked" if request.may_use_mig and _fits_by_count(room, one, index) else "deficient"


def _fits_by_count(room: Room, one: Expected, index: int) -> bool:
    held = Counter(instance.profile for instance in room.instances.get(index, ()))
    if not held or room.geometry is None:
        return False
    card = Accelerator(room.geometry.product, room.card, mig=room.geometry)
    return any(fits(room.geometry, held + Counter([p.name])) for p in profiles_for(one.request, card))
