"""Who may leave the nodes that a gang may be on, and which of these nodes are vacated most easily."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.leavers import Leaver, Leavers
from dovetail.engine.construction.placing import Outlooks
from dovetail.spec import Workload
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.workload import MILLI

_DOMAINS = 3  # that are tried for a gang at once
_WIDER = 1, 2  # times the room that a gang needs, of which nodes are vacated
_STUCK = 8  # times its size as which one counts that had no place before


class _Weights(NamedTuple):
    """What a replica weighs beside its milli-GPU, and how many times as much one that must have a place again."""

    each: int
    kept: int


_WEIGHTS = _Weights(4 * MILLI, 1), _Weights(MILLI, 1), _Weights(MILLI // 20, 8)


@dataclass(frozen=True, slots=True)
class Guest:
    """Replicas that leave nodes together: one, or all of a gang that may be preempted.

    Parameters
    ----------
    expendable : whether they may go without a place, as they are preempted.
    alone : whether there is one, and it counts for itself.
    """

    leavers: tuple[Leaver, ...]
    band: int
    milli: int
    expendable: bool
    alone: bool


class Guests:
    """Who may leave the nodes that a gang may be on, as a field is now.

    Nodes with GPUs that are cut, or set to modes, are left alone: nobody could go back there (`back_home`).

    Parameters
    ----------
    leavers : of the field.

    `stuck` are shapes of which somebody who must have a place found none: they weigh more.
    """

    def __init__(self, outlooks: Outlooks, leavers: Leavers, workload: Workload) -> None:
        self._outlooks, self._field = outlooks, outlooks.field
        self._problem, self._workload = outlooks.field.problem, workload
        self._band = self._problem.spec.band_of(workload)
        self.stuck: set[int] = set()
        shapes = (self._problem.shapes[shape] for shape in self._problem.shapes_of_workload[workload.id])
        self._largest = max(shapes, key=lambda shape: (shape.request.gpus, shape.request.cpu))
        self._by_node = self._all(leavers)

    def on(self, nodes: Iterable[int]) -> Sequence[Guest]:
        """Return who may leave some nodes, each once."""
        return list({id(guest): guest for node in nodes for guest in self._by_node.get(node, ())}.values())

    def lacking(self) -> int:
        """Return as how many replicas of its largest shape counts what the gang lacks, by GPUs if it has any."""
        wanted = {s: self._field.wanted(s) for s in self._problem.shapes_of_workload[self._workload.id]}
        each = {shape: self._problem.shapes[shape].request.gpus for shape in wanted}
        gpus = sum(each[shape] * count for shape, count in wanted.items())
        return -(-gpus // max(each.values())) if gpus else sum(wanted.values())

    def sets_of_nodes(self) -> Iterator[Ints]:
        """Yield nodes of a domain that the gang may be in, enough of those that are vacated most easily."""
        hosts = np.flatnonzero(self._field.hosts(self._largest))
        room = self._room(hosts)
        hosts, room = hosts[room > 0], room[room > 0]
        need, ids = self.lacking(), self._domains(hosts)
        for weights in _WEIGHTS:
            weight = np.array([self._weight(node, weights) for node in hosts.tolist()])
            order = np.lexsort((hosts, weight / room, self._inner(hosts, room, weight)))
            choices = []
            for domain in np.unique(ids[ids >= 0]).tolist():
                own = order[ids[order] == domain]
                sums = np.cumsum(room[own])
                if sums[-1] >= need:
                    heavy = int(weight[own[: 1 + np.searchsorted(sums, need)]].sum())
                    choices.append((heavy, domain, own, sums))
            for _, _, own, sums in sorted(choices, key=lambda each: each[:2])[:_DOMAINS]:
                for times in _WIDER:
                    yield hosts[own[: 1 + np.searchsorted(sums, min(times * need, sums[-1]))]]

    # Who they are.

    def _all(self, leavers: Leavers) -> Mapping[int, Sequence[Guest]]:
        field, found = self._field, defaultdict[int, list[Guest]](list)
        open_to_gang = field.hosts(self._largest) & ~(field.cuts.touched | field.crowds.parted)
        for node in np.flatnonzero(open_to_gang).tolist():
            found[node] = [self._guest((leaver,)) for leaver in leavers.of(node)]
        for gang in self._gangs():
            for node in {leaver.put[0] for leaver in gang.leavers if open_to_gang[leaver.put[0]]}:
                found[node].append(gang)
        return found

    def _gangs(self) -> Iterator[Guest]:
        """Yield all that runs of each workload that stands or falls together and gives way."""
        found: dict[str, tuple[Leaver, ...]] = defaultdict(tuple)
        for node, fill in sorted(self._field.fills.items()):
            for place, count in fill.kept.items():
                workload = self._problem.shapes[place.shape].workload
                if count and workload.joint and self._gives_way(workload):
                    found[workload.id] += (Leaver((node, place.shape, place.gpus), place),) * count
        for leavers in found.values():
            if not any(each.place and each.place.instance for each in leavers):
                yield self._guest(leavers)

    def _gives_way(self, workload: Workload) -> bool:
        return workload.preemptible and workload.movable and self._problem.spec.band_of(workload) < self._band

    def _guest(self, leavers: tuple[Leaver, ...]) -> Guest:
        workload, nodes = self._problem.shapes[leavers[0].shape].workload, self._problem.nodes
        milli = sum(self._problem.request(each.shape, nodes[each.put[0]]).gpu_milli for each in leavers)
        band = self._problem.spec.band_of(workload)
        return Guest(leavers, band, milli, expendable=self._gives_way(workload), alone=not workload.joint)

    # What they leave.

    def _weight(self, node: int, weights: _Weights) -> int:
        """Return what it weighs that the guests of a node leave."""
        found = 0
        for guest in self._by_node.get(node, ()):
            times = 1 if guest.expendable else weights.kept
            times *= _STUCK if guest.leavers[0].shape in self.stuck and not guest.expendable else 1
            found += times * (guest.milli + weights.each * len(guest.leavers))
        return found

    def _room(self, hosts: Ints) -> Ints:
        """Return for how many replicas of the largest shape some nodes have room without their guests."""
        field, request = self._field, self._largest.request
        free = np.stack([field.untouched[hosts], field.cpu[hosts], field.memory[hosts]], axis=1).astype(np.int64)
        for position, node in enumerate(hosts.tolist()):
            shared: dict[int, int] = defaultdict(int)
            for leaver in (each for guest in self._by_node.get(node, ()) for each in guest.leavers):
                if leaver.put[0] == node:
                    asked = self._problem.request(leaver.shape, self._problem.nodes[node])
                    free[position] += (asked.gpus, asked.cpu, asked.memory)
                    if asked.partial:
                        shared[leaver.put[2][0]] += asked.gpu_milli
            free[position, 0] += sum(int(field.gpus[node, gpu]) + milli == MILLI for gpu, milli in shared.items())
        amounts = np.array([request.gpus, request.cpu, request.memory])
        most = self._largest.demand
        return np.asarray((free[:, amounts > 0] // amounts[amounts > 0]).min(axis=1, initial=most))

    def _domains(self, hosts: Ints) -> Ints:
        """Return the number of the domain of some nodes, of the level that the gang has to be within."""
        within = self._workload.topology.within if self._workload.topology else None
        if within is None:
            return np.zeros(len(hosts), dtype=np.int64)
        return self._outlooks.domains[NODE_LEVEL if within in INNER_LEVELS else within][hosts]

    def _inner(self, hosts: Ints, room: Ints, weight: Ints) -> Ints:
        """Return what puts nodes in order first: of domains that groups are within those whose room weighs least."""
        nests = self._workload.topology.nests if self._workload.topology else ()
        ids = self._outlooks.domains.get(nests[0].group.within) if nests else None
        if ids is None or not len(hosts):
            return np.zeros(len(hosts), dtype=np.int64)
        _, number = np.unique(ids[hosts], return_inverse=True)
        each = np.bincount(number, weight) / np.bincount(number, room)
        return np.argsort(np.argsort(each, kind="stable"), kind="stable")[number]
