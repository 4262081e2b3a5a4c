"""The LP that mixes node patterns.

max  sum_s v_s z_s - sum_lp c_l y_lp
u_sg <= sum_lp a_ps y_lp   (price of a shape on the lots of g)
sum_p y_lp <= N_l          (price of a node)         y_lp >= 0
z_s <= sum_g u_sg, and whatever rules say of z and u       0 <= z_s <= d_s

A pattern with more of a shape than is left to place takes part only up to that, so it is switched off as demand
shrinks: what the LP mixes could then not be rounded. What nodes hold beyond what the LP counts there (u, which rules
may keep down) places nobody, and demand is not less for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import highspy
import numpy as np

from dovetail.engine.contents.patterns import MANY_NODES, Column, Mixture, Pattern, Whole, Wish, without
from dovetail.engine.generation.fleet_rows import FleetRows
from dovetail.engine.solvers.highs import DUAL, PRIMAL
from dovetail.model.state import Slot

_WHOLE = 1e-6
_CLOSE = 0.5  # times what is no matter, from the best there is in whole numbers
_MOST_NODES = 1, 200  # of the tree of branches, without and with a ceiling in seconds
_MOST_STEPS = 5_000, 200_000  # of the simplex algorithm from where it stood, which may stall; then from scratch
_UNSOLVED = highspy.HighsModelStatus.kIterationLimit, highspy.HighsModelStatus.kTimeLimit
_MOST_WHOLE = 4000  # patterns among which to choose in whole numbers
_MOST = 3000, 6000  # patterns that stay where there are twice as many: on fewer nodes, and on many


class Master:
    """The LP over the patterns known so far, solved again and again from where it stood."""

    def __init__(self, rows: FleetRows, wish: Wish) -> None:
        self.rows, self.wish = rows, wish
        self.columns: list[Column] = []
        self._known: set[tuple[int, Pattern]] = set()
        self._on: list[bool] = []
        self._highs = highspy.Highs()
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._size_row = len(rows.limits)  # that of the first lot
        self._unit_of = {lot.rows[key]: unit for lot in rows.lots for key, unit in lot.units.items()}  # by row
        for limit in [*rows.limits, *(len(lot.nodes) for lot in rows.lots)]:
            self._highs.addRow(-np.inf, float(limit), 0, np.array([], dtype=np.int32), np.array([]))
        for counted in rows.counted:
            gain = wish.worth.get(counted.earns, 0.0) * counted.each if counted.worth is None else counted.worth
            self._add_column(gain - wish.per_short * counted.short, counted.low, counted.high, counted.entries)
        supplied = {row for lot in rows.lots for row in lot.rows.values()}
        self._uses = [
            [(row, amount) for row, amount in counted.entries.items() if row in supplied] for counted in rows.counted
        ]
        self._moved = True  # rows or limits, since the LP was solved
        self._first = len(rows.counted)  # the columns before those of patterns
        self.reset()

    def _add_column(self, gain: float, low: float, high: float, entries: Mapping[int, float]) -> None:
        rows, values = np.array(list(entries), dtype=np.int32), np.array(list(entries.values()), dtype=float)
        self._highs.addCol(gain, low, high, len(entries), rows, values)

    def add(self, lot: int, pattern: Pattern) -> bool:
        """Add a pattern on a lot; tell whether it is new."""
        if (lot, pattern) in self._known or (lot, pattern) in self._banned:
            return False
        self._known.add((lot, pattern))
        column = self.column(lot, pattern)
        for each in (column, replace(column, stays=True)) if (lot, pattern) in self.wish.stays else (column,):
            self.columns.append(each)
            self._on.append(self._usable(each))
            self._add_column(-self._cost(each), 0.0, self._most(each), each.entries)
        return True

    def column(self, lot: int, pattern: Pattern) -> Column:
        """Return a pattern on a lot as a column, be it among those to mix or not."""
        counts = Counter[int]()
        entries = {self._size_row + lot: 1.0}
        for row, slot, count in self._supplied(lot, pattern):
            counts[slot.shape] += count * self._unit_of.get(row, 1)
            entries[row] = entries.get(row, 0.0) - count
        return Column(lot, pattern, counts, entries)

    def _supplied(self, lot: int, pattern: Pattern) -> Iterator[tuple[int, Slot, int]]:
        """Yield the rows that what a node of a lot holds supplies, as far as anybody asks for it."""
        for slot, count in pattern:
            row = self.rows.lots[lot].row(slot) if slot.shape in self.demand else None
            if row is not None:
                yield row, slot, count

    def own_worth(self) -> list[dict[int, float]]:
        """Return what a replica on each lot is worth by itself, by key."""
        shape_of = {number: shape for (shape, _), number in self.rows.keys.items()}
        worth = self.wish.worth
        return [
            {key: worth.get(shape_of.get(key, key), 0.0) * lot.units.get(key, 1) for key in lot.rows}
            for lot in self.rows.lots
        ]

    def _cost(self, column: Column) -> float:
        return (self.wish.price(column.lot, column.pattern) if column.counts else 0.0) - self._own(column)

    def _own(self, column: Column) -> float:
        """Return what it is worth that a node holds a pattern already."""
        return self.wish.stays[column.lot, column.pattern][0] if column.stays else 0.0

    def _most(self, column: Column) -> float:
        """Return on how many nodes the LP may have a pattern."""
        if not self._usable(column):
            return 0.0
        return self._left[column.lot, column.pattern] if column.stays else np.inf

    def _usable(self, column: Column) -> bool:
        allowed = (column.lot, column.pattern) not in self._banned
        return allowed and self.sizes[column.lot] > 0 and self.times(column) > 0

    def times(self, column: Column) -> int:
        """Return how many nodes may take a pattern until nodes run out or it has more than is left to place."""
        most = min([self.sizes[column.lot], *(self.demand[s] // n for s, n in column.counts.items())])
        return min(most, self._left[column.lot, column.pattern]) if column.stays else most

    def take(self, column: Column, times: int) -> None:
        """Count nodes that take a pattern, and what they hold, as settled; `refresh` tells the LP."""
        self.sizes[column.lot] -= times
        if column.stays:
            self._left[column.lot, column.pattern] -= times
        self._paid += self._cost(column) * times
        for shape, count in column.counts.items():
            self.demand[shape] -= times * count
        for row, slot, count in self._supplied(column.lot, column.pattern):
            self._settled[row][slot.shape] += times * count
        for row, amount in column.entries.items():
            self._limits[row] -= times * amount

    def ban(self, column: Column) -> None:
        """Leave a pattern out until the next `reset`."""
        self._banned.add((column.lot, column.pattern))

    def allow(self, column: Column) -> None:
        """Do not leave out a pattern any more."""
        self._banned.discard((column.lot, column.pattern))

    def reset(self) -> None:
        """Start again with nothing settled, and all patterns known so far; `refresh` tells the LP."""
        self._banned: set[tuple[int, Pattern]] = set()
        self.sizes = [len(lot.nodes) for lot in self.rows.lots]
        self.demand = dict(self.wish.demand)
        self._left = {key: nodes for key, (_, nodes) in self.wish.stays.items()}
        self._paid = 0.0
        self._settled: dict[int, Counter[int]] = defaultdict(Counter)  # replicas, by row and shape
        self._needed: dict[int, float] = {}  # what the last solution counts of every such row
        self._limits = [*map(float, self.rows.limits), *map(float, self.sizes)]

    def refresh(self) -> None:
        """Tell the LP about nodes and demand that are left."""
        self._moved = True
        self._leave_out_surplus()
        for row, limit in enumerate(self._limits):
            self._highs.changeRowBounds(row, -np.inf, limit)
        for index, column in enumerate(self.columns):
            usable = self._usable(column)
            if usable != self._on[index] or column.stays:
                self._on[index] = usable
                self._highs.changeColBounds(self._first + index, 0.0, self._most(column))

    def _leave_out_surplus(self) -> None:
        """Work out the demand that is left by what is settled and counts in the last solution."""
        if not self._needed:
            return
        self.demand = dict(self.wish.demand)
        for row, settled in self._settled.items():
            needed = int(self._needed.get(row, 0.0) - self.rows.limits[row] + _WHOLE)
            for shape, count in settled.items():
                counts = min(count, max(0, needed))
                self.demand[shape] -= counts * self._unit_of.get(row, 1)
                needed -= counts

    def solve(self, seconds: float | None = None) -> Mixture:
        """Solve the LP over the known patterns, nodes and demands as last told.

        Parameters
        ----------
        seconds : a ceiling; an LP that is not solved by then, or after many steps, is worth and mixes nothing.
        """
        until = np.inf if seconds is None else self._highs.getRunTime() + seconds  # it adds up over all runs
        self._highs.setOptionValue("time_limit", until)
        steps = 0
        # New columns leave the last solution feasible, other limits do not.
        for again, (most, way) in enumerate(zip(_MOST_STEPS, (DUAL if self._moved else PRIMAL, DUAL), strict=True)):
            if again:
                self._highs.clearSolver()
            self._highs.setOptionValue("simplex_iteration_limit", most)
            self._highs.setOptionValue("simplex_strategy", way)
            self._highs.run()
            steps += self._highs.getInfo().simplex_iteration_count
            if self._highs.getModelStatus() != highspy.HighsModelStatus.kIterationLimit:
                break
        if self._highs.getModelStatus() in _UNSOLVED:
            self._moved = True
            lots = self.rows.lots
            return Mixture(-np.inf, {}, [{} for _ in lots], [0.0] * len(lots), self.wish, {}, steps)
        self._moved = False
        solution = self._highs.getSolution()
        first, primal = solution.col_value[: self._first], solution.col_value[self._first :]
        dual = list(solution.row_dual)
        self._needed = defaultdict(float)
        for times, amounts in zip(first, self._uses, strict=True):
            for row, amount in amounts if times else ():
                self._needed[row] += amount * times
        uses = {index: times for index, times in enumerate(primal) if times > 1e-9}
        prices = [{key: max(0.0, dual[row]) for key, row in lot.rows.items()} for lot in self.rows.lots]
        value = self._highs.getInfo().objective_function_value - self._paid
        admitted: dict[int, float] = defaultdict(float)
        for counted, count in zip(self.rows.counted, first, strict=True):
            if counted.shape >= 0:
                admitted[counted.shape] += count
        served = frozenset(
            counted.earns
            for counted, amount in zip(self.rows.counted, first, strict=True)
            if counted.shape < 0 <= counted.earns and amount >= counted.high * (1 - _WHOLE)
        )
        keys, nodes = self.rows.keys, dual[self._size_row :]
        return Mixture(value, uses, prices, nodes, self.wish, admitted, steps, served, keys)

    def whole(
        self,
        mixture: Mixture,
        seconds: float | None,
        known: Sequence[tuple[Column, int]] = (),
        least: float = -np.inf,
    ) -> Whole:
        """Solve the LP over the known patterns that pay most in whole numbers of these, about as good as there are.

        Parameters
        ----------
        mixture : its last solution.
        seconds : a ceiling; without it the result is always the same.
        known : a solution to begin with, of patterns in the LP; what is admitted and supplied is whole then too.
        least : what a solution is to be worth: patterns that no such solution has are left out.
        """
        begin = {(column.lot, column.pattern): times for column, times in known}
        place = {i: begin[c.lot, c.pattern] for i, c in enumerate(self.columns) if (c.lot, c.pattern) in begin}
        columns = self._best(mixture, place, np.inf if least == -np.inf else mixture.value - least)
        highs = self._over(columns)
        highs.setOptionValue("mip_max_nodes", _MOST_NODES[seconds is not None])
        highs.setOptionValue("time_limit", np.inf if seconds is None else max(0.1, seconds))
        counts = [i for i, used in enumerate(self._uses) if used or self.rows.counted[i].shape >= 0]
        own = np.arange(self._first, self._first + len(columns), dtype=np.int32)
        whole = np.concatenate([np.array(counts if known else [], dtype=np.int32), own])
        highs.changeColsIntegrality(len(whole), whole, np.array([highspy.HighsVarType.kInteger] * len(whole)))
        if known:
            highs.setSolution(len(own), own, np.array([float(place.get(i, 0)) for i in columns]))
        highs.run()
        info, values = highs.getInfo(), highs.getSolution().col_value
        cut = highs.getModelStatus() == highspy.HighsModelStatus.kTimeLimit
        if info.primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return Whole([], -np.inf, {}, {}, info.simplex_iteration_count, cut)
        uses = ((self.columns[i], round(times)) for i, times in zip(columns, values[self._first :], strict=True))
        needed, admitted = Counter[int](), Counter[int]()
        for i in counts:
            needed.update({row: round(amount * values[i]) for row, amount in self._uses[i]})
            if self.rows.counted[i].shape >= 0:
                admitted[self.rows.counted[i].shape] += round(values[i])
        return Whole(
            [(column, times) for column, times in uses if times],
            info.objective_function_value - self._paid,
            admitted,
            needed,
            info.simplex_iteration_count,
            cut,
        )

    def _best(self, mixture: Mixture, sure: Collection[int], most: float) -> list[int]:
        """Return the columns among which to choose in whole numbers: those that are sure, and those that pay most.

        Parameters
        ----------
        most : what the LP may lose by a column: no less than what that earns and costs falls short of the price of a
            node (its reduced cost).
        """
        on = (index for index, on in enumerate(self._on) if on and index not in sure)
        fits = [i for i in on if self._gain(mixture, i) >= -most]
        return sorted([*sure, *sorted(fits, key=lambda index: (-self._pays(mixture, index), index))[:_MOST_WHOLE]])

    def _over(self, columns: Sequence[int]) -> highspy.Highs:
        """Return the LP over some columns alone, to be solved close to its end."""
        rest = sorted(set(range(len(self.columns))).difference(columns))
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.setOptionValue("mip_rel_gap", 0.0)
        highs.setOptionValue("mip_abs_gap", _CLOSE * self.wish.grain)
        highs.passModel(self._highs.getLp())
        highs.deleteCols(len(rest), np.array([self._first + i for i in rest], dtype=np.int32))
        return highs

    def narrow(self, mixture: Mixture) -> None:
        """Drop patterns where there are many, and cut those in use down to what is left to place.

        With more than that they take part no longer, and pricing would have to find their like one by one.
        """
        trimmed = []
        for column in (self.columns[index] for index in mixture.uses):
            if self.sizes[column.lot] > 0 and not self.times(column):
                surplus = Counter(column.counts) - Counter(self.demand)
                trimmed.append((column.lot, without(column.pattern, surplus, lambda slot: slot.shape)))
        self.forget(mixture)
        for lot, pattern in trimmed:
            self.add(lot, pattern)

    def forget(self, mixture: Mixture) -> None:
        """Drop the patterns that pay least at an LP's prices, where there are many."""
        most = _MOST[sum(len(lot.nodes) for lot in self.rows.lots) > MANY_NODES]
        if len(self.columns) < 2 * most:
            return
        unused = ((i, c) for i, c in enumerate(self.columns) if i not in mixture.uses and c.counts)
        spare = [i for i, column in unused if (column.lot, column.pattern) not in self.wish.stays]
        gone = sorted(sorted(spare, key=lambda i: self._pays(mixture, i))[: len(self.columns) - most])
        self._highs.deleteCols(len(gone), np.array([self._first + i for i in gone], dtype=np.int32))
        dropped = set(gone)
        self._known -= {(self.columns[i].lot, self.columns[i].pattern) for i in gone}
        self.columns = [column for i, column in enumerate(self.columns) if i not in dropped]
        self._on = [on for i, on in enumerate(self._on) if i not in dropped]

    def _gain(self, mixture: Mixture, index: int) -> float:
        column = self.columns[index]
        return mixture.gain(column.lot, column.pattern) + self._own(column)

    def _pays(self, mixture: Mixture, index: int) -> float:
        return self._gain(mixture, index) / self.rows.lots[self.columns[index].lot].gpus
