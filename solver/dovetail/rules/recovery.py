"""Failures of domains, and what is left then: who is lost, where there is room, whether restarts hold (S4.7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from dovetail.mig import Instance, parse_instance
from dovetail.placement import Place, Places, Room, View, copies, obstacle
from dovetail.placement.clients import WHOLE
from dovetail.rules.bonds import Bond, bonds_of, side_of
from dovetail.rules.matching import matched
from dovetail.spec import Cluster, Node, ReplicaId, Request, Role, Spec, Workload
from dovetail.spec.inside import mask_of
from dovetail.spec.workload import MILLI

MOST_CASES: Final = 10_000
_LARGE: Final = 1_000  # more than a node has GPUs


class Failure(NamedTuple):
    """A failure case: the lost domains' paths joined by `+`, and their nodes."""

    name: str
    nodes: frozenset[str]
    domains: tuple[str, ...]


def failures_of(cluster: Cluster, level: str, count: int) -> tuple[Failure, ...]:
    """Return the loss of every `count` domains of a level at the same time."""
    members = {path: frozenset(node.name for node in nodes) for path, nodes in cluster.members(level).items()}
    return tuple(
        Failure("+".join(paths), frozenset[str]().union(*(members[path] for path in paths)), paths)
        for paths in combinations(sorted(members), count)
    )


@dataclass(frozen=True)
class Stakes:
    """Who has to survive, who may go for that, and where each role may restart.

    Parameters
    ----------
    hosts : per id of a matched workload and name of a role, the nodes that hard policies leave open to it.
    """

    matched: tuple[Workload, ...]
    evictable: frozenset[str]
    hosts: Mapping[tuple[str, str], frozenset[str]]

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of the workloads that have to survive."""
        return frozenset(workload.id for workload in self.matched)

    def could_host(self, spec: Spec, workload: str, role: str) -> Mapping[str, Node]:
        """Return the nodes that a role of a matched workload may restart on, by name, however they are shared."""
        key = workload, role
        if key not in self._could:
            asking, hosts = spec.by_id[workload], self.hosts[key]
            own = asking.by_role[role]
            self._could[key] = {
                node.name: node
                for node in spec.cluster.nodes
                if not node.down and node.name in hosts and obstacle(asking, own, node, spec.accelerators) is None
            }
        return self._could[key]

    @cached_property
    def _could(self) -> dict[tuple[str, str], Mapping[str, Node]]:
        return {}


class Rescue:
    """A finished placement, asked what restarts where after each failure."""

    def __init__(self, view: View, stakes: Stakes) -> None:
        self._view, self._stakes = view, stakes
        spec = view.spec
        self._nodes = [node for node in spec.cluster.nodes if not node.down]
        self._rooms = {node.name: Room(node, spec.accelerators) for node in self._nodes}
        self._on: dict[str, list[ReplicaId]] = {}
        self._free = {gpu: set(layout) if self._in_health(gpu) else set() for gpu, layout in view.layouts.items()}
        for replica, place in (*view.places.items(), *view.placeholders):
            if replica.workload in stakes.ids:
                self._on.setdefault(place.node, []).append(replica)
            if replica.workload not in stakes.evictable:
                self._hold(replica, place)
        self._block_cut_gpus()
        self._idle = {name: _untouched(room) for name, room in self._rooms.items()}
        self._best: dict[tuple[str, str], dict[str, tuple[int, Place]]] = {}
        self._hosting: dict[tuple[str, str], dict[str, Node]] = {}
        self._bonds: dict[ReplicaId, tuple[Bond, ...]] = {}
        self._standing: dict[tuple[Bond, str], frozenset[str | None]] = {}

    def _in_health(self, gpu: str) -> bool:
        """Tell whether a GPU, `node/index`, has not failed: nothing restarts on the instances of one that has."""
        name, _, index = gpu.rpartition("/")
        return int(index) not in self._view.spec.cluster.by_name[name].failed_gpus

    def _hold(self, replica: ReplicaId, place: Place) -> None:
        """Take what a replica holds that is never evicted; of its instance the GPU's other parts are free."""
        request = self._view.role(replica).request
        if place.instance:
            self._rooms[place.node].take(_without_gpus(request), ())
            self._free[place.gpu_names[0]].discard(parse_instance(place.instance))
        else:
            self._rooms[place.node].take(request, place.gpus)

    def _block_cut_gpus(self) -> None:
        """Leave nothing of GPUs that the plan has cut but their instances: no GPU is cut anew."""
        self._cut: dict[str, list[int]] = {}
        for gpu in self._free:
            name, _, index = gpu.rpartition("/")
            if name in self._rooms:
                self._rooms[name].close(int(index))
                self._cut.setdefault(name, []).append(int(index))

    def lost(self, failure: Failure) -> list[ReplicaId]:
        """Return the replicas that have to restart, those that are hardest to place first."""
        found = [replica for node in failure.nodes for replica in self._on.get(node, ())]
        return sorted(found, key=lambda r: (_size(self._view.role(r).request), r))

    def replay(self, failure: Failure, rows: Places) -> frozenset[ReplicaId]:
        """Return those of some rows that hold: lost replicas on places that there are, all of them together."""
        lost = set(self.lost(failure))
        held: dict[ReplicaId, Place] = {}
        for replica, place in sorted(rows.items()):
            known = replica in lost and place.node not in failure.nodes and place.node in self.hosts(replica)
            if known and self._take(replica, place):
                held[replica] = place
        self._give(held)
        sides: dict[Bond, set[str | None]] = {}
        for replica, place in held.items():
            for bond in self.bonds(replica):
                sides.setdefault(bond, set(self.standing(bond, failure))).add(self.side(bond, place))
        return frozenset(r for r in held if all(agrees(sides[bond]) for bond in self.bonds(r)))

    def bonds(self, replica: ReplicaId) -> tuple[Bond, ...]:
        """Return the bonds of a replica of a matched workload, the widest first."""
        if replica not in self._bonds:
            self._bonds[replica] = bonds_of(self._view.spec.by_id[replica.workload], replica)
        return self._bonds[replica]

    def side(self, bond: Bond, place: Place) -> str | None:
        """Return the side of a bond that a place is on."""
        return side_of(bond, self._view.spec.cluster, place)

    @cached_property
    def _bound(self) -> Mapping[Bond, list[Place]]:
        """The places of those who have to survive, by bond."""
        found: dict[Bond, list[Place]] = {}
        for replica, place in self._view.places.items():
            for bond in self.bonds(replica) if replica.workload in self._stakes.ids else ():
                found.setdefault(bond, []).append(place)
        return found

    def standing(self, bond: Bond, failure: Failure) -> frozenset[str | None]:
        """Return the sides on which the survivors of a bond are."""
        key = bond, failure.name
        if key not in self._standing:
            places = self._bound.get(bond, ())
            self._standing[key] = frozenset(self.side(bond, p) for p in places if p.node not in failure.nodes)
        return self._standing[key]

    def hosts(self, replica: ReplicaId) -> Mapping[str, Node]:
        """Return the nodes that a replica may restart on, by name, whatever room they have."""
        key = replica.workload, replica.role
        if key not in self._hosting:
            role, could = self._view.role(replica), self._stakes.could_host(self._view.spec, *key)
            self._hosting[key] = {name: node for name, node in could.items() if self._as_it_is(role, node)}
        return self._hosting[key]

    def _as_it_is(self, role: Role, node: Node) -> bool:
        """Tell whether a role may restart on a node without its GPUs being shared in another way than planned."""
        if role.request.share is not None:
            return node.mechanism == "fraction"
        return not role.request.gpus or node.name not in self._sharing

    @cached_property
    def _sharing(self) -> frozenset[str]:
        """The nodes of which clients share GPUs, or did so far and could go on."""
        before = self._view.today.settings
        return frozenset(
            key[0] for key, setting in self._view.settings.items() if {setting, before.get(key, WHOLE)} != {WHOLE}
        )

    def _take(self, replica: ReplicaId, place: Place) -> bool:
        request, room = self._view.role(replica).request, self._rooms[place.node]
        if place.instance:
            named = parse_instance(place.instance)
            free = len(place.gpus) == 1 and named in self._free.get(place.gpu_names[0], ())
            fits = free and bool(request.mig) and named.profile == request.mig
            fits = fits and room.lacks(_without_gpus(request), ()) is None
        else:
            fits = not request.mig and room.lacks(request, place.gpus) is None
        if fits:
            self._change(replica, place, 1)
        return fits

    def _change(self, replica: ReplicaId, place: Place, sign: int) -> None:
        """Take a place, or give it back."""
        room, request = self._rooms[place.node], self._view.role(replica).request
        change = room.take if sign > 0 else room.give
        if place.instance:
            change(_without_gpus(request), ())
            free, named = self._free[place.gpu_names[0]], parse_instance(place.instance)
            free.discard(named) if sign > 0 else free.add(named)
        else:
            change(request, place.gpus)
        self._idle[place.node] = _untouched(room)

    def _give(self, places: Places) -> None:
        for replica, place in places.items():
            self._change(replica, place, -1)

    # For whoever looks for restarts.

    def most(self, lost: Iterable[ReplicaId], failure: Failure) -> int:
        """Return how many of what is lost may restart at the most: on instances no more than are free for them."""
        found, asking = 0, defaultdict[str, Counter[tuple[str, str]]](Counter)
        for replica in lost:
            if profile := self._view.role(replica).request.mig:
                asking[profile][replica.workload, replica.role] += 1
            else:
                found += 1
        for profile, counts in asking.items():
            hosts = {key: self.hosts(ReplicaId(*key, 0)).keys() - failure.nodes for key in counts}
            free = {
                name: sum(len(self._free_on(name, index, profile)) for index in self._cut.get(name, ()))
                for name in set[str]().union(*hosts.values())
            }
            found += matched({key: (count, hosts[key]) for key, count in counts.items()}, free)
        return found

    def _free_on(self, name: str, index: int, profile: str) -> list[Instance]:
        """Return the free instances of a profile on a GPU that is cut."""
        return [each for each in self._free[f"{name}/{index}"] if each.profile == profile]

    def survivors(self, failure: Failure) -> list[Node]:
        """Return the nodes that a failure leaves."""
        return [node for node in self._nodes if node.name not in failure.nodes]

    def node(self, name: str) -> Node:
        """Return a node by its name."""
        return self._view.spec.cluster.by_name[name]

    def idle(self, node: Node) -> int:
        """Return how many GPUs of a node hold nothing, with what restarts on trial."""
        return self._idle[node.name]

    def options(self, replica: ReplicaId, nodes: Iterable[Node]) -> Iterator[tuple[int, Place]]:
        """Yield where on some nodes a replica fits now, less first where less stays free; of like GPUs the first."""
        role, hosts = self._view.role(replica), self.hosts(replica)
        for node in nodes:
            if node.name not in hosts or self._idle[node.name] < role.request.gpus:
                continue
            room = self._rooms[node.name]
            if role.request.mig:
                yield from self._instances_for(node, role)
            elif role.request.share is not None:
                yield from _gpus_for(room, role)
            elif copies(room, role.request) > 0:
                left = _LARGE * (self._idle[node.name] - role.request.gpus)
                yield from ((left + spare, Place(node.name, gpus)) for spare, gpus in _sets_for(room, role.request))

    def _instances_for(self, node: Node, role: Role) -> Iterator[tuple[int, Place]]:
        """Yield the free instances of a node that take a request for a profile, the first of each GPU."""
        cut = self._cut.get(node.name, ())
        if not cut or self._rooms[node.name].lacks(_without_gpus(role.request), ()) is not None:
            return
        for index in sorted(cut):
            if free := self._free_on(node.name, index, role.request.mig):
                first = min(free, key=lambda each: each.start)
                yield len(free) - 1, Place(node.name, (index,), str(first))

    def best(self, replica: ReplicaId) -> Mapping[str, tuple[int, Place]]:
        """Return per node the first of the options of a replica's role with nothing on trial, in their order."""
        key = replica.workload, replica.role
        if key not in self._best:
            self._best[key] = self._sorted(replica, self._nodes, {})
        return self._best[key]

    def _sorted(
        self, replica: ReplicaId, nodes: Iterable[Node], known: Mapping[str, tuple[int, Place]]
    ) -> dict[str, tuple[int, Place]]:
        """Return the first option of some nodes and what is known of others, in the order of options."""
        asked = {node.name: min(self.options(replica, [node]), default=None) for node in nodes}
        there = {name: option for name, option in {**known, **asked}.items() if option is not None}
        return dict(sorted(there.items(), key=lambda each: each[1]))

    def leave(self, gone: Collection[ReplicaId]) -> None:
        """Count replicas out that would have to survive, and give back what they hold; nothing may be on trial."""
        places = {replica: self._view.places[replica] for replica in gone}
        self._give(places)
        for replica, place in places.items():
            self._on[place.node].remove(replica)
            for bond in self.bonds(replica):
                self._bound[bond].remove(place)
        self._standing.clear()
        nodes = [self.node(name) for name in sorted({place.node for place in places.values()})]
        for (workload, role), best in self._best.items() if nodes else ():
            self._best[workload, role] = self._sorted(ReplicaId(workload, role, 0), nodes, best)

    def take(self, replica: ReplicaId, place: Place) -> bool:
        """Take a place on trial, and tell whether that goes."""
        return self._take(replica, place)

    def undo(self, replica: ReplicaId, place: Place) -> None:
        """Give a place back."""
        self._give({replica: place})


def _size(request: Request) -> tuple[int, int, int]:
    return -request.gpu_milli, -request.cpu, -request.memory


def _without_gpus(request: Request) -> Request:
    """Return what a request asks of the host alone."""
    return Request(cpu=request.cpu, memory=request.memory, resources=request.resources)


def _untouched(room: Room) -> int:
    """Return how many GPUs hold nothing."""
    return sum(milli == MILLI and not held for milli, held in zip(room.compute, room.tenants, strict=True))


def agrees(sides: Collection[str | None]) -> bool:
    """Tell whether a bond has one side."""
    return len(sides) == 1 and None not in sides


def _sets_for(room: Room, request: Request) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield GPUs for a request for whole ones, and how many stay free beside them in the same island or socket."""
    if not request.gpus:
        yield 0, ()
        return
    free = [mask_of(block) for block in room.choices(request)]
    near = [both for block in free for part in room.node.sets if (both := block & part).bit_count() >= request.gpus]
    for mask in dict.fromkeys(near):
        gpus = [index for index in range(room.node.gpus) if mask >> index & 1]
        yield len(gpus) - request.gpus, tuple(gpus[: request.gpus])


def _gpus_for(room: Room, role: Role) -> Iterator[tuple[int, Place]]:
    """Yield the GPUs that take a share, one of those with the same room left."""
    seen: set[tuple[int, int]] = set()
    asked = role.request.on(room.node.accelerator)
    for index, milli in enumerate(room.compute):
        kind = milli, room.vram[index]
        if kind not in seen and room.lacks(asked, (index,)) is None:
            seen.add(kind)
            yield milli - asked.gpu_milli, Place(room.node.name, (index,))
