"""What a finished placement leaves free, asked role by role."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from dovetail.placement import Makes, Place, Room, View, amounts_of, copies
from dovetail.plan.stranded import host_fits, usable_gpus
from dovetail.spec import Node, Request, Role, Workload
from dovetail.spec.inside import Mask


class Wanting(NamedTuple):
    """A role with replicas that are not admitted, how many, and the nodes, of `Space.usable`, that may host them."""

    role: Role
    replicas: int
    nodes: Sequence[Node]

    @property
    def key(self) -> tuple[int, Hashable]:
        """What room for one more replica depends on; equal nodes are one object while their Space is there."""
        return id(self.nodes), amounts_of(self.role.request)


class Space:
    """The free capacity of every node of a finished placement."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._rooms = dict(view.rooms)
        self._makes = Makes(view.spec.cluster.nodes, view.spec.accelerators)
        self._usable: dict[tuple[Hashable, frozenset[str]], tuple[Node, ...]] = {}
        self._roomy: dict[tuple[int, Hashable], bool] = {}
        self._top: dict[str, int] = {}
        for replica, place in view.places.items():
            priority = view.spec.by_id[replica.workload].priority
            self._top[place.node] = max(priority, self._top.get(place.node, priority))

    def room(self, node: Node) -> Room:
        """Return what a node has left."""
        if node.name not in self._rooms:
            self._rooms[node.name] = Room(node, self.view.spec.accelerators)
        return self._rooms[node.name]

    def top_priority(self, node: Node) -> float:
        """Return the highest priority of what a node hosts, minus infinity for an empty one."""
        return self._top.get(node.name, float("-inf"))

    def usable(self, workload: Workload, role: Role, closed: frozenset[str]) -> tuple[Node, ...]:
        """Return the nodes that may host a role, `closed` ones left out, whatever room they have."""
        makes = self._makes.hosting(workload, role)
        if (makes, closed) not in self._usable:
            self._usable[makes, closed] = tuple(
                node for make in sorted(makes) for node in self._makes.members[make] if node.name not in closed
            )
        return self._usable[makes, closed]

    def free_milli(self, nodes: Sequence[Node]) -> int:
        """Return the idle milli-GPU of some nodes."""
        return sum(sum(self.room(node).compute) for node in nodes)

    def gpus_fit(self, node: Node, request: Request) -> bool:
        """Tell whether a node has the GPUs free that a request asks for."""
        return bool(usable_gpus(self.room(node), request))

    def open_to(self, request: Request, nodes: Iterable[Node]) -> Iterator[Node]:
        """Yield those of some nodes that may have room on a GPU for a request for part of one; all for others."""
        if not request.partial:
            yield from nodes
            return
        ways: dict[str | None, frozenset[str]] = {}
        for node in nodes:
            room = self.room(node)
            if node.accelerator not in ways:
                ways[node.accelerator] = room.profiles_for(request) | {""}
            if not ways[node.accelerator].isdisjoint(room.offers()):
                yield node

    def has_room(self, wanting: Wanting) -> bool:
        """Tell whether one more replica of a role fits somewhere."""
        key = wanting.key
        if key not in self._roomy:
            self._roomy[key] = next(self.options(wanting), None) is not None
        return self._roomy[key]

    def any_room(self, several: Iterable[Wanting]) -> bool:
        """Tell whether one more replica of any of several roles fits, on nodes that were chosen for this alone."""
        return any(next(self.options(wanting), None) is not None for wanting in several)

    def options(self, wanting: Wanting) -> Iterator[Place]:
        """Yield where one more replica fits; of a node's untouched GPUs one choice stands for all."""
        for node in self.open_to(wanting.role.request, wanting.nodes):
            yield from places_in(self.room(node), wanting.role.request)

    def too_few_fit(self, workload: Workload, missing: Sequence[Wanting], needed: int) -> bool:
        """Tell whether it is certain that fewer than `needed` more replicas fit, for want of room alone."""
        if workload.atomic and workload.mix == "none":
            kinds = {n.accelerator for wanting in missing if wanting.role.request.gpu_count for n in wanting.nodes}
            return all(self._short(missing, needed, kind) for kind in kinds or {None})
        return self._short(missing, needed, None)

    def _short(self, missing: Sequence[Wanting], needed: int, kind: str | None) -> bool:
        return sum(min(wanting.replicas, self._count(wanting, kind)) for wanting in missing) < needed

    def by_node(self, wanting: Wanting) -> dict[str, int]:
        """Return how many more replicas of a role fit on each node, nothing else being added."""
        return {node.name: copies(self.room(node), wanting.role.request) for node in wanting.nodes}

    def inside(self, wanting: Wanting, node: Node, mask: Mask) -> int:
        """Return how many more replicas of a role fit on some GPUs of a node, or more than that."""
        if node not in wanting.nodes:
            return 0
        request, room = wanting.role.request, self.room(node)
        if request.partial:
            return copies(room, request)
        free = (index for block in room.choices(request) for index in block)
        return min(copies(room, request), sum(mask >> index & 1 for index in free) // max(1, request.gpus))

    def _count(self, wanting: Wanting, kind: str | None) -> int:
        """Return how many more replicas of a role fit, nothing else being added: exact."""
        request = wanting.role.request
        bound = kind is not None and request.gpu_count
        nodes = [n for n in wanting.nodes if n.accelerator == kind] if bound else wanting.nodes
        return sum(copies(self.room(node), request) for node in nodes)


def places_in(room: Room, request: Request) -> Iterator[Place]:
    """Yield where one replica fits on a node; of its untouched GPUs one choice stands for all.

    A share that fits on a GPU and on instances of it comes as each of these, once per profile.
    """
    if not host_fits(room, request):
        return
    fitting = usable_gpus(room, request) if request.gpu_count else []
    if request.partial:
        for index in fitting:
            yield from _parts_of(room, request, index)
    elif fitting or not request.gpu_count:
        yield Place(room.node.name, tuple(sorted(fitting[: request.gpus])))


def _parts_of(room: Room, request: Request, index: int) -> Iterator[Place]:
    """Yield the places that a GPU has for a request for part of one, an instance of each profile among them."""
    if room.gpu_fits(request, index):
        yield Place(room.node.name, (index,))
    told = set[str]()
    for instance in room.instances_for(request, index):
        if instance.profile not in told:
            told.add(instance.profile)
            yield Place(room.node.name, (index,), str(instance))


def part_of(room: Room, request: Request, index: int) -> Place:
    """Return the place of a request for part of a GPU that fits there, on a MIG instance where that is the way."""
    if room.gpu_fits(request, index):
        return Place(room.node.name, (index,))
    instance = room.instance_for(request, index)
    return Place(room.node.name, (index,), str(instance) if instance else "")
