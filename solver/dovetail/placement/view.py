"""A finished placement seen from every side a check needs: by domain, by workload, by GPU."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import cast

from dovetail.placement.clients import WHOLE, Settings, equal_parts, listed, pool_of
from dovetail.placement.layouts import Layouts, planned_layouts, recut, restarted
from dovetail.placement.place import Held, Place, Places, Recovery
from dovetail.placement.room import Room
from dovetail.placement.today import Today
from dovetail.spec import ReplicaId, Role, Setting, Spec, Workload
from dovetail.spec.cluster import GPU_LEVEL
from dovetail.spec.inside import INNER_LEVELS, mask_of


@dataclass(frozen=True)
class View:
    """A Spec, the places of all admitted replicas, and today's judged state.

    `held` are the places that policies hold free; None where nobody has said which, only that there may be some.
    `recovery` tells where lost replicas restart, None likewise.
    """

    spec: Spec
    places: Places
    today: Today = field(default_factory=Today)
    held: Held | None = None
    recovery: Recovery | None = None

    def role(self, replica: ReplicaId) -> Role:
        """Return the role of a replica."""
        return self.spec.by_id[replica.workload].by_role[replica.role]

    @cached_property
    def by_workload(self) -> Mapping[str, tuple[ReplicaId, ...]]:
        """Admitted replicas by workload id."""
        found: dict[str, list[ReplicaId]] = {}
        for replica in sorted(self.places):
            found.setdefault(replica.workload, []).append(replica)
        return {workload: tuple(replicas) for workload, replicas in found.items()}

    def extended(self, workload: Workload, more: Places) -> View:
        """Return a view with more replicas of a workload, at the cost of that workload alone."""
        places = ChainMap(dict(more), cast("dict[ReplicaId, Place]", self.places))  # read only
        found = View(self.spec, places, self.today, self.held)
        own = tuple(sorted([*self.admitted(workload), *more]))
        found.__dict__["by_workload"] = {**self.by_workload, workload.id: own}
        found.__dict__["origin"] = self, workload.id
        return found

    def as_told(self, layouts: Layouts, told: Mapping[str, Mapping[int, Setting]]) -> View:
        """Return a view of the same places on GPUs that are cut and set as told, whatever they are today.

        Parameters
        ----------
        told : what pools are set to, by node and pool; others with clients are set to `WHOLE`.
        """
        found = View(self.spec, self.places, self.today, self.held, self.recovery)
        there = {(name, pool): WHOLE for name, room in self.rooms.items() if room.crowd for pool in room.crowd.used}
        set_so = {(name, pool): setting for name, own in told.items() for pool, setting in own.items()}
        found.__dict__["layouts"] = dict(sorted(layouts.items()))
        found.__dict__["settings"] = {**there, **set_so}
        return found

    @cached_property
    def origin(self) -> tuple[View, str] | None:
        """The view that this one extends, and the workload in which they differ."""
        return None

    def admitted(self, workload: Workload) -> tuple[ReplicaId, ...]:
        """Return the admitted replicas of a workload."""
        return self.by_workload.get(workload.id, ())

    def count(self, workload: Workload, role: Role) -> int:
        """Return how many replicas of a role are admitted."""
        admitted = self.admitted(workload)
        return len(admitted) if len(workload.roles) == 1 else sum(r.role == role.name for r in admitted)

    def domains_of(self, level: str, place: Place) -> tuple[str, ...]:
        """Return the domain paths that a place lies in at a level; `gpu` gives one `node/index` per GPU."""
        if level == GPU_LEVEL:
            return place.gpu_names
        node = self.spec.cluster.by_name[place.node]
        if level in INNER_LEVELS:
            return node.domains_inside(level, mask_of(place.gpus))
        path = node.domain(level)
        return () if path is None else (path,)

    def domain_of(self, level: str, replica: ReplicaId) -> str | None:
        """Return the domain of a level that holds a replica, None where no single one does."""
        found = self.domains_of(level, self.places[replica])
        return found[0] if len(found) == 1 else None

    def tenants_of_domains(
        self, level: str, workloads: Iterable[Workload], nodes: frozenset[str] | None, *, uncut: bool = False
    ) -> Mapping[str, Counter[str]]:
        """Return, per domain of a level, how many replicas of each workload lie in it (on `nodes` only).

        Those on MIG instances are left out where `uncut` is set.
        """
        found: dict[str, Counter[str]] = {}
        for workload in workloads:
            for path, count in self._spread_of(level, workload, nodes, uncut).items():
                who = found.get(path)
                if who is None:
                    who = found[path] = Counter()
                who[workload.id] += count
        return found

    @cached_property
    def _spreads(self) -> dict[tuple[str, str, frozenset[str] | None, bool], Counter[str]]:
        return {}

    def _spread_of(
        self, level: str, workload: Workload, nodes: frozenset[str] | None, uncut: bool = False
    ) -> Counter[str]:
        """Return how many replicas of a workload lie in each domain, worked out once."""
        if self.origin is not None and self.origin[1] != workload.id:
            return self.origin[0]._spread_of(level, workload, nodes, uncut)
        key = level, workload.id, nodes, uncut
        found = self._spreads.get(key)
        if found is None:
            places = [self.places[replica] for replica in self.admitted(workload)]
            if nodes is not None:
                places = [place for place in places if place.node in nodes]
            if uncut:
                places = [place for place in places if not place.instance]
            found = self._spreads[key] = Counter(path for place in places for path in self.domains_of(level, place))
        return found

    @cached_property
    def hosts(self) -> dict[str, Counter[str]]:
        """On what how many replicas of workloads are, of those that somebody has asked for (`placement.served`)."""
        return {}

    @cached_property
    def rooms(self) -> Mapping[str, Room]:
        """What the nodes that host or hold anything have left, by name, not to be changed."""
        return self.fresh_rooms()

    def fresh_rooms(self) -> dict[str, Room]:
        """Return what the nodes that host or hold anything have left, by name, for the caller to change."""
        rooms: dict[str, Room] = {}
        by_name = self.spec.cluster.by_name
        for replica, place in self.places.items():
            room = rooms.get(place.node)
            if room is None:
                room = rooms[place.node] = Room(by_name[place.node], self.spec.accelerators)
            room.take(self.role(replica).request, place.gpus, place.instance)
        for replica, place in self.placeholders:
            room = rooms.setdefault(place.node, Room(by_name[place.node], self.spec.accelerators))
            room.take(self.role(replica).request, place.gpus, place.instance)
        return rooms

    @cached_property
    def placeholders(self) -> tuple[tuple[ReplicaId, Place], ...]:
        """The places held free, each with what stands for it."""
        held = self.held or {}
        return tuple(
            pair
            for workload in self.spec.placeholders
            for pair in zip(workload.replica_ids(), held.get(workload.holds, ()), strict=False)
        )

    def moved(self, workload: Workload) -> tuple[ReplicaId, ...]:
        """Return the replicas whose place still stands today and that are admitted on another one.

        A replica whose place is gone restarts rather than moves: nothing that a plan does could have kept it. One
        under which a GPU is cut anew counts as moved, though its place may be the same (S5.4).
        """
        today, again = self.today.places, self.restarted
        return tuple(r for r in self.admitted(workload) if r in today and (today[r] != self.places[r] or r in again))

    @cached_property
    def layouts(self) -> Layouts:
        """The instances of the GPUs that are in MIG mode, by `node/index`."""
        return planned_layouts(
            self.spec, self.today.layouts, [*self.places.values(), *(p for _, p in self.placeholders)]
        )

    @cached_property
    def recut(self) -> frozenset[str]:
        """The GPUs whose mode or layout changes, as `node/index`."""
        return recut(self.spec, self.today.layouts, self.layouts)

    @cached_property
    def settings(self) -> Settings:
        """What GPUs that are shared by equal parts are set to, by node and pool, where they have clients."""
        found: dict[tuple[str, int], Setting] = {}
        today: dict[str, dict[int, Setting]] = {}
        for (name, pool), setting in self.today.settings.items():
            today.setdefault(name, {})[pool] = setting
        for name, room in sorted(self.rooms.items()):
            if room.crowd is not None:
                settings = room.crowd.settings(today.get(name, {}))
                found |= {(name, pool): setting for pool, setting in settings.items() if setting is not None}
        return found

    def mode_of(self, replica: ReplicaId) -> str | None:
        """Return the mode of the GPUs that an admitted replica is on (S3.2), None without GPUs."""
        place, request = self.places[replica], self.role(replica).request
        if place.instance:
            return "mig"
        if request.share is None:
            return request.mode
        node = self.spec.cluster.by_name[place.node]
        if not equal_parts(node):
            return "time-slice"
        return self.settings.get((place.node, pool_of(node, place.gpus[0])), WHOLE).mode

    @cached_property
    def shared(self) -> Mapping[str, Setting]:
        """The GPUs that clients share, with their mode, by `node/index` (S3.5)."""
        by_node: dict[str, dict[int, Setting]] = {}
        for (name, pool), setting in self.settings.items():
            by_node.setdefault(name, {})[pool] = setting
        nodes = self.spec.cluster.by_name
        return dict(sorted(row for name, own in by_node.items() for row in listed(nodes[name], own, self.layouts)))

    @cached_property
    def restarted(self) -> frozenset[ReplicaId]:
        """The replicas that restart in the same place: their GPU is cut anew, or shared in another way."""
        if not self.today.places:
            return frozenset()
        found: frozenset[ReplicaId] = frozenset()
        if self.today.layouts or self.spec.uses_mig:
            found = restarted(self.spec, self.recut, self.today.places, self.places)
        return found | self._set_anew()

    def _set_anew(self) -> frozenset[ReplicaId]:
        """Return the clients in place whose GPUs are set to another mode or number of clients."""
        changed = {key for key, setting in self.today.settings.items() if self.settings.get(key) != setting}
        if not changed:
            return frozenset()
        by_name = self.spec.cluster.by_name
        return frozenset(
            replica
            for replica, place in self.today.places.items()
            if self.places.get(replica) == place
            and self.role(replica).request.share is not None
            and not place.instance
            and (place.node, pool_of(by_name[place.node], place.gpus[0])) in changed
        )

    def evicted(self, workload: Workload) -> tuple[ReplicaId, ...]:
        """Return the replicas of a workload that run, or ran until their place went, and are not admitted now."""
        return tuple(r for r in self.present_by_workload.get(workload.id, ()) if r not in self.places)

    @cached_property
    def present_by_workload(self) -> Mapping[str, tuple[ReplicaId, ...]]:
        """Replicas of today's state by workload id, those whose place is gone included."""
        found: dict[str, list[ReplicaId]] = {}
        for replica in sorted(self.today.present()):
            found.setdefault(replica.workload, []).append(replica)
        return {workload: tuple(replicas) for workload, replicas in found.items()}
