"""Bounds that a plan refutes itself: work waits that has room, or moves and could stay (S5.2).

Each is shown by another plan. Where none is found there may be one: what would take others to move, or a search, is
not looked for, nor is anything beside hard policies that search placements of their own (`survive`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import chain, islice
from typing import Final

from dovetail.objectives.admitted import Admitted, Retained
from dovetail.objectives.disruption import Moves
from dovetail.placement import Place, Places, Room, View
from dovetail.plan.forbidden import closed_nodes
from dovetail.plan.reasons import UNPROVED
from dovetail.plan.space import Space, Wanting, places_in
from dovetail.spec import Node, ReplicaId, Request, Workload
from dovetail.verify.better import beaten_by
from dovetail.verify.case import Case
from dovetail.verify.model import Finding, Found, Open

_MOST: Final = 128
"""Placements that are tried per plan; after them no bound is asked about any more."""

_EACH: Final = 16
"""Those that are tried per workload, and domains in which several of its replicas are tried together."""

_REPLICAS: Final = 200_000
"""Replicas that all placements which are tried may have together."""


def refuted(case: Case) -> Iterator[Found]:
    """Yield the first bound that a plan with a workload more, or with fewer moves, passes."""
    if not case.known:
        yield from (Open(workload.id) for workload in case.spec.workloads if _is_said_to_be_too_much(case, workload))
    elif not any(policy.rule.searches for policy in case.hard):
        yield from _refuted(case)


def _refuted(case: Case) -> Iterator[Finding]:
    most = min(_MOST, _REPLICAS // max(1, len(case.plan.placements)))
    for words, view in islice(chain(_with_more(case), _with_fewer_moves(case)), most):
        found = beaten_by(case, view)
        if found is not None:
            told = f"has bound {found.bound}, and {found.value} can be had: {words}"
            yield Finding(found.tier.name, told)
            return


# -- who waits


def _with_more(case: Case) -> Iterator[tuple[str, View]]:
    """Yield the plan with as few more replicas of a workload as it may have, where they have room."""
    waiting = [workload for workload in case.spec.workloads if _is_said_to_be_too_much(case, workload)]
    fitting = _Fitting(case) if waiting else None
    for workload in waiting:
        for more in islice(fitting.ways(workload) if fitting else (), _EACH):
            yield f"{workload.id} has room beside all that is admitted", case.view.extended(workload, more)


def _is_said_to_be_too_much(case: Case, workload: Workload) -> bool:
    """Tell whether nothing is known to be in a workload's way, and a bound says that it cannot be admitted."""
    told = case.plan.admitted.get(workload.id)
    if told is None or (UNPROVED not in told.reasons and len(workload.roles) == 1):
        return False  # of several roles one may have room where another has none
    band = case.spec.band_of(workload)
    names = (Retained(band).name, Admitted(band).name, Admitted(band, gpu=False).name)
    worth = sum(role.worth(role.replicas) for role in workload.roles)
    tiers = (tier for tier in case.plan.tiers if tier.name in names)
    return any(tier.bound is not None and tier.bound < tier.value + worth for tier in tiers)


class _Fitting:
    """Finds room for what waits, beside all that a plan admits and holds free."""

    def __init__(self, case: Case) -> None:
        self._case, self._view = case, case.view
        self._space = Space(case.view)
        self._rooms = case.view.fresh_rooms()

    def ways(self, workload: Workload) -> Iterator[Places]:
        """Yield places for as few more replicas as a workload may have: one anywhere, several in one region each."""
        closed = closed_nodes(self._case.context, workload)
        every = (Wanting(role, 1, self._space.usable(workload, role, closed)) for role in workload.roles)
        wanting = {want.role.name: want for want in every if self._space.has_room(want)}
        absent = self._absent(workload, wanting)
        if len(absent) == 1:
            yield from ({absent[0]: place} for place in self._space.options(wanting[absent[0].role]))
            return
        for region in islice(self._regions(workload), _EACH):
            nodes = {name: [node for node in want.nodes if node.name in region] for name, want in wanting.items()}
            if found := self._fill(absent, nodes):
                yield found

    def _absent(self, workload: Workload, roles: Container[str]) -> Sequence[ReplicaId]:
        """Return the first of some roles that are not admitted, those before others whose turn is earlier."""
        present = frozenset(self._case.context.today.present())
        absent = (r for r in workload.replica_ids() if r.role in roles and r not in self._view.places)
        ordered = sorted(absent, key=lambda replica: replica not in present)
        more = workload.min_replicas - len(self._view.admitted(workload))
        return ordered[: more if more > 0 else min((role.step for role in workload.roles), default=1)]

    def _regions(self, workload: Workload) -> Iterator[frozenset[str]]:
        """Yield the sets of nodes that could host several replicas together: by domain, and by accelerator."""
        level = workload.topology.within if workload.topology is not None else None
        alike = workload.atomic and workload.mix != "any"
        found: dict[tuple[str | None, str | None], list[str]] = {}
        for node in self._case.spec.cluster.nodes:
            domain = node.domain(level) if level in self._case.spec.cluster.levels else None
            found.setdefault((domain, node.accelerator if alike else None), []).append(node.name)
        yield from map(frozenset, found.values())

    def _fill(self, replicas: Sequence[ReplicaId], nodes: dict[str, list[Node]]) -> Places:
        """Return a place for each replica, the first that is left; nothing where one finds none."""
        found: dict[ReplicaId, Place] = {}
        for replica in replicas:
            request = self._view.role(replica).request
            place = self._first_place(request, nodes[replica.role])
            if place is None:
                break
            self._room(place.node).take(request, place.gpus, place.instance)
            found[replica] = place
        for replica, place in found.items():
            self._rooms[place.node].give(self._view.role(replica).request, place.gpus, place.instance)
        return found if len(found) == len(replicas) else {}

    def _first_place(self, request: Request, nodes: list[Node]) -> Place | None:
        """Return the first place that some nodes have, and drop those before it: they have none any more."""
        while nodes:
            place = next(places_in(self._room(nodes[0].name), request), None)
            if place is not None:
                return place
            del nodes[0]
        return None

    def _room(self, name: str) -> Room:
        if name not in self._rooms:
            self._rooms[name] = Room(self._case.spec.cluster.by_name[name], self._case.spec.accelerators)
        return self._rooms[name]


# -- who moves


def _with_fewer_moves(case: Case) -> Iterator[tuple[str, View]]:
    """Yield the plan with those of a workload where they run today who have room there: all, then one by one."""
    if Moves() not in case.tiers or not any(case.view.moved(workload) for workload in case.spec.workloads):
        return
    today, rooms = case.context.today.places, case.view.fresh_rooms()
    for workload in case.spec.workloads:
        able = [replica for replica in case.view.moved(workload) if _could_stay(case, rooms, replica)]
        for some in (able, *([replica] for replica in able[:_EACH] if len(able) > 1)):
            if some:
                places = {**case.view.places, **{replica: today[replica] for replica in some}}
                yield f"{some[0]} could stay where it runs", case.context.view(places, case.view.held)


def _could_stay(case: Case, rooms: dict[str, Room], replica: ReplicaId) -> bool:
    """Tell whether a replica that moves has room on its place of today."""
    request = case.view.role(replica).request
    place, before = case.view.places[replica], case.context.today.places[replica]
    if place == before:
        return False
    rooms[place.node].give(request, place.gpus, place.instance)
    room = rooms.get(before.node)
    free = room is None or room.lacks(request, before.gpus, before.instance, running=True) is None
    rooms[place.node].take(request, place.gpus, place.instance)
    return free
