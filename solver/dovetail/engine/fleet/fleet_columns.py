"""The rows and columns of the LP over kinds of nodes (`fleet_lp`).

Per kind of node and side of it, columns count the nodes that take each multiset of GPU sizes (all are listed), what
runs on them in all, and how shared GPUs are cut: a few patterns to begin with. Rows bind CPU, memory, resources and
classes of each per side of a kind in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from dovetail.engine.fleet.cuts import Cut, dearest
from dovetail.engine.fleet.multisets import fitting, packed
from dovetail.engine.fleet.sides import Side
from dovetail.engine.fleet.tier_rows import TierRows
from dovetail.proof.cutting import layouts_of, layouts_within
from dovetail.proof.fleet import FleetModel
from dovetail.proof.kinds import Kind, blocks_for, room_for
from dovetail.proof.sides import Card

Way = TypeVar("Way", str, int)


class FleetColumns(TierRows):
    """The LP as it is built.

    Attributes
    ----------
    nodes : a row per kind, how many there are of it.
    """

    def __init__(self, fleet: FleetModel) -> None:
        by_mode = {v for by_mode in fleet.modes_of for modes in by_mode.values() for v in modes.values()}
        priced = {variable for counts in fleet.counts_of for variable in counts.values()} | by_mode
        super().__init__(fleet, priced | {use for use in fleet.use_of if use is not None})
        lp = self.lp
        self._wanted = {variable for expression in fleet.tiers.values() for variable in expression.terms}
        self._links: dict[int, int] = {}
        for variable in by_mode - self._wanted:  # columns of sides take its place
            lp.limits(variable, 0.0, 0.0)
        self.sides: list[Side] = []
        self._gpus_in_use: list[int | None] = []  # a row per kind that counts them, if any does
        self.nodes: list[int] = []
        for kind in range(len(fleet.kinds)):
            self._add_kind(kind)

    def _add_kind(self, index: int) -> None:
        fleet, lp = self.fleet, self.lp
        kind = fleet.kinds[index]
        size = lp.row(-np.inf, kind.size)
        self.nodes.append(size)
        used, gpus_used = fleet.used_of[index], fleet.gpus_used_of[index]
        in_use = None if used is None else lp.row(-np.inf, 0.0, {used: -1.0})
        gpus_in_use = None if gpus_used is None else lp.row(-np.inf, 0.0, {gpus_used: -1.0})
        self._gpus_in_use.append(gpus_in_use)
        use, useful = fleet.use_of[index], fleet.useful_of[index]
        left = None
        if use is not None and useful is not None:
            left = lp.row(-np.inf, float(kind.size * useful.untouched[-1]), {use: 1.0})
        for position, told in enumerate(kind.sides):
            side = Side(index, position, use=left)
            self.sides.append(side)
            self._add_side(kind, side, [s for s in told.shapes if s in fleet.counts_of[index]])
            for column in side.patterns.values():
                lp.entry(size, column, 1.0)
                if in_use is not None:
                    lp.entry(in_use, column, 1.0)
        there = {s for told in kind.sides for s in told.shapes}
        for own in (own for s, own in fleet.counts_of[index].items() if s not in there):
            lp.limits(own, 0.0, 0.0)

    def _add_side(self, kind: Kind, side: Side, shapes: Sequence[int]) -> None:
        fleet, lp = self.fleet, self.lp
        forms = {s: fleet.problem.shapes[s] for s in shapes}
        for s in shapes:
            own = fleet.counts_of[side.kind][s]
            side.counts[s] = self._twin(own) if len(kind.sides) > 1 else own
        shares = [s for s in shapes if forms[s].request.partial]
        sizes = sorted({*(f.request.gpus for f in forms.values() if f.request.gpus), *([1] if shares else [])})
        blocks = blocks_for(kind, forms.values())
        ways = packed(blocks, sizes) if side.use is None else fitting(blocks, sizes)
        side.patterns = {pattern: lp.column(0.0, np.inf) for pattern in ways}
        if (useful := fleet.useful_of[side.kind]) is not None:
            for pattern, column in side.patterns.items():
                left = sum(blocks) - sum(size * count for size, count in pattern)
                self._leave(side, column, useful.untouched[left] - useful.untouched[-1])
        for size in sizes:
            row = lp.row(-np.inf, 0.0, {side.counts[s]: 1.0 for s in shapes if forms[s].request.gpus == size})
            for pattern, column in side.patterns.items():
                lp.entry(row, column, -float(dict(pattern).get(size, 0)))
            side.sizes[size] = row
            if size == 1:
                side.gpus = row
        if (gpus_in_use := self._gpus_in_use[side.kind]) is not None:
            for s in shapes:
                lp.entry(gpus_in_use, side.counts[s], float(forms[s].request.gpus))
        self._add_hosts(kind, side, shapes)
        self._add_shares(kind, side, shares)

    def _twin(self, own: int) -> int:
        """Return a column for the part of a count that is on one side; all sides together take the count's place."""
        column = self.lp.column(0.0, np.inf)
        self._stand_in(own, column)
        return column

    def _stand_in(self, own: int, column: int) -> None:
        """Let a column take the place of a part of what a variable counts."""
        if own in self._wanted:
            if own not in self._links:
                self._links[own] = self.lp.row(-np.inf, 0.0, {own: 1.0})
            entries: Mapping[int, float] = {self._links[own]: -1.0}
        else:
            self.lp.limits(own, 0.0, 0.0)
            entries = self.lp.entries(own)
        there = self.lp.entries(column)
        for row, amount in entries.items():
            self.lp.entry(row, column, there.get(row, 0.0) + amount)

    def _add_hosts(self, kind: Kind, side: Side, shapes: Sequence[int]) -> None:
        """Bind the dimensions of a side's nodes in all, and what rules allow of a shape per node."""
        lp = self.lp
        forms = self.fleet.problem.shapes
        for position, dimension in enumerate(self.fleet.packings[side.kind].dimensions):
            here = [s for s in shapes if s in dimension.amounts]
            if here:
                row = lp.row(-np.inf, 0.0, {side.counts[s]: float(dimension.amounts[s]) for s in here})
                side.prices[position] = row
                for column in side.patterns.values():
                    lp.entry(row, column, -float(dimension.capacity))
        for s in shapes:
            if s in kind.most:
                row = lp.row(-np.inf, 0.0, {side.counts[s]: 1.0})
                for column in side.patterns.values():
                    lp.entry(row, column, -float(room_for(kind, forms[s])))

    def _add_shares(self, kind: Kind, side: Side, shares: Sequence[int]) -> None:
        """Bind shares to patterns of single GPUs: per size one of it alone, and the fullest, to begin with."""
        for card, counts in self._by_card(kind, side, shares):
            outside = self._add_instances(kind, side, card, counts)
            loads = {s: card.loads[s] for s in counts if s in outside}
            if not loads:
                continue
            sizes = tuple(sorted(set(loads.values())))
            alike = {size: {outside[s]: 1.0 for s, load in loads.items() if load == size} for size in sizes}
            side.loads.append({size: self.lp.row(-np.inf, 0.0, columns) for size, columns in alike.items()})
            side.parts.append(card.parts)
            side.cuts.append({})
            singles = (tuple(card.parts // size if size == one else 0 for size in sizes) for one in sizes)
            full = (pattern for _, pattern in dearest(card.parts, sizes, sizes))
            ones = (tuple(int(size == one) for size in sizes) for one in sizes) if side.use is not None else ()
            for pattern in dict.fromkeys((*singles, *full, *ones)):
                self.add_cut(side, len(side.loads) - 1, pattern)

    def _by_card(self, kind: Kind, side: Side, shares: Sequence[int]) -> Iterator[tuple[Card, Mapping[int, int]]]:
        """Yield what a GPU may be, each time with a column per share that may be there, for its part of the count.

        What a rule leaves alone may meet either of those that it keeps apart.
        """
        cards = kind.sides[side.position].cards
        among = {s: [number for number, card in enumerate(cards) if s in card.shapes] for s in shares}
        columns = {s: self._split(side.counts[s], found) for s, found in among.items() if len(found) > 1}
        for number, card in enumerate(cards):
            here = (s for s in shares if s in card.shapes)
            yield card, {s: columns[s][number] if s in columns else side.counts[s] for s in here}

    def _add_instances(self, kind: Kind, side: Side, card: Card, counts: Mapping[int, int]) -> Mapping[int, int]:
        """Bind what may be on MIG instances to layouts; return the column of each shape's count outside MIG.

        A shape that may be there in several ways has a column for each.
        """
        profiles = kind.sides[side.position].profiles
        ways = {s: (*([""] if s in card.loads else []), *profiles.get(s, ())) for s in counts}
        names = frozenset(mode for modes in ways.values() for mode in modes if mode)
        if kind.geometry is None or not names:
            return counts
        rows = {name: self.lp.row(-np.inf, 0.0) for name in sorted(names)}
        outside: dict[int, int] = {}
        for s, modes in ways.items():
            columns = {modes[0]: counts[s]} if len(modes) == 1 else self._split(counts[s], modes)
            for mode, own in self.fleet.modes_of[side.kind].get(s, {}).items():
                if mode in columns:
                    self._stand_in(own, columns[mode])
            for mode, column in columns.items():
                if mode:
                    self.lp.entry(rows[mode], column, 1.0)
                else:
                    outside[s] = column
        useful = self.fleet.useful_of[side.kind]
        layouts = layouts_of if useful is None else layouts_within
        for layout in layouts(kind.geometry, names):
            entries = {rows[name]: -float(count) for name, count in layout}
            column = self.lp.column(0.0, np.inf, entries | dict.fromkeys(self.of_a_gpu(side), 1.0))
            if useful is not None:
                self._leave(side, column, useful.cut(kind.geometry, layout))
        return outside

    def _split(self, count: int, ways: Sequence[Way]) -> dict[Way, int]:
        """Return a column per way of a count, which all of them add up to."""
        row = self.lp.row(-np.inf, 0.0, {count: 1.0})
        return {way: self.lp.column(0.0, np.inf, {row: -1.0}) for way in ways}

    def add_cut(self, side: Side, group: int, pattern: Cut) -> None:
        """Add a column for shared GPUs of a side that are cut so."""
        entries = {row: -float(n) for row, n in zip(side.loads[group].values(), pattern, strict=True) if n}
        entries |= dict.fromkeys(self.of_a_gpu(side), 1.0)
        column = side.cuts[group][pattern] = self.lp.column(0.0, np.inf, entries)
        if (useful := self.fleet.useful_of[side.kind]) is not None:
            taken = sum(size * n for size, n in zip(side.loads[group], pattern, strict=True))
            self._leave(side, column, useful.rests(side.parts[group])[side.parts[group] - taken])

    def _leave(self, side: Side, column: int, use: int) -> None:
        """Let what a column leaves idle be of some use, more than untouched GPUs are."""
        if side.use is not None and use:
            self.lp.entry(side.use, column, -float(use))

    def of_a_gpu(self, side: Side) -> list[int]:
        """Return the rows that count a GPU of a side that is shared or has instances."""
        return [row for row in (side.gpus, self._gpus_in_use[side.kind]) if row is not None]
