"""Who may leave the nodes that a gang may be on, and which of these nodes are vacated most easily."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.leavers import EVERYBODY, Leaver
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.preempting import Preempting
from dovetail.engine.construction.prices import Price
from dovetail.rules.reserve import UntouchedGuard
from dovetail.spec import Workload
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.workload import MILLI

_DOMAINS = 3  # that are tried for a gang at once
_PRICED = 6  # domains of which nodes are priced
_SPARE = 6  # times as many nodes as the gang needs are priced of each
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
    price : what it costs that they go without a place, None where they must have one.
    alone : whether there is one, and it counts for itself.
    """

    leavers: tuple[Leaver, ...]
    band: int
    milli: int
    price: Price | None
    alone: bool

    @property
    def expendable(self) -> bool:
        """Whether they may go without a place, as they are preempted."""
        return self.price is not None


Known = dict[int, tuple[int, list[Guest]]]


class Guests:
    """Who may leave the nodes that a gang may be on, as a field is now.

    Nodes with GPUs that are cut, or set to modes, are left alone: nobody could go back there (`back_home`).

    Parameters
    ----------
    preempting : for the band of the gang.
    known : who may leave a node, as it was at a turn of the field; what is found is entered.
    barred : nodes that the gang may not be on.

    `stuck` are shapes of which somebody who must have a place found none: they weigh more.
    """

    def __init__(
        self, outlooks: Outlooks, preempting: Preempting, workload: Workload, known: Known, barred: Bools
    ) -> None:
        self._outlooks, self._field = outlooks, outlooks.field
        self._problem, self._workload = outlooks.field.problem, workload
        self._preempting, self._victims, self._known = preempting, preempting.victims, known
        self.stuck: set[int] = set()
        shapes = (self._problem.shapes[shape] for shape in self._problem.shapes_of_workload[workload.id])
        self._largest = max(shapes, key=lambda shape: (shape.request.gpus, shape.request.cpu))
        hosts = self._field.hosts(self._largest) & ~(self._field.cuts.touched | self._field.crowds.parted | barred)
        self._hosts = self._near(np.flatnonzero(hosts))

    def on(self, nodes: Iterable[int]) -> Sequence[Guest]:
        """Return who may leave some nodes, each once; who leaves together as they are now, on other nodes too."""
        alone = list[Guest]()
        joint = dict[str, Leaver]()
        for guest in (guest for node in nodes for guest in self._of(node)):
            if guest.alone:
                alone.append(guest)
            else:
                joint[self._problem.shapes[guest.leavers[0].shape].workload.id] = guest.leavers[0]
        return [*alone, *(self.guest(self._victims.together(leaver)) for leaver in joint.values())]

    def lacking(self, *, least: bool = False) -> int:
        """Return as how many replicas of its largest shape counts what the gang lacks, by GPUs if it has any.

        Parameters
        ----------
        least : of an elastic one, without what it may go on without, or the next step (S2.6).
        """
        wanted = {s: self._field.wanted(s) for s in self._problem.shapes_of_workload[self._workload.id]}
        if least and any(self._field.admitted[shape] for shape in wanted):
            roles = {shape: self._problem.shapes[shape].role for shape in wanted}
            grows = [s for s, role in roles.items() if role.elastic and wanted[s] >= role.step]
            wanted = {shape: roles[shape].step for shape in grows[:1]}
        elif least:
            roles = {shape: self._problem.shapes[shape].role for shape in wanted}
            wanted = {shape: roles[shape].replicas if r.least is None else r.least for shape, r in roles.items()}
        each = {shape: self._problem.shapes[shape].request.gpus for shape in wanted}
        gpus = sum(each[shape] * count for shape, count in wanted.items())
        return -(-gpus // max(each.values())) if gpus else sum(wanted.values())

    def sets_of_nodes(self, need: int) -> Iterator[Ints]:
        """Yield nodes of a domain that the gang may be in, enough of those that are vacated most easily.

        By what it costs to preempt there first, if anybody gives way, then by who would have to leave.

        Parameters
        ----------
        need : for how many replicas of the largest shape (`lacking`).
        """
        room = self._room(self._hosts)
        hosts, room = self._hosts[room > 0], room[room > 0]
        if self._preempting.possible:
            among = self._cheap(hosts, room, need)
            yield from self._sets(hosts[among], room[among], self._prices(hosts[among]), need)
        for weights in _WEIGHTS:
            yield from self._sets(hosts, room, [self._weight(node, weights) for node in hosts.tolist()], need)

    def _sets(self, hosts: Ints, room: Ints, weight: Sequence[int], need: int) -> Iterator[Ints]:
        """Yield sets of nodes of the domains in which those weigh least that have room for the gang."""
        ids = self._domains(hosts)
        amount = _amounts(weight, room)
        order = np.lexsort((hosts, amount / room, self._inner(hosts, room, amount)))
        choices = []
        for domain in np.unique(ids[ids >= 0]).tolist():
            own = order[ids[order] == domain]
            sums = np.cumsum(room[own])
            if sums[-1] >= need:
                heavy = sum(weight[each] for each in own[: 1 + np.searchsorted(sums, need)].tolist())
                choices.append((heavy, domain, own, sums))
        for _, _, own, sums in sorted(choices, key=lambda each: each[:2])[:_DOMAINS]:
            for times in _WIDER:
                yield hosts[own[: 1 + np.searchsorted(sums, min(times * need, sums[-1]))]]

    def _cheap(self, hosts: Ints, room: Ints, need: int) -> Ints:
        """Return which hosts, of some domains, are those where who would have to leave is about the least dear."""
        ids = self._domains(hosts)
        dearest = self._victims.dearest(self._largest.request.gpu_count, alone=False)[hosts]
        order = np.argsort(dearest, kind="stable")
        choices = []
        for domain in np.unique(ids[ids >= 0]).tolist():
            own = order[ids[order] == domain]
            last = int(np.searchsorted(np.cumsum(room[own]), need))
            if last < len(own):
                choices.append((int(dearest[own[last]]), domain, own[: _SPARE * (last + 1)]))
        chosen = [own for *_, own in sorted(choices, key=lambda each: each[:2])[:_PRICED]]
        return np.sort(np.concatenate(chosen)) if chosen else np.array([], dtype=np.int64)

    def _prices(self, hosts: Ints) -> list[Price]:
        """Return what it costs to make room on nodes for one of the gang, the most where that is not known."""
        found = (self._preempting.price(self._largest.index, node) for node in hosts.tolist())
        return [self._victims.prices.most if price is None else price for price in found]

    # Who they are.

    def _of(self, node: int) -> list[Guest]:
        """Return who may leave a node."""
        turn, found = self._known.get(node, (-1, []))
        if turn != self._field.touched[node]:
            found = [self.guest(self._victims.together(leaver)) for leaver in self._victims.leavers.of(node)]
            self._known[node] = int(self._field.touched[node]), found
        return found

    def guest(self, leavers: Sequence[Leaver]) -> Guest:
        """Return replicas of one workload as one who leaves."""
        workload, nodes = self._problem.shapes[leavers[0].shape].workload, self._problem.nodes
        milli = sum(self._problem.request(each.shape, nodes[each.put[0]]).gpu_milli for each in leavers)
        band, prices = self._problem.spec.band_of(workload), self._victims.prices
        price = prices.total([prices.evicted(leavers)]) if self._victims.gives_way(leavers[0]) else None
        return Guest(tuple(leavers), band, milli, price, alone=not workload.joint)

    # What they leave.

    def _weight(self, node: int, weights: _Weights) -> int:
        """Return what it weighs that the guests of a node leave."""
        found = 0
        for guest in self._of(node):
            times = 1 if guest.expendable else weights.kept
            times *= _STUCK if guest.leavers[0].shape in self.stuck and not guest.expendable else 1
            found += times * (guest.milli + weights.each * len(guest.leavers))
        return found

    def _room(self, hosts: Ints) -> Ints:
        """Return for how many replicas of the largest shape some nodes have room without their guests."""
        leavers = self._victims.leavers
        *asked, gpus = leavers.asked(self._largest.index)
        most = leavers.most()[hosts, EVERYBODY]
        found = np.full(len(hosts), self._largest.demand, dtype=np.int64)
        for position, (name, amount) in enumerate(zip(leavers.names, asked, strict=True)):
            if amount:
                found = np.minimum(found, (leavers.free(name)[hosts] + most[:, position]) // amount)
        if gpus:
            idle = self._field.untouched[hosts] + most[:, -1]
            for position, node in enumerate(hosts.tolist()):
                fill = self._field.fills.get(node)
                if fill is not None and any(self._field.partial[slot.shape] for slot in fill.slots):
                    idle[position] = self._idle(node)
            found = np.minimum(found, idle // gpus)
        return np.where(self._kept_untouched(hosts), 0, found)

    def _kept_untouched(self, hosts: Ints) -> Bools:
        """Tell which nodes are in domains that policies keep untouched: whoever leaves others, they stay so."""
        role, field = self._largest.role, self._field
        guards = [g for g in field.gates.guards(self._largest.index) if isinstance(g, UntouchedGuard)]
        if not guards:
            return np.zeros(len(hosts), dtype=np.bool_)
        nodes = (self._problem.nodes[node] for node in hosts.tolist())
        kept = [any(guard.blocks(self._workload, role, node, None) for guard in guards) for node in nodes]
        return np.array(kept, dtype=np.bool_)

    def _idle(self, node: int) -> int:
        """Return how many GPUs of a node are idle without its guests; of a shared one all may have to leave."""
        found = int(self._field.untouched[node])
        milli: list[int] = self._field.gpus[node].tolist()
        shared = set[int]()
        for leaver in (each for guest in self._of(node) for each in guest.leavers if each.put[0] == node):
            asked = self._problem.request(leaver.shape, self._problem.nodes[node])
            found += asked.gpus
            if asked.partial:
                milli[leaver.put[2][0]] += asked.gpu_milli
                shared.add(leaver.put[2][0])
        return found + sum(milli[gpu] == MILLI for gpu in shared)

    def _near(self, hosts: Ints) -> Ints:
        """Return those hosts that are in the domain of those of the gang who have a place, all if none has."""
        own = self._problem.shapes_of_workload[self._workload.id]
        if not any(self._field.admitted[shape] for shape in own):
            return hosts
        there = [
            n for n, fill in self._field.fills.items() if any(c and s.shape in own for s, c in fill.slots.items())
        ]
        return hosts[np.isin(self._domains(hosts), self._domains(np.array(there)))]

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


def _amounts(weight: Sequence[int], room: Ints) -> Ints:
    """Return weights as an array, where they are too large for one their ranks per room."""
    if max(weight, default=0) < 1 << 53:
        return np.array(weight, dtype=np.int64)
    each = [w // r for w, r in zip(weight, room.tolist(), strict=True)]
    rank = {value: number for number, value in enumerate(sorted(set(each)))}
    return np.array([rank[value] for value in each], dtype=np.int64) * room
