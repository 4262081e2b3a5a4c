"""A greedy autoscaler: scales service after service on what serves it best by itself, and fits the others in.

Bands come one by one, the highest first. In each, services that ask for rates come first, those of most value before
others: each takes the accelerator, or MIG profile of one, that serves most of its rate per compute slice (a whole GPU
is seven), in as many replicas as its rate needs, and what serves next most once there is no room for more. All others
come after, those whose replicas have most GPUs first. A replica goes to the first node and GPU with room for it, an
instance to the start beside which most profiles still find one; nothing is taken back. What runs stays where it is.
Workloads have one role each.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from benchmarks.specs import Case

from dovetail.mig import arrange
from dovetail.placement import Place, Room, by_workload, layout_of
from dovetail.placement.hosts import host_at, slices
from dovetail.spec import ReplicaId, Request, Workload

Spot = tuple[tuple[int, ...], str]  # GPUs of a node, and the instance on the only one


def place(case: Case, seconds: float) -> tuple[dict[ReplicaId, Place], str]:
    """Place the replicas of all workloads until time is up; return their places and a note on what was left."""
    ends, scaler = time.monotonic() + seconds, _Scaler(case)
    places: dict[ReplicaId, Place] = {}
    waiting = sorted(case.problem.spec.workloads, key=scaler.rank)
    for number, workload in enumerate(waiting):
        if time.monotonic() > ends:
            return places, f"time up with {len(waiting) - number:,} of {len(waiting):,} workloads not looked at"
        places |= scaler.scaled(workload)
    return places, ""


class _Option(NamedTuple):
    """What replicas of a workload may be on: what one sustains there, and a MIG profile, empty for whole GPUs."""

    rate: int
    profile: str
    nodes: tuple[int, ...]


class _Scaler:
    """The room that is left on all nodes."""

    def __init__(self, case: Case) -> None:
        self._spec = case.problem.spec
        self._rooms = [Room(node, self._spec.accelerators) for node in case.problem.nodes]
        self._models = np.array([node.model for node in case.nodes])
        gate, shapes = case.gate(), case.problem.shapes
        self._hosts = {m.workload.id: gate.hosts(shape.index) for shape in shapes for m in shape.members}
        self._lines: dict[Hashable, _Line] = {}
        self._running = by_workload(case.context.today.places)
        for own in self._running.values():
            for replica, place in own.items():
                request = self._spec.by_id[replica.workload].roles[0].request
                self._rooms[case.problem.node_index[place.node]].take(request, place.gpus, place.instance)

    def rank(self, workload: Workload) -> tuple[int, bool, int, str]:
        """Return what orders workloads."""
        role = workload.roles[0]
        weight = role.value * role.replicas if workload.asks_rate else role.request.gpu_milli
        return -self._spec.band_of(workload), not workload.asks_rate, -weight, workload.id

    def scaled(self, workload: Workload) -> dict[ReplicaId, Place]:
        """Place replicas of a workload: as many as its rate needs, all where it asks for none."""
        request, found = workload.roles[0].request, dict(self._running.get(workload.id, {}))
        waiting = [replica for replica in workload.replica_ids() if replica not in found]
        missing = self._missing(workload, found.values())
        for option in self._options(workload):
            line = self._line(request, option)
            while missing > 0 and waiting:
                place = line.first(request, option.profile)
                if place is None:
                    break
                found[waiting.pop(0)] = place
                missing -= option.rate
        return found

    def _missing(self, workload: Workload, places: Iterable[Place]) -> int:
        """Return what of its rate a workload does not serve at some places; 1 where it asks for none."""
        if workload.slo is None or not workload.asks_rate:
            return 1
        return workload.slo.rate - sum(workload.slo.rates.get(host_at(self._spec, place), 0) for place in places)

    def _options(self, workload: Workload) -> Iterator[_Option]:
        """Yield what a workload may be on, what serves most per slice first, and of that what takes least."""
        hosts, slo = self._hosts[workload.id], workload.slo
        if slo is None or not workload.asks_rate:
            yield _Option(0, "", tuple(np.flatnonzero(hosts).tolist()))
            return
        taken = {host: slices(self._spec, workload.roles[0].request, host) for host in slo.rates}
        for host in sorted(slo.rates, key=lambda host: (-Fraction(slo.rates[host], taken[host]), taken[host], host)):
            model, _, profile = host.partition("/")
            nodes = np.flatnonzero(hosts & (self._models == model))
            yield _Option(slo.rates[host], profile, tuple(nodes.tolist()))

    def _line(self, request: Request, option: _Option) -> _Line:
        """Return the line for all that ask for the same, whatever rates they have."""
        share = replace(request.share, rated=None) if request.share is not None else None
        kind = request.cpu, request.memory, tuple(sorted(request.resources.items())), request.gpus, share
        key = *kind, request.inside, option.profile, option.nodes
        return self._lines.setdefault(key, _Line([self._rooms[node] for node in option.nodes]))


class _Line:
    """Nodes in the order in which replicas of one kind try them; as nodes fill, what had no room has none later."""

    def __init__(self, rooms: list[Room]) -> None:
        self._rooms, self._at = rooms, 0

    def first(self, request: Request, profile: str) -> Place | None:
        """Put a replica on the first node with room for it; return its place, None where there is none."""
        while self._at < len(self._rooms):
            room = self._rooms[self._at]
            spot = _instance(room, request, profile) if profile else _untouched(room, request)
            if spot is not None:
                room.take(request, *spot)
                return Place(room.node.name, *spot)
            self._at += 1
        return None


def _untouched(room: Room, request: Request) -> Spot | None:
    gpus = room.choose(request)
    return (gpus, "") if gpus is not None and room.lacks(request, gpus) is None else None


def _instance(room: Room, request: Request, profile: str) -> Spot | None:
    if room.geometry is None:
        return None
    for gpu in range(room.node.gpus):
        made = arrange(room.geometry, {profile: 1}, layout_of(room.instances.get(gpu, ())))
        if made and room.lacks(request, (gpu,), str(made[0])) is None:
            return (gpu,), str(made[0])
    return None
