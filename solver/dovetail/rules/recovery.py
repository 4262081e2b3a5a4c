"""Failures of domains, and where lost replicas restart: found by a search, and replayed row by row (S4.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final, NamedTuple

from dovetail.mig import parse_instance
from dovetail.placement import Place, Places, Room, View, copies, obstacle
from dovetail.placement.clients import WHOLE
from dovetail.spec import Cluster, Node, ReplicaId, Request, Role, Workload
from dovetail.spec.workload import MILLI

MOST_CASES: Final = 10_000
_STEPS: Final = 20_000


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
    """Who has to survive, who may go for that, and where each workload may restart.

    Parameters
    ----------
    hosts : per id of a matched workload, the nodes that hard policies leave open to it.
    within : per id of a matched workload, the level of which one domain must hold all of it.
    """

    matched: tuple[Workload, ...]
    evictable: frozenset[str]
    hosts: Mapping[str, frozenset[str]]
    within: Mapping[str, str]

    @cached_property
    def ids(self) -> frozenset[str]:
        """Ids of the workloads that have to survive."""
        return frozenset(workload.id for workload in self.matched)

    def side_of(self, workload: Workload, node: Node) -> tuple[str, str]:
        """Return what all places of a workload must have in common: its domain, and for gangs the accelerator."""
        level = self.within.get(workload.id)
        domain = "" if level is None else node.domain(level) or f"none of {node.name}"
        alike = workload.atomic and workload.mix == "none" and node.gpus > 0
        return domain, (node.accelerator or "") if alike else ""


class Rescue:
    """A finished placement, asked what restarts where after each failure."""

    def __init__(self, view: View, stakes: Stakes) -> None:
        self._view, self._stakes = view, stakes
        spec = view.spec
        self._nodes = [node for node in spec.cluster.nodes if not node.down]
        self._rooms = {node.name: Room(node, spec.accelerators) for node in self._nodes}
        self._on: dict[str, list[ReplicaId]] = {}
        self._free = {gpu: set(layout) for gpu, layout in view.layouts.items()}
        for replica, place in (*view.places.items(), *view.placeholders):
            if replica.workload in stakes.ids:
                self._on.setdefault(place.node, []).append(replica)
            if replica.workload not in stakes.evictable:
                self._hold(replica, place)
        self._block_cut_gpus()
        self._idle = {name: _untouched(room) for name, room in self._rooms.items()}
        self._hosting: dict[tuple[str, str], dict[str, Node]] = {}

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
        for gpu in self._free:
            name, _, index = gpu.rpartition("/")
            if name in self._rooms:
                self._rooms[name].close(int(index))

    def lost(self, failure: Failure) -> list[ReplicaId]:
        """Return the replicas that have to restart, those that are hardest to place first."""
        found = [replica for node in failure.nodes for replica in self._on.get(node, ())]
        return sorted(found, key=lambda r: (_size(self._view.role(r).request), r))

    def search(self, failure: Failure) -> Places:
        """Return places for what is lost: all of it where quick steps or a bounded search find that."""
        lost = self.lost(failure)
        found = self._greedy(lost, failure)
        if len(found) < len(lost):  # more of them may restart where the small ones go first
            found = max(found, self._greedy(lost[::-1], failure), key=len)
        if len(found) < len(lost):
            found = max(found, _Exact(self, lost, failure).run(), key=len)
        return dict(sorted(found.items()))

    def replay(self, failure: Failure, rows: Places) -> frozenset[ReplicaId]:
        """Return those of some rows that hold: lost replicas on places that there are, all of them together."""
        lost = set(self.lost(failure))
        held: dict[ReplicaId, Place] = {}
        for replica, place in sorted(rows.items()):
            known = replica in lost and place.node not in failure.nodes and place.node in self.hosts(replica)
            if known and self._take(replica, place):
                held[replica] = place
        self._give(held)
        return frozenset(replica for replica in held if self._together(replica, held, failure))

    def _together(self, replica: ReplicaId, held: Places, failure: Failure) -> bool:
        workload = self._view.spec.by_id[replica.workload]
        return len(self.sides(workload, held, failure)) <= 1

    def sides(self, workload: Workload, held: Places, failure: Failure) -> set[tuple[str, str]]:
        """Return the sides that a workload is on: where it survives, and where it restarts."""
        by_name = self._view.spec.cluster.by_name
        stay = (self._view.places[r] for r in self._view.admitted(workload))
        again = (place for r, place in held.items() if r.workload == workload.id)
        nodes = [*(p.node for p in stay if p.node not in failure.nodes), *(p.node for p in again)]
        return {self._stakes.side_of(workload, by_name[name]) for name in nodes}

    def hosts(self, replica: ReplicaId) -> Mapping[str, Node]:
        """Return the nodes that a replica may restart on, by name, whatever room they have."""
        key = replica.workload, replica.role
        if key not in self._hosting:
            spec, workload, role = self._view.spec, self._view.spec.by_id[key[0]], self._view.role(replica)
            open_to = self._stakes.hosts[key[0]]
            self._hosting[key] = {
                node.name: node
                for node in self._nodes
                if node.name in open_to
                and obstacle(workload, role, node, spec.accelerators) is None
                and self._as_it_is(role, node)
            }
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

    # The quick way: workload by workload, on the side that takes most of it, each replica where it fits best.

    def _greedy(self, lost: Sequence[ReplicaId], failure: Failure) -> dict[ReplicaId, Place]:
        found: dict[ReplicaId, Place] = {}
        for workload in dict.fromkeys(replica.workload for replica in lost):
            own = [replica for replica in lost if replica.workload == workload]
            found |= self._best_side(self._view.spec.by_id[workload], own, failure)
        self._give(found)
        return found

    def _best_side(self, workload: Workload, own: Sequence[ReplicaId], failure: Failure) -> dict[ReplicaId, Place]:
        """Place a workload's lost replicas on the first side that takes all of them, or most."""
        best: dict[ReplicaId, Place] = {}
        for side in self.open_sides(workload, own, failure):
            found = self._on_side(workload, own, failure, side)
            self._give(found)
            best = max(best, found, key=len)
            if len(best) == len(own):
                break
        return self._again(best)

    def _again(self, places: dict[ReplicaId, Place]) -> dict[ReplicaId, Place]:
        for replica, place in places.items():
            self._change(replica, place, 1)
        return places

    def open_sides(self, workload: Workload, own: Sequence[ReplicaId], failure: Failure) -> list[tuple[str, str]]:
        """Return the sides that a workload may restart on: where it survives, else any."""
        held = self.sides(workload, {}, failure)
        if held:
            return sorted(held)
        nodes = dict.fromkeys(name for replica in own for name in self.hosts(replica))
        by_name = self._view.spec.cluster.by_name
        return sorted({self._stakes.side_of(workload, by_name[name]) for name in nodes if name not in failure.nodes})

    def _on_side(
        self, workload: Workload, own: Sequence[ReplicaId], failure: Failure, side: tuple[str, str]
    ) -> dict[ReplicaId, Place]:
        found: dict[ReplicaId, Place] = {}
        for replica in own:
            best = min(self.options(replica, failure, side), default=None)
            if best is not None and self._take(replica, best[1]):
                found[replica] = best[1]
        return found

    def options(
        self, replica: ReplicaId, failure: Failure, side: tuple[str, str] | None = None
    ) -> Iterator[tuple[int, Place]]:
        """Yield where a replica fits now, with the GPU that stays free beside it; of like GPUs the first."""
        workload, role = self._view.spec.by_id[replica.workload], self._view.role(replica)
        for node in self.hosts(replica).values():
            if self._idle[node.name] < role.request.gpus or node.name in failure.nodes:
                continue
            if side and self._stakes.side_of(workload, node) != side:
                continue
            room = self._rooms[node.name]
            if role.request.mig:
                yield from self._instances_for(node, role)
            elif role.request.share is None:
                if copies(room, role.request) > 0:
                    gpus = room.choose(role.request) or () if role.request.gpus else ()
                    yield self._idle[node.name] - role.request.gpus, Place(node.name, gpus)
            else:
                yield from _gpus_for(room, role)

    def _instances_for(self, node: Node, role: Role) -> Iterator[tuple[int, Place]]:
        """Yield the free instances of a node that take a request for a profile, the first of each GPU."""
        if self._rooms[node.name].lacks(_without_gpus(role.request), ()) is not None:
            return
        for index in node.healthy_gpus():
            free = [each for each in self._free.get(f"{node.name}/{index}", ()) if each.profile == role.request.mig]
            if free:
                first = min(free, key=lambda each: each.start)
                yield len(free) - 1, Place(node.name, (index,), str(first))

    def take(self, replica: ReplicaId, place: Place) -> bool:
        """Take a place on trial, and tell whether that goes."""
        return self._take(replica, place)

    def undo(self, replica: ReplicaId, place: Place) -> None:
        """Give a place back."""
        self._give({replica: place})


class _Exact:
    """Every way to restart lost replicas, within a number of steps: one after the other, somewhere or nowhere."""

    def __init__(self, rescue: Rescue, lost: Sequence[ReplicaId], failure: Failure) -> None:
        self._rescue, self._lost, self._failure = rescue, lost, failure
        self._left = _STEPS
        self._now: dict[ReplicaId, Place] = {}
        self.best: dict[ReplicaId, Place] = {}

    def run(self) -> dict[ReplicaId, Place]:
        """Return the most that restarts, as far as the steps go."""
        self._decide(0)
        return self.best

    def _decide(self, index: int) -> bool:
        """Try everything from a replica on; tell whether to stop."""
        if len(self._now) > len(self.best):
            self.best = dict(self._now)
        self._left -= 1
        if len(self.best) == len(self._lost) or self._left <= 0:
            return True
        if index == len(self._lost) or len(self._now) + len(self._lost) - index <= len(self.best):
            return False
        replica = self._lost[index]
        for _, place in sorted(self._rescue.options(replica, self._failure)):
            if not self._rescue.take(replica, place):
                continue
            self._now[replica] = place
            workload = self._rescue._view.spec.by_id[replica.workload]
            done = len(self._rescue.sides(workload, self._now, self._failure)) <= 1 and self._decide(index + 1)
            del self._now[replica]
            self._rescue.undo(replica, place)
            if done:
                return True
        return self._decide(index + 1)


def _size(request: Request) -> tuple[int, int, int]:
    return -request.gpu_milli, -request.cpu, -request.memory


def _without_gpus(request: Request) -> Request:
    """Return what a request asks of the host alone."""
    return Request(cpu=request.cpu, memory=request.memory, resources=request.resources)


def _untouched(room: Room) -> int:
    """Return how many GPUs hold nothing."""
    return sum(milli == MILLI and not held for milli, held in zip(room.compute, room.tenants, strict=True))


def _gpus_for(room: Room, role: Role) -> Iterator[tuple[int, Place]]:
    """Yield the GPUs that take a share, one of those with the same room left."""
    seen: set[tuple[int, int]] = set()
    for index, milli in enumerate(room.compute):
        kind = milli, room.vram[index]
        if kind not in seen and room.lacks(role.request, (index,)) is None:
            seen.add(kind)
            yield milli - role.request.gpu_milli, Place(room.node.name, (index,))
