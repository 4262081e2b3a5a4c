"""What the current state is worth: whose place still stands, who is protected, who may not move (S5.3, S6.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field

from dovetail.mig import Instance, parse_instance
from dovetail.placement.clients import Settings, told_settings
from dovetail.placement.compat import mix_holds, obstacle
from dovetail.placement.layouts import Layouts, declared_layouts, layout_of
from dovetail.placement.makes import make_of
from dovetail.placement.needed import not_needed
from dovetail.placement.nested import all_in_order, groups_missing
from dovetail.placement.place import Place, Places, by_workload
from dovetail.placement.room import Room
from dovetail.spec import Node, PresentReplica, ReplicaId, Role, Setting, Spec, Workload
from dovetail.spec.once import once


@dataclass(frozen=True, slots=True)
class Today:
    """The judged current state.

    Parameters
    ----------
    places : replicas whose place still stands.
    lost : declared replicas whose place is gone, with the old place.
    protected : replicas that must stay admitted.
    preemptible : replicas that could go on as they are and that only a strictly higher priority may evict.
    fixed : replicas that, while admitted, stay exactly where they are.
    layouts : today's instances of the GPUs in MIG mode, by `node/index`.
    settings : what GPUs with clients are set to, by node and pool (`placement.clients`).
    """

    places: Places = field(default_factory=dict)
    lost: Places = field(default_factory=dict)
    protected: frozenset[ReplicaId] = frozenset()
    preemptible: frozenset[ReplicaId] = frozenset()
    fixed: frozenset[ReplicaId] = frozenset()
    layouts: Layouts = field(default_factory=dict)
    settings: Settings = field(default_factory=dict)

    def present(self) -> Places:
        """Return every declared replica that runs or ran until its place went, with its place."""
        return {**self.lost, **self.places}


@once
def judge(spec: Spec) -> Today:
    """Judge the current state of a Spec, once for each.

    A replica whose index is no longer declared is simply gone, and so is one that its service does not need for its
    rate: it frees its place and is no eviction. Where the places left no longer fit together, they are granted by
    priority, then by identity.
    """
    places: dict[ReplicaId, Place] = {}
    lost: dict[ReplicaId, Place] = {}
    rooms = _Rooms(spec)
    for present, workload, role in sorted(_declared(spec), key=_precedence):
        place = Place(present.node, tuple(sorted(present.gpus)), present.instance)
        stands = rooms.take(workload, role, place)
        (places if stands else lost)[present.replica] = place
    layouts = rooms.layouts(places)
    for replica in not_needed(spec, places, lost):
        (places if replica in places else lost).pop(replica)
    running = by_workload(places)
    sound = {w.id: w for w in spec.workloads if _sound(spec, w, running.get(w.id, {}))}
    standing = [replica for replica in places if replica.workload in sound]
    return Today(
        places=places,
        lost=lost,
        protected=frozenset(r for r in standing if not sound[r.workload].preemptible),
        preemptible=frozenset(r for r in standing if sound[r.workload].preemptible),
        fixed=frozenset(r for r in places if not spec.by_id[r.workload].movable),
        layouts=layouts,
        settings=rooms.settings(),
    )


def _declared(spec: Spec) -> list[tuple[PresentReplica, Workload, Role]]:
    found = []
    for present in spec.current.replicas:
        workload = spec.by_id.get(present.replica.workload)
        role = workload.by_role.get(present.replica.role) if workload else None
        if workload and role and present.replica.ordinal < role.replicas:
            found.append((present, workload, role))
    return found


def _precedence(item: tuple[PresentReplica, Workload, Role]) -> tuple[int, ReplicaId]:
    present, workload, _ = item
    return -workload.priority, present.replica


class _Rooms:
    """The room of the nodes as places are granted one after the other."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._rooms: dict[str, Room] = {}
        self._makes: dict[str, Hashable] = {}
        self._barred: dict[tuple[str, str, Hashable], bool] = {}
        self._declared = declared_layouts(spec)
        self._told = told_settings(spec.cluster, spec.current.settings)

    def take(self, workload: Workload, role: Role, place: Place) -> bool:
        """Grant a place if it still stands."""
        node = self._spec.cluster.by_name.get(place.node)
        if node is None or self._is_barred(workload, role, node):
            return False
        room = self._rooms.get(node.name)
        if room is None:
            room = self._rooms[node.name] = Room(node, self._spec.accelerators, self._told.get(node.name, {}))
        request = role.request
        if not self._as_declared(place) or room.lacks(request, place.gpus, place.instance, running=True):
            return False
        room.take(role.request, place.gpus, place.instance)
        return True

    def _as_declared(self, place: Place) -> bool:
        """Tell whether the layouts that are told of a place's GPUs have its instance, or none where it has none."""
        if not self._declared:
            return True
        told = [self._declared[gpu] for gpu in place.gpu_names if gpu in self._declared]
        return all(place.instance and parse_instance(place.instance) in layout for layout in told)

    def settings(self) -> Settings:
        """Return what today's pools with clients are set to: as told, or as suits those who are there."""
        found: dict[tuple[str, int], Setting] = {}
        for name, room in sorted(self._rooms.items()):
            for pool, setting in (room.crowd.settings(self._told.get(name, {})) if room.crowd else {}).items():
                if setting is not None:
                    found[name, pool] = setting
        return found

    def layouts(self, places: Places) -> Layouts:
        """Return today's layouts: those told, and of other GPUs the instances that are in use."""
        used: dict[str, list[Instance]] = {}
        for place in places.values():
            if place.instance:
                used.setdefault(place.gpu_names[0], []).append(parse_instance(place.instance))
        found = {gpu: layout_of(instances) for gpu, instances in used.items()}
        return dict(sorted({**found, **self._declared}.items()))

    def _is_barred(self, workload: Workload, role: Role, node: Node) -> bool:
        """Tell whether a role may not be on a node, asked once per make of node."""
        make = self._makes.get(node.name)
        if make is None:
            make = self._makes[node.name] = make_of(node)
        key = workload.id, role.name, make
        if key not in self._barred:
            self._barred[key] = obstacle(workload, role, node, self._spec.accelerators, running=True) is not None
        return self._barred[key]


def _sound(spec: Spec, workload: Workload, running: Places) -> bool:
    """Tell whether what runs of a workload could go on as it is: enough of it, on accelerators that may mix (S2)."""
    counts = Counter(replica.role for replica in running)
    return (
        bool(running)
        and workload.allows(counts)
        and not groups_missing(workload, running)
        and _in_whole_groups(spec, workload, running)
        and mix_holds(spec, workload, running)
    )


def _in_whole_groups(spec: Spec, workload: Workload, running: Places) -> bool:
    """Tell whether no group of consecutive replicas runs in part only, or with less than its minimum."""
    if workload.topology is not None and workload.topology.loose:
        return all_in_order(spec.cluster, running, workload)
    for group in workload.topology.groups if workload.topology else ():
        found: Counter[int] = Counter()
        for replica in running:
            if replica.role in group.sizes:
                found[replica.ordinal // group.sizes[replica.role]] += 1
        if any(count != sum(group.sizes.values()) for count in found.values()):
            return False
    return True
