"""An LP handed to HiGHS in bulk, grown column by column and solved again.

HiGHS runs on one thread, which makes it reproducible.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence

import highspy
import numpy as np

DUAL, PRIMAL = 1, 4  # HiGHS' numbers of its ways from corner to corner
_INFEASIBLE = highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible
FEW_STEPS = 2_000
"""Steps from the last solution on, after which the interior is quicker."""

_ANEW = 10  # times as many steps from nothing, where the algorithm may stall

_MOST_STEPS = 2000
"""Steps through the interior, of which 10 to 100 are usual; HiGHS 1.14 can take them for ever."""


class Lp:
    """Maximise over columns within limits and rows within bounds.

    Rows and columns are numbered as they are made; entries may be added until the first `solve`, later only with new
    columns.
    """

    def __init__(self) -> None:
        self._row_bounds: list[tuple[float, float]] = []
        self._limits: list[tuple[float, float]] = []
        self._entries: list[dict[int, float]] = []
        self._costs: dict[int, float] = {}
        self._built = 0
        self._asked_anew = True
        self._highs: highspy.Highs | None = None
        self._shut: frozenset[int] = frozenset()
        self._open: dict[int, tuple[float, float]] = {}  # the limits that shut columns have otherwise
        self._corners: dict[Hashable, highspy.HighsBasis] = {}
        self._at: frozenset[Hashable] = frozenset()  # names of the last solution's corner

    def row(self, low: float, high: float, entries: Mapping[int, float] | Iterable[tuple[int, float]] = ()) -> int:
        """Add a row over columns that exist and return its number."""
        self._row_bounds.append((low, high))
        number = len(self._row_bounds) - 1
        for column, value in dict(entries).items():
            self._entries[column][number] = float(value)
        return number

    def column(self, low: float, high: float, entries: Mapping[int, float] | None = None) -> int:
        """Add a column over rows that exist and return its number."""
        self._limits.append((low, high))
        self._entries.append(dict(entries or {}))
        return len(self._limits) - 1

    def entry(self, row: int, column: int, value: float) -> None:
        """Set one coefficient, before the first `solve`."""
        if value:
            self._entries[column][row] = value

    def entries(self, column: int) -> Mapping[int, float]:
        """Return the coefficients of a column by row."""
        return dict(self._entries[column])

    def objective(self, costs: Mapping[int, float]) -> None:
        """Replace the objective."""
        for column in self._costs.keys() - costs.keys():
            self.cost(column, 0.0)
        for column, value in costs.items():
            self.cost(column, value)

    def cost(self, column: int, value: float) -> None:
        """Set the objective's coefficient of a column."""
        self._costs[column] = value
        self._asked_anew = True
        if self._highs is not None and column < self._built:
            self._highs.changeColCost(column, value)

    def bounds(self, row: int, low: float, high: float) -> None:
        """Set the bounds of a row."""
        self._row_bounds[row] = (low, high)
        self._asked_anew = True
        if self._highs is not None:
            self._highs.changeRowBounds(row, low, high)

    def limits(self, column: int, low: float, high: float) -> None:
        """Set the limits of a column."""
        self._limits[column] = (low, high)
        self._asked_anew = True
        if self._highs is not None and column < self._built:
            self._highs.changeColBounds(column, low, high)

    def shut(self, columns: Iterable[int]) -> None:
        """Let some columns be 0 from the next solution on, no others; what is at hand stays until then."""
        self._shut = frozenset(columns)

    def remember(self, *names: Hashable) -> None:
        """Remember the corner of the last solution, if there is one, by some names."""
        if self._highs is not None and self.complete:
            self._corners.update(dict.fromkeys(names, self._highs.getBasis()))
            self._at = frozenset(names)

    def solve(
        self,
        *,
        inner: bool = False,
        warm: bool = False,
        start: Hashable = None,
        seconds: float | None = None,
        steps: int = FEW_STEPS,
        stalls: bool = False,
    ) -> float:
        """Solve and return the value.

        Where nothing but columns is new, few steps remain from the last solution. To presolve anew is several times
        quicker where costs, bounds or limits are new.

        Parameters
        ----------
        inner : go through the interior, and to a corner in the end only, rather than from corner to corner.
        warm : go on from a solution although more is new, which is little; where `inner` is asked for and it turns
            out not to be so little, through the interior all the same: after so many `steps`.
        start : the name of a corner to go on from where more is new; if none is remembered by it, go on from the last
            solution if `warm`, else start anew.
        seconds : a ceiling; what is at hand when it strikes need not be a solution.
        stalls : whether so many `steps` from a solution on are too many whatever is new; then it starts anew, and
            what it comes to in ten times as many has to do.
        """
        if self._highs is None:
            self._highs = self._build()
        self._open_and_shut()
        anew = self._asked_anew and not warm
        elsewhere = anew or (self._asked_anew and start not in self._at)
        corner = self._corners.get(start) if elsewhere else None
        again = inner and warm and self._asked_anew
        inner = inner and anew and corner is None
        self._highs.setOptionValue("solver", "ipm" if inner else "simplex")
        self._highs.setOptionValue("simplex_iteration_limit", steps if again or stalls else highspy.kHighsIInf)
        self._highs.setOptionValue("simplex_strategy", DUAL if self._asked_anew else PRIMAL)
        self._highs.setOptionValue("ipm_iteration_limit", _MOST_STEPS)
        ceiling = np.inf if seconds is None else self._highs.getRunTime() + max(0.1, seconds)
        self._highs.setOptionValue("time_limit", ceiling)
        self._add_newer()
        if anew:
            self._highs.clearSolver()
        if corner is not None:
            self._take_up(corner)
        self._built = len(self._limits)
        self._asked_anew, self._at = False, frozenset()
        self._highs.run()
        if self._cut_short:
            self._go_another_way(inner=inner, again=again, steps=_ANEW * steps if stalls else None)
        return float(self._highs.getInfo().objective_function_value)

    def _go_another_way(self, *, inner: bool, again: bool, steps: int | None) -> None:
        """Solve what was cut short: from nothing in so many steps, or through the interior and on from there."""
        assert self._highs is not None
        if steps is not None:
            self._highs.clearSolver()
            self._highs.setOptionValue("simplex_strategy", DUAL)
            self._highs.setOptionValue("simplex_iteration_limit", steps)
            self._highs.run()
            return
        if again:  # it is not so little
            self._highs.clearSolver()
            self._highs.setOptionValue("solver", "ipm")
            self._highs.setOptionValue("simplex_iteration_limit", highspy.kHighsIInf)
            self._highs.run()
        if (inner or again) and self._cut_short:
            self._highs.setOptionValue("solver", "simplex")
            self._highs.run()

    @property
    def _cut_short(self) -> bool:
        """Whether steps ran out."""
        return self._highs is not None and self._highs.getModelStatus() == highspy.HighsModelStatus.kIterationLimit

    def _add_newer(self) -> None:
        """Add the columns that are newer than the last solution."""
        assert self._highs is not None
        for column in range(self._built, len(self._limits)):
            entries = self._entries[column]
            low, high = self._limits[column]
            rows, values = np.array(list(entries), dtype=np.int32), np.array(list(entries.values()), dtype=float)
            self._highs.addCol(self._costs.get(column, 0.0), low, high, len(entries), rows, values)

    def _take_up(self, corner: highspy.HighsBasis) -> None:
        """Go on from a corner; columns that are newer than it are 0 there."""
        assert self._highs is not None
        newer = len(self._limits) - len(corner.col_status)
        corner.col_status = [*corner.col_status, *[highspy.HighsBasisStatus.kLower] * newer]
        self._highs.setBasis(corner)

    def _open_and_shut(self) -> None:
        for column in self._open.keys() - self._shut:
            self.limits(column, *self._open.pop(column))
        for column in sorted(self._shut - self._open.keys()):
            self._open[column] = self._limits[column]
            self.limits(column, 0.0, 0.0)

    @property
    def complete(self) -> bool:
        """Whether the last solution is one, and not what was at hand when time ran out."""
        return self._highs is not None and self._highs.getModelStatus() == highspy.HighsModelStatus.kOptimal

    @property
    def steps(self) -> int:
        """How many steps from corner to corner the last solution took."""
        return 0 if self._highs is None else int(self._highs.getInfo().simplex_iteration_count)

    @property
    def infeasible(self) -> bool:
        """Whether there is no solution at all, of an LP whose value has a limit."""
        return self._highs is not None and self._highs.getModelStatus() in _INFEASIBLE

    def duals(self) -> Sequence[float]:
        """Return the price of every row in the last solution: what one more unit of its upper bound is worth."""
        assert self._highs is not None
        return list(self._highs.getSolution().row_dual)

    def values(self) -> Sequence[float]:
        """Return the columns' values in the last solution."""
        assert self._highs is not None
        return list(self._highs.getSolution().col_value)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self._limits)

    def cost_of(self, column: int, rows: Container[int], duals: Sequence[float]) -> float:
        """Return what a column pays for some rows at given prices."""
        return sum(value * duals[row] for row, value in self._entries[column].items() if row in rows)

    def _build(self) -> highspy.Highs:
        lp = highspy.HighsLp()
        count = len(self._limits)
        lp.num_col_, lp.num_row_ = count, len(self._row_bounds)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = np.array([self._costs.get(column, 0.0) for column in range(count)])
        lp.col_lower_ = np.array([low for low, _ in self._limits], dtype=float)
        lp.col_upper_ = np.array([high for _, high in self._limits], dtype=float)
        lp.row_lower_ = np.array([low for low, _ in self._row_bounds], dtype=float)
        lp.row_upper_ = np.array([high for _, high in self._row_bounds], dtype=float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = np.cumsum([0, *(len(entries) for entries in self._entries)]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([row for entries in self._entries for row in entries], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([v for entries in self._entries for v in entries.values()], dtype=float)
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        highs.passModel(lp)
        self._built = count
        return highs
