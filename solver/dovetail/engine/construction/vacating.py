"""Room for gangs among what runs: nodes of one domain are vacated for all of a gang at once.

Construction never touches what runs, and ways (`ways`) make room for one replica. A gang needs many nodes of one
domain together, and no part of it is worth anything. So whoever may leave some nodes leaves them; the gang is placed;
who left goes back as far as there is room beside it, and elsewhere if not. What may be preempted for it may also go
without a place (S5.3). Of several sets of nodes the one is taken for which least goes without, and fewest move.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import NamedTuple

from dovetail.engine.construction.clearing import Clearing, allowance
from dovetail.engine.construction.construct import construct, place_gang
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.guests import Guest, Guests, Known
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver
from dovetail.engine.construction.mending import misplaced
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.preempting import Preempting
from dovetail.engine.construction.prices import Price
from dovetail.engine.construction.returning import free_spots
from dovetail.engine.construction.ways import Ways
from dovetail.model.legal import legalise, without_shapes
from dovetail.model.score import better
from dovetail.model.seats import without_kept
from dovetail.model.state import Fill, State
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.spec import Workload

_SETS = 24  # sets of nodes that are tried for all gangs together, or some for each of many
_LEAST_SETS = 4
_CHOSEN = 12  # of these with the least harm, for which others make room
_FURTHER = 12  # of these for each set that is seen through after one that has led to a place
_VAIN = 12  # gangs of a band in a row that found no place
_PATIENCE = 400  # ways that are tried in vain for those who left, with one set of nodes
_HOPELESS = 3  # sets, for one gang, in which a shape found no place: others with it are left out


def with_gangs(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with gangs where nodes could be vacated for them, where that is a better plan.

    Those first that run where a hard policy would not have them (S4.5); then those that wait, before elastic
    ones that could be larger (S2.6).

    Parameters
    ----------
    state : one that breaks no hard policy.
    over : tells when time has run out.
    """
    state = _with_misplaced(problem, state, stop, lambda: bool(stop) or over())
    waiting, growing = gangs_that_wait(problem, state), _gangs(problem, state, _could_grow)
    for band in problem.spec.bands:
        for gangs in (waiting, growing):
            own = [w for w in gangs if problem.spec.band_of(w) == band]
            if own:
                sets = max(_LEAST_SETS, _SETS // len(gangs))
                state = _with_those(problem, state, own, sets, stop, lambda: bool(stop) or over())
    return state


def _with_misplaced(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with gangs that run where a hard policy would not have them elsewhere, as far as they must."""
    names = misplaced(problem, state)
    if not names:
        return state
    _, pinned = allowance(problem, state)
    gangs = [w for w in problem.spec.workloads if w.id in names and w.joint and w.movable and w.id not in pinned]
    for gang in sorted(gangs, key=lambda each: (-problem.spec.band_of(each), each.id)):
        begun = without_shapes(state, problem.shapes_of_workload[gang.id])
        state = _with_those(problem, state, [gang], max(_LEAST_SETS, _SETS // len(gangs)), stop, over, begun)
    return state


def _with_those(
    problem: Problem,
    state: State,
    gangs: Sequence[Workload],
    sets: int,
    stop: Stop,
    over: Callable[[], bool],
    begun: State | None = None,
) -> State:
    """Return a state with some gangs of one band, or those of them that by themselves make a better plan.

    Parameters
    ----------
    begun : the state without a gang that has a place in it.
    """
    if over():
        return state
    # What is broken is mended first, whatever its band, and what is not comes before what is lower.
    band = problem.spec.band_of(gangs[0]) if begun is None else max(problem.spec.bands) + 1
    vacating = Vacating(problem, _without_new(problem, begun or state, band), band, over, sets)
    placed = vacating.place_all(gangs)
    if not placed:
        return state
    found = vacating.filled_up(stop)
    if better(problem, found, state, frozenset()):
        return found
    half = (len(placed) + 1) // 2
    for some in (placed[:half], placed[half:]) if len(placed) > 1 else ():
        state = _with_those(problem, state, some, sets, stop, over)
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


def gangs_that_wait(problem: Problem, state: State) -> Sequence[Workload]:
    """Return the gangs of which nothing is admitted, the highest band first, in it those of the most value."""
    return _gangs(problem, state, _waits)


def _gangs(
    problem: Problem, state: State, wanted: Callable[[Problem, Mapping[int, int], Workload], bool]
) -> Sequence[Workload]:
    """Return some workloads, the highest band first, in it those of the most value."""
    admitted, band_of = state.totals().admitted, problem.spec.band_of
    found = [w for w in problem.spec.workloads if wanted(problem, admitted, w)]
    worth = {w.id: sum(role.value * role.replicas for role in w.roles) for w in found}
    return sorted(found, key=lambda w: (-band_of(w), -worth[w.id], w.id))


def _waits(problem: Problem, admitted: Mapping[int, int], workload: Workload) -> bool:
    """Tell whether nothing is admitted of what several replicas need each other for."""
    shapes = problem.shapes_of_workload.get(workload.id, ())
    return workload.atomic and workload.replicas > 1 and bool(shapes) and not any(admitted[s] for s in shapes)


def _could_grow(problem: Problem, admitted: Mapping[int, int], workload: Workload) -> bool:
    """Tell whether some of an elastic gang is admitted, and not all: it may have lost the rest."""
    there = sum(admitted[shape] for shape in problem.shapes_of_workload.get(workload.id, ()))
    return workload.elastic and 0 < there < workload.replicas


class _Tried(NamedTuple):
    """Nodes that a gang has a place on.

    Attributes
    ----------
    harm : about what it costs.
    least : what it costs at least.
    """

    harm: Price
    least: Price
    nodes: Ints


class Vacating:
    """Vacates nodes of a field for gangs of a band, one after the other; what did not lead to a place is undone.

    Parameters
    ----------
    sets : how many sets of nodes are tried for each gang.
    crowd : for how many who left a set of nodes others are made to make room.
    """

    def __init__(
        self, problem: Problem, state: State, band: int, over: Callable[[], bool], sets: int, crowd: float = inf
    ) -> None:
        self.field = Field(problem, state)
        self._problem, self._over, self._sets, self._crowd = problem, over, sets, crowd
        self._outlooks = Outlooks(self.field)
        self._barred = self._outlooks.only(())
        self._homes = free_spots(problem, state)
        self._budget, self._pinned = allowance(problem, state)
        self._journal = Journal(self._outlooks)
        self._preempting = Preempting(self._journal, band, self._pinned, over, self._budget)
        self._prices = self._preempting.victims.prices
        self._known: Known = {}
        self._away: Sequence[Guest] = ()  # who could not go back beside it
        self._homeless: list[Guest] = []  # and has no other place either
        self._vain = Counter[int]()  # in how many sets of nodes for this gang a shape found no place
        self._more = 0  # others who move: of the gang itself, and for them
        self._others: Price = 0  # about what it costs that these moved, and that some gave way for them

    def filled_up(self, stop: Stop) -> State:
        """Return the state of the field with what else has room, which breaks no hard policy."""
        state = legalise(self._problem, self.field.state())
        return legalise(self._problem, construct(self._problem, state, stop))

    def bar(self, waiting: Mapping[int, int], nodes: Bools) -> bool:
        """Keep gangs off those nodes that replicas who wait would take; tell whether these would take any.

        Parameters
        ----------
        waiting : how many of each shape.
        nodes : those that they may take.
        """
        puts = [put for shape, n in waiting.items() for put in self._outlooks.place(shape, n, nodes=nodes)]
        self._journal.placed(puts)
        self._journal.undo()
        self._barred = self._outlooks.only(node for node, *_ in puts)
        return bool(puts)

    def place_all(self, gangs: Sequence[Workload]) -> Sequence[Workload]:
        """Place gangs in their order, until several in a row have no place; return those that have one."""
        placed: list[Workload] = []
        vain = 0
        for workload in gangs:
            if vain >= _VAIN:
                break
            found = self.place(workload)
            while found and workload.elastic and self.place(workload):
                pass
            vain = 0 if found else vain + 1
            placed += [workload] if found else []
        return placed

    def place(self, workload: Workload) -> bool:
        """Place all of a gang that waits, or of an elastic one as much as there is room for; tell whether any was."""
        guests = Guests(self._outlooks, self._preempting, workload, self._known, self._barred)
        lacking = guests.lacking()
        if not lacking:  # who may not move and was evicted does not come back
            return False
        needs = dict.fromkeys([lacking, *([guests.lacking(least=True)] if workload.elastic else [])])
        return any(self._placed(workload, guests, need) for need in needs if need)

    def _placed(self, workload: Workload, guests: Guests, need: int) -> bool:
        """Place so much of a gang, where that costs least of the sets of nodes that promise most."""
        tried = iter(self._tried(workload, guests, need))
        self._vain.clear()
        best = next((each for each in tried if self._placed_on(workload, each.nodes, guests)), None)
        if best is None:
            self._journal.undo()
            return False
        last, harm = best, self._harm()
        for each in sorted(tried, key=lambda each: each.least)[: self._sets // _FURTHER]:
            if each.least >= harm or self._over():
                break
            last = each
            if self._placed_on(workload, each.nodes, guests) and self._harm() < harm:
                best, harm = each, self._harm()
        if last is not best and not self._placed_on(workload, best.nodes, guests):
            self._journal.undo()
            return False
        self._budget -= self._moves()
        self._journal.keep()
        return True

    def _tried(self, workload: Workload, guests: Guests, need: int) -> list[_Tried]:
        """Return sets of nodes that a gang has a place on, those first that seem to do the least harm."""
        tried: dict[frozenset[int], _Tried] = {}
        for nodes in islice(guests.sets_of_nodes(need), self._sets):
            if self._over():
                break
            if (key := frozenset(nodes.tolist())) in tried:
                continue
            if self._vacated(workload, nodes, guests):
                tried[key] = _Tried(self._harm(), self._harm(least=True), nodes)
                guests.stuck |= {guest.leavers[0].shape for guest in self._homeless if not guest.expendable}
            self._journal.undo()
        return sorted(tried.values(), key=lambda each: each.harm)[:_CHOSEN]

    def _placed_on(self, workload: Workload, nodes: Ints, guests: Guests) -> bool:
        """Place a gang on some nodes, and all elsewhere who must have a place; tell whether they have one."""
        self._journal.undo()
        return self._vacated(workload, nodes, guests) and self._all_placed()

    def _vacated(self, workload: Workload, nodes: Ints, guests: Guests) -> bool:
        """Place a gang on some nodes, and who left for it where there is room; tell whether the gang has a place."""
        gone = sorted(guests.on(nodes.tolist()), key=lambda guest: (guest.expendable, -guest.band, -guest.milli))
        for leaver in (leaver for guest in gone for leaver in guest.leavers):
            self._journal.leave(leaver)
        self._outlooks.forget()
        only = self._outlooks.only(nodes.tolist())
        homes = self._homes.get(workload.id, ())
        self._others = self._more = sum(not (only[node] and self._journal.back(node, place)) for node, place in homes)
        puts = place_gang(self._outlooks, workload, only=only)
        self._journal.placed(puts)
        placed = bool(puts) or guests.lacking() == 0
        self._away = [rest for guest in gone if (rest := self._gone_back(guest, guests))] if placed else []
        self._outlooks.forget()
        self._homeless = [guest for guest in self._away if not self._goes_on(guest)]
        return placed

    def _all_placed(self) -> bool:
        """Let others make room for who has no place yet, or give way; tell whether all have one who must."""
        lasting = [each.leavers[0].shape for each in self._homeless if not each.expendable]
        if len(self._homeless) > self._crowd or any(self._vain[shape] >= _HOPELESS for shape in lasting):
            return False
        ways = Ways(self._outlooks, self._pinned, self._over, len(self._homeless))
        clearing = Clearing(self._outlooks, ways, self._budget - self._moves(), _PATIENCE)
        for guest in list(self._homeless):
            goes_on = self._may_go_on(guest)
            if goes_on and self._makes_room(clearing, guest):
                self._homeless.remove(guest)
            elif guest.expendable:
                continue
            elif goes_on and self._preempted(guest):
                self._homeless.remove(guest)
                ways.forget()  # others have left meanwhile
            else:
                return False
        return self._moves() <= self._budget

    def _preempted(self, guest: Guest) -> bool:
        """Place a replica where others give way."""
        shape, before = guest.leavers[0].shape, self._preempting.moves
        least = self._preempting.least(shape)
        found = self._preempting.possible and self._preempting.place(shape)
        self._more += self._preempting.moves - before
        self._others += (least or 0) if found else 0
        return found

    def _harm(self, *, least: bool = False) -> Price:
        """Return about what it costs that a gang was placed as it was last, and that all have a place who must.

        Parameters
        ----------
        least : instead, what it costs if it costs nothing to make room for those without a place.
        """
        homeless = set(map(id, self._homeless))
        moved = (guest for guest in self._away if id(guest) not in homeless)
        price = sum(map(self._moved, moved)) + self._others
        return price + sum(self._price(guest, least=least) for guest in self._homeless)

    def _moved(self, guest: Guest) -> Price:
        return sum(self._prices.moved(each) for each in guest.leavers)

    def _price(self, guest: Guest, *, least: bool) -> Price:
        """Return about what it costs that replicas have no place: they go, or move to where others go for them."""
        room: Price | None = None
        if self._may_go_on(guest):
            room = 0 if least else self._preempting.least(guest.leavers[0].shape)
        if room is None:
            return guest.milli * self._prices.most if guest.price is None else guest.price
        moved = room + self._moved(guest)
        return moved if guest.price is None else min(moved, guest.price)

    def _moves(self) -> int:
        """Return how many move for the gang that was placed last."""
        moves = sum(each.moves for guest in self._away for each in guest.leavers)
        spared = sum(each.moves for guest in self._homeless for each in guest.leavers)
        return moves - spared + self._more

    def _gone_back(self, guest: Guest, guests: Guests) -> Guest | None:
        """Put replicas back where they ran, as many as may be there; return those who are away."""
        away = self._journal.all_back(guest.leavers)
        return guests.guest(away) if away else None

    def _may_go_on(self, guest: Guest) -> bool:
        """Tell whether it is one replica that may move; gangs are left to construction."""
        return guest.alone and self._preempting.victims.may_move(guest.leavers[0])

    def _goes_on(self, guest: Guest) -> bool:
        """Place a replica elsewhere."""
        return self._may_go_on(guest) and self._journal.place(guest.leavers[0].shape)

    def _makes_room(self, clearing: Clearing, guest: Guest) -> bool:
        """Place a replica where others make room."""
        if not clearing.place(guest.leavers[0].shape):
            return False
        self._journal.cleared(clearing.done)
        left = [each for each in clearing.done if isinstance(each, Leaver)]
        self._more += sum(each.moves for each in left)
        self._others += sum(map(self._prices.moved, left))
        return True
