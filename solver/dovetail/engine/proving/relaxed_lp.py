"""The LP behind a proof, solved again and again as its box shrinks and rows are added (HiGHS)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import floor

import highspy
import numpy as np

from dovetail.linear import Linear
from dovetail.proof.lagrangian import PlainRow


class Outcome(Enum):
    """What came of solving an LP."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Point:
    """An LP's answer: `duals` per row, none below 0; of an infeasible one they are a ray, as far as one is known."""

    outcome: Outcome
    value: float
    values: Sequence[float]
    duals: Sequence[float]


class RelaxedLp:
    """Maximises an objective under rows `A x <= b` in a box.

    Parameters
    ----------
    scale : what the objective is divided by.
    """

    def __init__(
        self, objective: Linear, scale: int, rows: Sequence[PlainRow], lower: Sequence[int], upper: Sequence[int]
    ) -> None:
        self.rows = list(rows)
        self.work = 0
        self._terms = sum(len(row.variables) for row in rows)
        self._columns = len(lower)
        self._highs = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "presolve": "off", "solver": "simplex"}.items():
            self._highs.setOptionValue(name, value)
        self._highs.passModel(self._model(objective, scale, lower, upper))

    def _model(self, objective: Linear, scale: int, lower: Sequence[int], upper: Sequence[int]) -> highspy.HighsLp:
        lp = highspy.HighsLp()
        costs = np.zeros(len(lower))
        for variable, coefficient in objective.terms.items():
            costs[variable] = coefficient / scale
        lp.num_col_, lp.num_row_ = len(lower), len(self.rows)
        lp.sense_ = highspy.ObjSense.kMaximize
        lp.col_cost_ = costs
        lp.col_lower_, lp.col_upper_ = np.array(lower, dtype=float), np.array(upper, dtype=float)
        lp.row_lower_ = np.full(len(self.rows), -highspy.kHighsInf)
        lp.row_upper_ = np.array([row.upper for row in self.rows], dtype=float)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.cumsum([0] + [len(row.variables) for row in self.rows]).astype(np.int32)
        lp.a_matrix_.index_ = np.array([v for row in self.rows for v in row.variables], dtype=np.int32)
        lp.a_matrix_.value_ = np.array([c for row in self.rows for c in row.coefficients], dtype=float)
        return lp

    def add_row(self, row: PlainRow) -> None:
        """Add a row at the end."""
        self.rows.append(row)
        self._terms += len(row.variables)
        self._highs.addRow(
            -highspy.kHighsInf,
            float(row.upper),
            len(row.variables),
            np.array(row.variables, dtype=np.int32),
            np.array(row.coefficients, dtype=float),
        )

    def set_box(self, variable: int, lower: int, upper: int) -> None:
        """Change the box of one variable."""
        self._highs.changeColBounds(variable, float(lower), float(upper))

    def solve(self, iterations: int = 100_000) -> Point:
        """Solve the LP as it stands, from where the last solve ended."""
        self._highs.setOptionValue("simplex_iteration_limit", iterations)
        self._highs.run()
        info = self._highs.getInfo()
        self.work += (max(0, info.simplex_iteration_count) + 1) * (self._terms + self._columns)
        status = self._highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return Point(Outcome.INFEASIBLE, -np.inf, (), self._ray())
        if status not in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kIterationLimit):
            return Point(Outcome.FAILED, np.inf, (), ())
        solution = self._highs.getSolution()
        outcome = Outcome.SOLVED if status == highspy.HighsModelStatus.kOptimal else Outcome.FAILED
        return Point(outcome, info.objective_function_value, solution.col_value, solution.row_dual)

    def _ray(self) -> Sequence[float]:
        """Return the multipliers that show infeasibility, as far as HiGHS has them."""
        found = self._highs.getDualRay()
        if len(found) < 3 or not found[1]:
            return ()
        return list(found[2])

    def tableau(self, values: Sequence[float]) -> Iterator[Sequence[float]]:
        """Yield the row of the basis' inverse of every basic variable that has a fraction."""
        status, basic = self._highs.getBasicVariables()
        for position, variable in enumerate(basic if status == highspy.HighsStatus.kOk else ()):
            if variable >= 0 and is_fraction(values[variable]):
                yield self._highs.getBasisInverseRow(position)[1]


def is_fraction(value: float) -> bool:
    """Tell whether a value is no integer, within the LP's tolerance."""
    return 1e-6 < value - floor(value) < 1 - 1e-6
