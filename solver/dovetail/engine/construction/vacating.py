"""Room for gangs among what runs: nodes of one domain are vacated for all of a gang at once.

Construction never touches what runs, and ways (`ways`) make room for one replica. A gang needs many nodes of one
domain together, and no part of it is worth anything. So whoever may leave some nodes leaves them; the gang is placed;
who left goes back as far as there is room beside it, and elsewhere if not. What may be preempted for it may also go
without a place (S5.3). Of several sets of nodes the one is taken for which least goes without, and fewest move.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from dovetail.engine.construction.clearing import Clearing, allowance
from dovetail.engine.construction.construct import construct, place_gang
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.leavers import Leaver, Leavers, come_back, leave
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.returning import back_home, free_spots
from dovetail.engine.construction.ways import Ways
from dovetail.model.legal import legalise
from dovetail.model.score import better
from dovetail.model.seats import without_kept
from dovetail.model.state import Fill, State
from dovetail.problem import Present, Problem, Shape
from dovetail.progress import Stop
from dovetail.spec import Workload
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.workload import MILLI

_DOMAINS = 3  # that are tried for a gang at once
_WIDER = 1, 2  # times the room that a gang needs, of which nodes are vacated
_SETS = 24  # sets of nodes that are tried for all gangs together, or some for each of many
_LEAST_SETS = 4
_CHOSEN = 12  # of these with the least harm, for which others make room
_STUCK = 8  # times its size as which one counts that had no place before
_PATIENCE = 400  # ways that are tried in vain for those who left, with one set of nodes


class _Weights(NamedTuple):
    """What a replica weighs beside its milli-GPU, and how many times as much one that must have a place again."""

    each: int
    kept: int


_WEIGHTS = _Weights(4 * MILLI, 1), _Weights(MILLI, 1), _Weights(MILLI // 20, 8)


def with_gangs(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with gangs that wait where nodes could be vacated for them, where that is a better plan.

    Parameters
    ----------
    state : one that breaks no hard policy.
    over : tells when time has run out.
    """
    admitted = state.totals().admitted
    waiting = [w for w in problem.spec.workloads if _waits(problem, admitted, w)]
    worth = {w.id: sum(role.value * role.replicas for role in w.roles) for w in waiting}
    for band in problem.spec.bands:
        own = sorted((w for w in waiting if problem.spec.band_of(w) == band), key=lambda w: (-worth[w.id], w.id))
        if own and not (stop or over()):
            sets = max(_LEAST_SETS, _SETS // len(waiting))
            vacating = _Vacating(problem, _without_new(problem, state, band), lambda: bool(stop) or over(), sets)
            if [workload for workload in own if vacating.place(workload)]:
                found = legalise(problem, construct(problem, legalise(problem, vacating.field.state()), stop))
                state = found if better(problem, found, state, frozenset()) else state
    return state


def _without_new(problem: Problem, state: State, band: int) -> State:
    """Return a state without those of a band or lower ones that never ran and stand alone: they come last."""
    running, kept = problem.running, state.totals().kept
    new = {
        shape.index
        for shape in problem.shapes
        if not (shape.workload.joint or shape.workload.holds)
        and not problem.lost[shape.index]
        and kept[shape.index] == running[shape.index]
        and problem.spec.band_of(shape.workload) <= band
    }
    fills = {}
    for node, fill in state.fills.items():
        gone = {slot: n for slot, n in without_kept(problem, node, fill).items() if slot.shape in new}
        if gone:
            fills[node] = Fill(+Counter({slot: n - gone.get(slot, 0) for slot, n in fill.slots.items()}), fill.kept)
    return state.with_fills(fills) if fills else state


def _waits(problem: Problem, admitted: Mapping[int, int], workload: Workload) -> bool:
    """Tell whether nothing is admitted of what several replicas need each other for."""
    shapes = problem.shapes_of_workload.get(workload.id, ())
    return workload.atomic and workload.replicas > 1 and bool(shapes) and not any(admitted[s] for s in shapes)


@dataclass(frozen=True, slots=True)
class _Guest:
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


class _Harm(NamedTuple):
    """What a place for a gang costs, what is worse first.

    Parameters
    ----------
    owed, without : the milli-GPU that has no place and must have one, and that may do without, by band from the
        highest on.
    moves : replicas that are elsewhere than where they run.
    """

    owed: tuple[int, ...]
    without: tuple[int, ...]
    moves: int


class _Vacating:
    """Vacates nodes of a field for gangs, one after the other; what did not lead to a place is undone.

    Parameters
    ----------
    sets : how many sets of nodes are tried for each gang.
    """

    def __init__(self, problem: Problem, state: State, over: Callable[[], bool], sets: int) -> None:
        self.field = Field(problem, state)
        self._problem, self._over, self._sets = problem, over, sets
        self._outlooks = Outlooks(self.field)
        self._homes = free_spots(problem, state)
        self._budget, self._pinned = allowance(problem, state)
        self._leavers = Leavers(self.field, self._pinned)
        self._done: list[Callable[[], object]] = []  # undoes what was done for a gang, the last of them first
        self._away: Sequence[_Guest] = ()  # who could not go back beside it
        self._homeless: list[_Guest] = []  # and has no other place either
        self._stuck: set[int] = set()  # shapes of those who had to have one
        self._more = 0  # others who move: of the gang itself, and for them

    def place(self, workload: Workload) -> bool:
        """Place all of a gang; tell whether that was possible."""
        shapes = (self._problem.shapes[shape] for shape in self._problem.shapes_of_workload[workload.id])
        largest = max(shapes, key=lambda shape: (shape.request.gpus, shape.request.cpu))
        guests = self._guests(workload, self.field.hosts(largest))
        self._stuck.clear()
        tried: list[tuple[_Harm, int, Ints]] = []
        for nodes in islice(self._sets_of_nodes(workload, largest, guests), self._sets):
            if self._over():
                break
            if self._vacated(workload, nodes, guests):
                tried.append((self._harm(), len(tried), nodes))
                self._stuck |= {guest.leavers[0].shape for guest in self._homeless if not guest.expendable}
            self._undo()
        for _, _, nodes in sorted(tried, key=lambda each: each[:2])[:_CHOSEN]:
            if self._vacated(workload, nodes, guests) and self._all_placed():
                self._budget -= self._harm().moves
                self._done.clear()
                return True
            self._undo()
        return False

    # Who may leave.

    def _guests(self, workload: Workload, hosts: Bools) -> Mapping[int, Sequence[_Guest]]:
        """Return who may leave the nodes that a gang may be on, by node.

        Nodes with GPUs that are cut, or set to modes, are left alone: nobody could go back there (`back_home`).
        """
        shapes, band = self._problem.shapes, self._problem.spec.band_of(workload)
        found: dict[int, list[_Guest]] = defaultdict(list)
        hosts = hosts & ~(self.field.cuts.touched | self.field.crowds.parted)
        for node in np.flatnonzero(hosts).tolist():
            for leaver in self._leavers.of(node):
                expendable = self._gives_way(shapes[leaver.shape].workload, band)
                found[node].append(self._guest((leaver,), expendable=expendable))
        for leavers in self._gangs(band).values():
            gang = self._guest(leavers, expendable=True)
            for node in {leaver.put[0] for leaver in leavers if hosts[leaver.put[0]]}:
                found[node].append(gang)
        return found

    def _gangs(self, band: int) -> Mapping[str, tuple[Leaver, ...]]:
        """Return all that runs of each workload that stands or falls together and gives way to a band."""
        found: dict[str, tuple[Leaver, ...]] = defaultdict(tuple)
        for node, fill in sorted(self.field.fills.items()):
            for place, count in fill.kept.items():
                workload = self._problem.shapes[place.shape].workload
                if count and workload.joint and self._gives_way(workload, band):
                    found[workload.id] += (Leaver((node, place.shape, place.gpus), place),) * count
        odd = {name for name, leavers in found.items() if any(each.place and each.place.instance for each in leavers)}
        return {name: leavers for name, leavers in found.items() if name not in odd}

    def _gives_way(self, workload: Workload, band: int) -> bool:
        return workload.preemptible and workload.movable and self._problem.spec.band_of(workload) < band

    def _guest(self, leavers: tuple[Leaver, ...], *, expendable: bool) -> _Guest:
        workload = self._problem.shapes[leavers[0].shape].workload
        milli = sum(self._problem.request(each.shape, self._problem.nodes[each.put[0]]).gpu_milli for each in leavers)
        return _Guest(leavers, self._problem.spec.band_of(workload), milli, expendable, not workload.joint)

    # Which nodes to vacate.

    def _sets_of_nodes(
        self, workload: Workload, largest: Shape, guests: Mapping[int, Sequence[_Guest]]
    ) -> Iterator[Ints]:
        """Yield nodes of a domain that a gang may be in, enough of those that are vacated most easily."""
        hosts = np.flatnonzero(self.field.hosts(largest))
        room = self._room(largest, hosts, guests)
        hosts, room = hosts[room > 0], room[room > 0]
        need = self._need(workload)
        ids = self._domains(workload, hosts)
        for weights in _WEIGHTS:
            weight = np.array([self._weight(guests.get(node, ()), weights) for node in hosts.tolist()])
            order = np.lexsort((hosts, weight / room, self._inner(workload, hosts, room, weight)))
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

    def _weight(self, guests: Sequence[_Guest], weights: _Weights) -> int:
        """Return what it weighs that guests leave; more where one like them found no place before."""
        found = 0
        for guest in guests:
            times = 1 if guest.expendable else weights.kept
            times *= _STUCK if guest.leavers[0].shape in self._stuck and not guest.expendable else 1
            found += times * (guest.milli + weights.each * len(guest.leavers))
        return found

    def _need(self, workload: Workload) -> int:
        """Return as how many replicas of its largest shape counts what a gang lacks, by GPUs if it has any."""
        wanted = {shape: self.field.wanted(shape) for shape in self._problem.shapes_of_workload[workload.id]}
        each = {shape: self._problem.shapes[shape].request.gpus for shape in wanted}
        gpus = sum(each[shape] * count for shape, count in wanted.items())
        return -(-gpus // max(each.values())) if gpus else sum(wanted.values())

    def _domains(self, workload: Workload, hosts: Ints) -> Ints:
        """Return the number of the domain of some nodes, of the level that a gang has to be within."""
        within = workload.topology.within if workload.topology else None
        if within is None:
            return np.zeros(len(hosts), dtype=np.int64)
        return self._outlooks.domains[NODE_LEVEL if within in INNER_LEVELS else within][hosts]

    def _inner(self, workload: Workload, hosts: Ints, room: Ints, weight: Ints) -> Ints:
        """Return what puts nodes in order first: of domains that groups are within those whose room weighs least."""
        nests = workload.topology.nests if workload.topology else ()
        ids = self._outlooks.domains.get(nests[0].group.within) if nests else None
        if ids is None or not len(hosts):
            return np.zeros(len(hosts), dtype=np.int64)
        _, number = np.unique(ids[hosts], return_inverse=True)
        each = np.bincount(number, weight) / np.bincount(number, room)
        return np.argsort(np.argsort(each, kind="stable"), kind="stable")[number]

    def _room(self, form: Shape, hosts: Ints, guests: Mapping[int, Sequence[_Guest]]) -> Ints:
        """Return for how many replicas some nodes have room without their guests."""
        field, request = self.field, form.request
        free = np.stack([field.untouched[hosts], field.cpu[hosts], field.memory[hosts]], axis=1).astype(np.int64)
        for position, node in enumerate(hosts.tolist()):
            shared: dict[int, int] = defaultdict(int)
            for leaver in (each for guest in guests.get(node, ()) for each in guest.leavers if each.put[0] == node):
                asked = self._problem.request(leaver.shape, self._problem.nodes[node])
                free[position] += (asked.gpus, asked.cpu, asked.memory)
                if asked.partial:
                    shared[leaver.put[2][0]] += asked.gpu_milli
            free[position, 0] += sum(int(field.gpus[node, gpu]) + milli == MILLI for gpu, milli in shared.items())
        asked_for = np.array([request.gpus, request.cpu, request.memory])
        return np.asarray((free[:, asked_for > 0] // asked_for[asked_for > 0]).min(axis=1, initial=form.demand))

    # Placing.

    def _vacated(self, workload: Workload, nodes: Ints, guests: Mapping[int, Sequence[_Guest]]) -> bool:
        """Place a gang on some nodes, and who left for it where there is room; tell whether the gang has a place."""
        gone = list({id(guest): guest for node in nodes.tolist() for guest in guests.get(node, ())}.values())
        for guest in gone:
            for leaver in guest.leavers:
                self._leave(leaver)
        self._outlooks.forget()
        only = np.zeros(len(self._problem.nodes), dtype=bool)
        only[nodes] = True
        homes = self._homes.get(workload.id, ())
        self._more = sum(not (only[node] and self._back(node, place)) for node, place in homes)
        puts = place_gang(self._outlooks, workload, only=only)
        self._done += [partial(self.field.undo, *put) for put in puts]
        placed = bool(puts) or self._need(workload) == 0
        gone.sort(key=lambda guest: (guest.expendable, -guest.band, -guest.milli))
        self._away = [guest for guest in gone if not self._goes_back(guest)] if placed else []
        self._outlooks.forget()
        self._homeless = [guest for guest in self._away if not self._goes_on(guest)]
        return placed

    def _all_placed(self) -> bool:
        """Let others make room for who has no place yet; tell whether all have one who must."""
        ways = Ways(self._outlooks, self._pinned, self._over, len(self._homeless))
        clearing = Clearing(self._outlooks, ways, self._budget - self._harm().moves, _PATIENCE)
        for guest in list(self._homeless):
            if guest.alone and self._makes_room(clearing, guest):
                self._homeless.remove(guest)
            elif not guest.expendable:
                return False
        return self._harm().moves <= self._budget

    def _harm(self) -> _Harm:
        """Return what harm was done for the gang that was placed last."""
        bands = self._problem.spec.bands
        owed, without = ([0] * len(bands) for _ in range(2))
        for guest in self._homeless:
            (without if guest.expendable else owed)[bands.index(guest.band)] += guest.milli
        moves = sum(each.moves for guest in self._away for each in guest.leavers)
        spared = sum(each.moves for guest in self._homeless for each in guest.leavers)
        return _Harm(tuple(owed), tuple(without), moves - spared + self._more)

    def _goes_back(self, guest: _Guest) -> bool:
        """Put replicas back where they ran, all or none."""
        mark = len(self._done)
        for leaver in guest.leavers:
            if leaver.place is None or not self._back(leaver.put[0], leaver.place):
                self._undo(mark)
                return False
        return True

    def _goes_on(self, guest: _Guest) -> bool:
        """Place a replica elsewhere; gangs are left to construction."""
        self._outlooks.reopen(guest.leavers[0].shape)
        puts = self._outlooks.place(guest.leavers[0].shape, 1) if guest.alone else []
        self._done += [partial(self.field.undo, *put) for put in puts]
        return bool(puts)

    def _makes_room(self, clearing: Clearing, guest: _Guest) -> bool:
        """Place a replica where others make room."""
        if not clearing.place(guest.leavers[0].shape):
            return False
        for each in clearing.done:
            back = (
                partial(come_back, self.field, each) if isinstance(each, Leaver) else partial(self.field.undo, *each)
            )
            self._done.append(back)
            self._more += each.moves if isinstance(each, Leaver) else 0
        return True

    def _leave(self, leaver: Leaver) -> None:
        leave(self.field, leaver)
        self._done.append(partial(come_back, self.field, leaver))

    def _back(self, node: int, place: Present) -> bool:
        found = back_home(self.field, node, place)
        if found is not None:
            self._done.append(partial(leave, self.field, found))
        return found is not None

    def _undo(self, mark: int = 0) -> None:
        """Undo, last first, all that was done since a mark."""
        while len(self._done) > mark:
            self._done.pop()()
        self._outlooks.forget()
