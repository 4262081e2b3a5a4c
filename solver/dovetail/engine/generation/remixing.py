"""Patterns mixed anew on a few nodes at a time, while all others keep what they hold.

The LP over patterns of few nodes is priced to its end in a moment, and its patterns are chosen in whole numbers about
as fast: a large neighbourhood search by column generation. What the nodes hold is the solution to begin with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from dovetail.engine.budget import Budget
from dovetail.engine.contents.patterns import Column, Pattern, Whole, without
from dovetail.engine.fleet.losses import Losses
from dovetail.engine.generation.draws import SMALLEST, Draws, Picture
from dovetail.engine.generation.filling import filled
from dovetail.engine.generation.generate import Generation
from dovetail.engine.generation.master import Master
from dovetail.engine.generation.pricing import Pricing
from dovetail.engine.generation.promises import Promises
from dovetail.engine.generation.wanted import Wanted
from dovetail.model.state import Fill, Slot, State
from dovetail.proof.kinds import Kind

_PATIENCE = 100  # sets in a row that nothing better was found for
_VAIN = 6  # of them, after which what is lacking is left to others where it is hardly anything
_LACKING = 0.01  # of the replicas asked for, that a cheaper state to begin with may lack
_ROUNDS = 40  # of pricing
_SECONDS = 1.0  # for pricing, and for whole numbers


class Reached(NamedTuple):
    """What the search has come to elsewhere.

    Parameters
    ----------
    state : the best one by now.
    full : whether no plan admits more to speak of (`Generation`).
    bounds : worth of GPU work that no plan exceeds, by band.
    leads : what nodes lose by the proofs of what is left to decide: of least cost where it is full, else of bands.
    """

    state: State
    full: bool
    bounds: Mapping[int, int] = MappingProxyType({})
    leads: Sequence[Losses] = ()


class Remixing:
    """Looks for better patterns for sets of nodes that are drawn reproducibly.

    Parameters
    ----------
    generation : tells rows, nodes and the wish; its state is the one to make better.
    planned : replicas per shape that the LP of the whole fleet has.
    """

    def __init__(self, generation: Generation, budget: Budget, planned: Mapping[int, int] | None = None) -> None:
        self._generation, self._budget = generation, budget
        self._problem, self._stop = generation.problem, generation.stop
        rows = generation.rows
        self._master = Master(rows, generation.wish)
        for lot in range(len(rows.lots)):
            self._master.add(lot, ())
        self._pricing = Pricing(self._problem, rows.lots, budget, self._stop, generation.jobs)
        self._lot_of = {node: position for position, lot in enumerate(rows.lots) for node in lot.nodes}
        self._columns = dict[int, Column]()
        self._promises = Promises(self._problem, generation.state, self._lot_of)
        source = Random(1)
        self._wanted = Wanted(self._problem, generation.wish.worth, planned or {}, source)
        self._draws = Draws(self._problem, rows.lots, self._wanted, source, thrifty=generation.spares)
        self._idle = 0
        self._bounds: Mapping[int, int] = {}
        self._leads: Sequence[Losses] = ()
        self._beyond = 0.0  # what other nodes hold, which no set changes
        self.hold(generation.state)
        self._settle_all_but(())
        self._beyond = self._pricing.solve(self._master).value - self.value
        self.value += self._beyond

    @property
    def vain(self) -> bool:
        """Whether several sets in a row gave nothing."""
        return self._idle >= _VAIN

    @property
    def over(self) -> bool:
        """Whether too many sets in a row gave nothing, or there is nothing left to search with."""
        return self._idle >= _PATIENCE or len(self._lot_of) < SMALLEST or bool(self._stop) or self._budget.spent()

    def prefers(self, state: State) -> bool:
        """Tell whether a state is a better one to begin with, as far as it differs on nodes that are mixed anew only.

        It is if what it admits is worth more, all bands alike: its nodes are fuller, and sets of them soon trade what
        a later band has for what an earlier one lacks. Where cost is left to decide, it is if it is cheaper, or keeps
        more of what was promised, and lacks little, which they soon find room for.
        """
        nodes = {*state.fills, *self._picture.state.fills}
        if any(state.fill(node) != self._picture.state.fill(node) for node in nodes if node not in self._lot_of):
            return False
        columns = self._held(state)
        if not self._generation.spares:
            return self._alike(columns) > self._alike(self._columns)
        asked, there = sum(self._master.wish.demand.values()), sum(self._counts(columns).values())
        return asked - there <= _LACKING * asked and self._spent(columns) < self._spent(self._columns)

    def _alike(self, columns: Mapping[int, Column]) -> int:
        """Return what GPU work there is worth with all bands alike."""
        shapes = self._problem.shapes
        counts = ((shapes[s], n) for s, n in self._counts(columns).items())
        return sum(n * shape.role.value for shape, n in counts if shape.request.gpu_count)

    def worth(self, state: State) -> float:
        """Return what all nodes hold in a state, as the LP counts it."""
        return self._value_of(self._held(state))

    def heed(self, bounds: Mapping[int, int], leads: Sequence[Losses]) -> None:
        """Look for nothing of a band that is worth as much as its bound, and where nodes lose, if that is known."""
        if bounds != self._bounds:
            self._bounds = bounds
            self._picture.waiting = self._waiting(self._picture.state)
        self._leads = self._picture.leads = leads

    def next(self) -> State | None:
        """Return a state better than the one before by other patterns on one more set of nodes, if it has one."""
        drawn = self._draws.next(self._picture)
        state, closed = self._better(drawn.nodes)
        self._idle = 0 if state is not None else self._idle + 1
        self._draws.learn(drawn, closed=closed, found=state is not None)
        if state is not None:
            self.hold(state)
        return state

    def _better(self, free: Collection[int]) -> tuple[State | None, bool]:
        """Return a state better than the one at hand by other patterns on some nodes, if there is one.

        And whether the search for it came to its end.
        """
        before = self._settle_all_but(free)
        self._add_fuller(free)
        self._pricing.pause_after(self._share(), 1)
        mixture = self._pricing.settle(self._master, self._pricing.solve(self._master), _ROUNDS, inf)
        self._pricing.pause_after(1, 1)
        enough = self.value + self._master.wish.grain
        if mixture.value <= enough:
            return None, True
        found = self._pricing.whole(self._master, mixture, _SECONDS, before, enough)
        self._master.forget(mixture)
        state = self._with(free, found) if found.value > enough else None
        return state if state is not None and self.worth(state) > enough else None, not found.cut

    def _add_fuller(self, free: Collection[int]) -> None:
        """Let the LP choose, for each node, what it holds with one more of what is planned and lacks, where it fits.

        Pricing need not come to these: a place is worth little as long as who is there earns as much.
        """
        lacking = [s for s, there in self._picture.waiting.items() if self._wanted.lacks(s, there)]
        lots = self._generation.rows.lots
        for node in sorted(free) if lacking else ():
            lot = self._lot_of[node]
            fill, kind = self._picture.state.fill(node), lots[lot].kind
            here = fill.counts().keys()
            for shape in (s for s in lacking if s in lots[lot].shapes and kind.lets_share_node({*here, s})):
                if (slot := self._seat(node, shape, kind)) is not None:
                    fuller = fill.copy()
                    fuller.slots[slot] += 1
                    self._master.add(lot, self._generation.pattern(fuller))

    def _seat(self, node: int, shape: int, kind: Kind) -> Slot | None:
        """Return where a node of a kind has room for one more replica of a shape; None where nowhere."""
        field, form = self._picture.field, self._problem.shapes[shape]
        if not field.host_fits(form, node):
            return None
        if not form.request.partial:
            return Slot(shape) if field.untouched[node] >= form.request.gpus else None
        here: dict[int, set[int]] = {gpu: {shape} for gpu in self._problem.nodes[node].healthy_gpus()}
        for slot in (slot for slot in self._picture.state.fill(node).slots if slot.gpu in here):
            here[slot.gpu].add(slot.shape)
        fullest = sorted(here, key=lambda gpu: int(field.gpus[node, gpu]))
        fits = (gpu for gpu in fullest if kind.lets_share_gpu(here[gpu]) and field.share_fits(node, form, gpu))
        return next((Slot(shape, gpu) for gpu in fits), None)

    def hold(self, state: State) -> None:
        """Take a state as the one to make better."""
        self._columns = self._held(state)
        self.value = self._value_of(self._columns)
        self._picture = Picture(self._problem, state, self._waiting(state), self._leads)

    def _held(self, state: State) -> dict[int, Column]:
        """Return what the nodes hold in a state as patterns."""
        found = {}
        for node, lot in self._lot_of.items():
            fill = state.fill(node)
            same = node in self._columns and fill is self._picture.state.fill(node)
            found[node] = self._columns[node] if same else self._master.column(lot, self._generation.pattern(fill))
        return found

    def _value_of(self, columns: Mapping[int, Column]) -> float:
        wish = self._master.wish
        own = sum(wish.worth[s] * n for s, n in self._counts(columns).items()) - self._spent(columns)
        return own + self._beyond

    def _counts(self, columns: Mapping[int, Column]) -> Mapping[int, int]:
        """Return the replicas per shape, as far as they are asked for."""
        counts, demand = Counter[int](), self._master.wish.demand
        for column in columns.values():
            counts.update(column.counts)
        return {s: min(n, demand[s]) for s, n in counts.items()}

    def _spent(self, columns: Mapping[int, Column]) -> float:
        """Return what nodes cost, and what is missing of promises."""
        wish, lots = self._master.wish, self._generation.rows.lots
        paid = sum(wish.price(c.lot, c.pattern) for c in columns.values() if c.counts)
        if not wish.per_short:
            return paid
        contents = ((lots[c.lot].kind.node, c.pattern) for c in columns.values())
        return paid + wish.per_short * self._promises.missing(contents)

    def _share(self) -> float:
        """Return the part of the time that is left in which a set is priced."""
        left = self._budget.seconds()
        return 1.0 if left is None or left <= _SECONDS else _SECONDS / left

    def _waiting(self, state: State) -> dict[int, int]:
        """Return the shapes with GPUs of which fewer are there than asked for, with how many there are.

        Those worth nothing are left out, and those of bands that no plan has more of than a state.
        """
        counts, admitted, worth = self._counts(self._columns), state.admitted(), Counter[int]()
        shapes, bands = self._problem.shapes, self._wanted.bands
        for shape in (shape for shape in shapes if shape.request.gpu_count):
            worth[bands[shape.index]] += shape.role.value * admitted[shape.index]
        open_to = {band for band, there in worth.items() if there < self._bounds.get(band, inf)}
        wish = self._master.wish
        short = {s: counts.get(s, 0) for s, n in wish.demand.items() if wish.worth[s] > 0 and counts.get(s, 0) < n}
        return {s: n for s, n in short.items() if shapes[s].request.gpu_count and bands[s] in open_to}

    def _settle_all_but(self, free: Collection[int]) -> list[tuple[Column, int]]:
        """Settle all nodes but some on what they hold; return what these hold."""
        self._master.reset()
        for column, times in _counted(column for node, column in self._columns.items() if node not in free):
            self._master.take(column, times)
        before = _counted(self._columns[node] for node in sorted(free))
        for column, _ in before:
            self._master.add(column.lot, column.pattern)
        self._master.refresh()
        return before

    def _with(self, free: Collection[int], found: Whole) -> State:
        """Return the state with other patterns on some nodes, as far as hard rules let them, and what else fits.

        What the LP does not count, as there is enough or rules say so, is left out, first of all on these nodes.
        """
        nodes: dict[int, list[int]] = {}
        for node in sorted(free):
            nodes.setdefault(self._lot_of[node], []).append(node)
        planned: list[tuple[int, Pattern]] = []
        for column, times in found.chosen:
            here = nodes[column.lot]
            stay = [node for node in here if self._columns[node].pattern == column.pattern]
            here = [*stay, *(node for node in here if node not in stay)]
            taken, nodes[column.lot] = here[:times], here[times:]
            planned += [(node, column.pattern) for node in taken]
        kept = [(node, column.pattern) for node, column in self._columns.items() if node not in free]
        surplus = self._surplus([*planned, *kept], found)
        lots, lot_of = self._generation.rows.lots, self._lot_of
        wished = [(node, without(pattern, surplus, lots[lot_of[node]].row)) for node, pattern in planned]
        fills = {node: Fill() for node in free}
        for node, pattern in kept if any(surplus.values()) else ():
            left = without(pattern, surplus, lots[lot_of[node]].row)
            if left != pattern:
                fills[node] = Fill()
                wished.append((node, left))
        return filled(
            self._problem, self._picture.state.with_fills(fills), wished, Counter(dict(found.admitted)), self._stop
        )

    def _surplus(self, contents: Iterable[tuple[int, Pattern]], found: Whole) -> Counter[int]:
        """Return how much more nodes supply than the LP counts, by row."""
        rows, supply = self._generation.rows, Counter[int]()
        for node, pattern in contents:
            lot = rows.lots[self._lot_of[node]]
            for slot, count in pattern:
                if (row := lot.row(slot)) is not None:
                    supply[row] += count
        return Counter({r: int(rows.limits[r]) + n - found.needed.get(r, 0) for r, n in supply.items()})


def _counted(columns: Iterable[Column]) -> list[tuple[Column, int]]:
    """Return equal columns once, with their number."""
    found: dict[tuple[int, Pattern], list[Column]] = {}
    for column in columns:
        found.setdefault((column.lot, column.pattern), []).append(column)
    return [(alike[0], len(alike)) for alike in found.values()]


def remixed(
    begin: Generation,
    others: Sequence[State],
    planned: Mapping[int, int],
    best: Callable[[bool], Reached],
    budget: Budget,
) -> Iterator[State | None]:
    """Yield a better state, or None, for set after set, from the most promising state at hand on.

    Parameters
    ----------
    begin : tells rows, nodes and the wish, and the best state.
    others : states to begin with that keep all rules.
    planned : replicas per shape that the LP of the whole fleet has.
    best : what there is by now, by whether half of the time or work is gone or several sets were in vain; where it is
        full, another wish is to be met. A state found elsewhere that is worth more is the one to go on from; until
        that half, one that is more promising. If that half has come to nothing better, the best state is.
    """
    remixing, half = _begun(begin, others, planned, budget), budget.part(0.5 * budget.work, 0.5)
    led, seen, settled = True, begin.state, False
    while not remixing.over:
        found = remixing.next()
        yield found
        late = budget.work < half.work or half.out_of_time()
        settled = settled or late or remixing.vain
        state, full, bounds, leads = best(settled)
        remixing.heed(bounds, leads if full == begin.spares else ())
        elsewhere = state is not seen
        if full != begin.full:
            begin = replace(begin, state=state, full=full)
            remixing, led = _begun(begin, others, planned, budget), False
        elif led and not late:
            if elsewhere and remixing.prefers(state):
                remixing.hold(state)
        elif (led or elsewhere) and remixing.worth(state) > remixing.value:
            remixing.hold(state)
        led, seen = led and not late, state


def _begun(begin: Generation, others: Iterable[State], planned: Mapping[int, int], budget: Budget) -> Remixing:
    """Return where to go on from the best of some states."""
    remixing = Remixing(begin, budget, planned)
    for other in others:
        if remixing.prefers(other):
            remixing.hold(other)
    return remixing
