"""Prices that prove bounds beside what runs today.

Any prices prove a bound (`FleetProof`), so good ones are made up here: to stay is worth a node; and a place for what
may need others to leave is worth what that loses, and as much per GPU for all that can only be in such places. What
quotas and what earlier tiers reach is worth then follows by a small LP (`row_prices`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

from dovetail.engine.fleet.domain_prices import DomainPrices
from dovetail.engine.fleet.row_prices import RowPrices
from dovetail.objectives.disruption import Moves
from dovetail.progress import Stop
from dovetail.proof.certificate import FLEET_STANDING, Leaf
from dovetail.proof.fleet_models import FleetProof
from dovetail.proof.lagrangian import leaf_total
from dovetail.proof.standing import StandingModel

_DENOMINATOR = 10**12
_UP, _DOWN = (2, 4, 8), (0.125, 0.25, 0.5)  # replicas that leave for one that comes
_MOST = 24  # shapes that prices are sought for
_PARTS = (1.0, 0.5, 0.25, 0.125)  # of a step up, the first that proves more
_ROUNDS = 4  # in which prices of who leaves are raised to what others gain by that
_FAR = 3  # moves that making room for one is followed up to
_HALVED = 6

Prices = Mapping[int, int]  # per row of the fleet, then per earlier tier that it knows, over `_DENOMINATOR`


class Routes(Protocol):
    """What it costs to make room, in moves, by shapes of the fleet's own Problem."""

    def costs(self, shape: int, most: int) -> int:
        """Return the fewest moves that a place costs, 0 where there is one, at most one more than some."""

    def worth(self, shape: int, moves: int) -> Mapping[int, int]:
        """Return what places must be worth, by shape, for one for a shape to be worth so many moves."""


@dataclass(frozen=True, slots=True)
class StandingBound:
    """One proof, and the fleet that it is about."""

    fleet: StandingModel
    proof: FleetProof
    _values: dict[tuple[tuple[str, int], ...], int] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Which rows it is about, as certificates name them."""
        return FLEET_STANDING

    def value(self, given: Mapping[str, int]) -> int:
        """Return the bound given earlier tiers' values, both so that greater is better."""
        key = tuple((name, value) for name, value in given.items() if name in self.fleet.tiers)
        if key not in self._values:
            self._values[key] = self._evaluated(dict(key))
        return self._values[key]

    def _evaluated(self, given: Mapping[str, int]) -> int:
        leaf, rows = self.proof.leaf(self.fleet, given), [*self.fleet.rows, *self.fleet.floors(given)]
        objective, box, blocks = self.fleet.tiers[self.proof.tier], self.fleet.box(given), self.fleet.blocks({})
        return leaf_total(objective, rows, leaf.multipliers, leaf.denominator, *box, blocks) // leaf.denominator

    def tree(self, earlier: Mapping[str, int]) -> Iterator[Leaf]:
        """Yield the only leaf."""
        yield self.proof.leaf(self.fleet, earlier)


@dataclass
class StandingPrices:
    """The search for prices of one tier, earlier ones held at given values, all so that greater is better."""

    fleet: StandingModel
    tier: str
    given: Mapping[str, int]

    def __post_init__(self) -> None:
        self.given = {name: value for name, value in self.given.items() if name in self.fleet.tiers}
        self.objective = self.fleet.tiers[self.tier]
        self._rows = [*self.fleet.rows, *self.fleet.floors(self.given)]
        self._box = self.fleet.box(self.given)

    def prove(
        self, reached: int, new: Sequence[int], until: float | None, stop: Stop, routes: Routes | None = None
    ) -> StandingBound:
        """Return the best bound that is found.

        Parameters
        ----------
        reached : what a plan has; a bound that comes to that is not improved.
        new : shapes of the fleet's own Problem that may need others to leave.
        routes : who must leave for whom, as far as that is known.
        """

        def late() -> bool:
            return bool(stop) or (until is not None and time.monotonic() >= until)

        best = self._total({})
        for prices in self._worth_staying():
            best = min(best, self._total(prices), key=lambda each: each[0])
        far = {shape: self._far(shape, routes) for shape in new}
        for shape in sorted(new, key=lambda shape: -far[shape])[:_MOST]:
            if routes is not None and far[shape]:
                best = self._by_domains(best, shape, late)
                best = self._by_routes(best, shape, min(_FAR, far[shape]), routes, late)
            if late() or best[0] // _DENOMINATOR <= reached:
                break
            best = self._with_room(best, shape, late)
        own, names = len(self.fleet.rows), self._names
        floors = {names[row - own]: price for row, price in best[1].items() if row >= own}
        rows = {row: price for row, price in best[1].items() if row < own}
        return StandingBound(self.fleet, FleetProof(self.tier, _DENOMINATOR, rows, floors, {}))

    def _far(self, shape: int, routes: Routes | None) -> int:
        """Return the moves that a place for one more of a shape costs, 0 where that is not told."""
        told = self._losses and shape in self.fleet.arrivals
        return routes.costs(shape, _FAR) if routes is not None and told else 0

    @cached_property
    def _names(self) -> list[str]:
        """The earlier tiers in the order of their rows."""
        return [name for name in self.fleet.tiers if name in self.given]

    def _total(self, prices: Prices) -> tuple[int, Prices]:
        """Return what prices prove, times the denominator, and these, with those of rows that no node has part in."""
        prices, blocks = self._row_prices.completed(prices), self.fleet.blocks({})
        return leaf_total(self.objective, self._rows, prices, _DENOMINATOR, *self._box, blocks), prices

    @cached_property
    def _row_prices(self) -> RowPrices:
        placed = {variable for block in self.fleet.blocks({}) for variable in block.variables}
        return RowPrices(self.objective, self._rows, self._box, placed, _DENOMINATOR)

    def _worth_staying(self) -> Iterator[Prices]:
        """Yield prices by which to stay is worth the dearest node or a part of it, or all nodes there are."""
        moves = Moves().name
        nodes = [abs(c) for v, c in self.objective.terms.items() if c < 0 and v in self._in_use]
        if moves in self._names and nodes:
            for price in (*(max(nodes) >> halved for halved in range(_HALVED)), sum(nodes)):
                yield {len(self.fleet.rows) + self._names.index(moves): price * _DENOMINATOR}

    @cached_property
    def _in_use(self) -> frozenset[int]:
        return frozenset(v for v in (*self.fleet.used_of, *self.fleet.gpus_used_of) if v is not None)

    def _by_domains(self, best: tuple[int, Prices], shape: int, late: Callable[[], bool]) -> tuple[int, Prices]:
        """Return prices by which a place in a domain that needs more of a shape is worth a move, or a part of one.

        A part proves more where one that leaves makes room for several.
        """
        loss = self._losses[0] * _DENOMINATOR
        for worth in self._domain_prices.of(shape):
            held = best
            for part in _PARTS:
                if late() or best is not held:
                    break
                prices = dict(held[1])
                for row, each in worth.items():
                    prices[row] = prices.get(row, 0) + round(part * each * loss)
                best = min(best, self._total(prices), key=lambda each: each[0])
        return best

    @cached_property
    def _domain_prices(self) -> DomainPrices:
        return DomainPrices(self.fleet, self._rows, self._box)

    def _by_routes(
        self, best: tuple[int, Prices], shape: int, far: int, routes: Routes, late: Callable[[], bool]
    ) -> tuple[int, Prices]:
        """Return prices by which a place for a shape is worth what it costs, step by step while that proves more."""
        loss, before = self._losses[0], dict[int, int]()
        for moves in range(1, far + 1):
            wanted = routes.worth(shape, moves)
            steps = {s: worth - before.get(s, 0) for s, worth in wanted.items() if worth > before.get(s, 0)}
            before, held = dict(wanted), best
            for part in _PARTS:
                if late() or best is not held:
                    break
                prices = dict(held[1])
                for s, step in steps.items():  # where one more is wanted, others of its shape stay for as much
                    new = s == shape and (moves == 1 or not self._stays[s])
                    self._raise(prices, s, round(step * part * loss * _DENOMINATOR), new=new)
                best = min(best, self._evened(prices, {*wanted} - {shape}, late), key=lambda each: each[0])
            if best is held:
                break
        return best

    def _evened(self, prices: dict[int, int], leaving: set[int], late: Callable[[], bool]) -> tuple[int, Prices]:
        """Return the best of some prices and those by which who leaves is worth as much as others gain by that."""
        best = self._total(prices)
        for _ in range(_ROUNDS):
            more: dict[int, int] = {}
            for block in self.fleet.blocks({}):
                for contents, gain in block.gains:
                    for s in {stay.shape for stay in contents.stays} & leaving:
                        more[s] = max(gain, more.get(s, 0))
            if not more or late():
                break
            prices = dict(prices)
            for s, gain in more.items():
                self._raise(prices, s, gain, new=False)
            best = min(best, self._total(prices), key=lambda each: each[0])
        return best

    def _raise(self, prices: dict[int, int], shape: int, price: int, *, new: bool) -> None:
        """Raise the price of places for a shape: for more of it than are protected, or for all that come."""
        arrivals, supply = self.fleet.arrivals.get(shape), self.fleet.supply[shape][1]
        row = arrivals if new and arrivals is not None else supply
        prices[row] = prices.get(row, 0) + price

    @cached_property
    def _stays(self) -> Mapping[int, int]:
        """Per shape, how many are protected."""
        return sum((Counter(lot.protected) for lots in self.fleet.lots_of for lot in lots), Counter[int]())

    @cached_property
    def _losses(self) -> list[int]:
        """What is lost by those who leave, ascending."""
        return sorted(
            {abs(self.objective.terms.get(v, 0)) for kept in self.fleet.kept_of for v in kept.values()} - {0}
        )

    def _with_room(self, best: tuple[int, Prices], shape: int, late: Callable[[], bool]) -> tuple[int, Prices]:
        """Return prices by which places for a shape are worth something, more or less as long as that is better."""
        base = best[1]
        for loss in sorted({self._losses[0], self._losses[-1]}) if self._losses else ():
            before = best
            for factors in ((1, *_UP), _DOWN):
                for factor in factors:
                    if late():
                        break
                    found = self._total(self._added(base, shape, round(loss * factor * _DENOMINATOR)))
                    if found[0] >= best[0]:
                        break
                    best = found
                if best is not before:
                    break
        return best

    def _added(self, base: Prices, shape: int, price: int) -> Prices:
        """Return prices with one on places for a shape, and by their size for all who can only be where it can."""
        found = dict(base)
        shapes = self.fleet.problem.shapes
        size, lots = shapes[shape].request.gpu_milli, self._lots.get(shape, frozenset())
        for s, others in self._lots.items():
            several = shapes[s].request.gpu_milli // size if size else int(s == shape)
            if not (several and others <= lots and self._sides[s] <= self._sides[shape]):
                continue
            _, row = self.fleet.supply[s]
            found[row] = found.get(row, 0) + several * price
        return found

    @cached_property
    def _lots(self) -> Mapping[int, frozenset[tuple[int, int]]]:
        """Per shape, the lots that it may come to."""
        found: dict[int, set[tuple[int, int]]] = {}
        for kind, lots in enumerate(self.fleet.lots_of):
            for number, lot in enumerate(lots):
                for shape in lot.counts:
                    if shape not in lot.closed:
                        found.setdefault(shape, set()).add((kind, number))
        return {shape: frozenset(places) for shape, places in found.items()}

    @cached_property
    def _sides(self) -> Mapping[int, frozenset[tuple[int, int]]]:
        """Per shape, the sides of kinds that it belongs to."""
        found: dict[int, set[tuple[int, int]]] = {shape.index: set() for shape in self.fleet.problem.shapes}
        for kind, position in self.fleet.sides:
            for shape in self.fleet.kinds[kind].sides[position].shapes:
                found[shape].add((kind, position))
        return {shape: frozenset(places) for shape, places in found.items()}
