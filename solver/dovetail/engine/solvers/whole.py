"""An integer program handed to HiGHS, for good values in little time.

HiGHS runs on one thread, which makes it reproducible where no ceiling of seconds strikes.
"""

from __future__ import annotations

import highspy
import numpy as np

from dovetail.engine.solvers.pyomo_backend import Watch, satisfies
from dovetail.linear import Linear, Model
from dovetail.progress import Stop

_NODES = 1  # of the tree of branches: at its root, cuts and searches around the LP find what there is to find


def near_best(
    model: Model,
    objective: Linear,
    hint: list[int] | None,
    stop: Stop,
    seconds: float | None = None,
    gap: float = 0.0,
) -> list[int] | None:
    """Return values that are good for an objective, greater being better; None where none are found.

    Parameters
    ----------
    model : without rows that hold under a literal.
    hint : values to begin with.
    seconds : a ceiling, beside which there is one of branches.
    gap : of the value, how far from the best there is it may be.
    """
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, "mip_rel_gap": gap, "mip_max_nodes": _NODES}.items():
        highs.setOptionValue(name, value)
    highs.passModel(_lp_of(model, objective))
    if seconds is not None:
        highs.setOptionValue("time_limit", max(0.1, seconds))
    if hint is not None:
        count = len(hint)
        highs.setSolution(count, np.arange(count, dtype=np.int32), np.array(hint, dtype=float))
    with Watch(highs, stop):
        highs.run()
    if highs.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    found = [round(value) for value in highs.getSolution().col_value]
    return found if satisfies(model, found) else None


def _lp_of(model: Model, objective: Linear) -> highspy.HighsLp:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.lower), len(model.rows)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.array([float(objective.terms.get(v, 0)) for v in range(lp.num_col_)])
    lp.col_lower_, lp.col_upper_ = np.array(model.lower, dtype=float), np.array(model.upper, dtype=float)
    lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    lp.row_lower_ = np.array([-np.inf if row.lower is None else row.lower for row in model.rows], dtype=float)
    lp.row_upper_ = np.array([np.inf if row.upper is None else row.upper for row in model.rows], dtype=float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row.variables) for row in model.rows)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([v for row in model.rows for v in row.variables], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([c for row in model.rows for c in row.coefficients], dtype=float)
    return lp
