"""Plain models handed to CP-SAT and HiGHS, tier by tier within so many seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from benchmarks.plain import LARGE, Rows, Terms

Solution = list[int]
WORKERS = 8  # of CP-SAT, which wants several search strategies even on two cores


def by_tiers(
    model: Rows, seconds: float, solve: Callable[[Rows, Terms, float, Solution], Solution | None]
) -> Solution | None:
    """Return the best solution found when every tier is improved in turn and then held.

    Each tier gets half of the time that is left, the last one all. The start is that nothing is admitted, which keeps
    every row; None where nothing better was found.
    """
    ends = time.monotonic() + seconds
    best: Solution = [0] * len(model.upper)
    for number, (_, terms) in enumerate(model.tiers):
        left = (ends - time.monotonic()) / (1 if number + 1 == len(model.tiers) else 2)
        if left <= 0:
            break
        best = solve(model, terms, left, best) or best
        reached = sum(coefficient * best[variable] for variable, coefficient in terms.items())
        model.rows.append((reached, LARGE, terms))
    return best if any(best) else None


def highs(model: Rows, terms: Terms, seconds: float, start: Solution) -> Solution | None:
    """Maximise one tier with HiGHS."""
    import highspy

    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("time_limit", seconds)
    lp = highspy.HighsLp()
    many = len(model.upper)
    lp.num_col_, lp.num_row_ = many, len(model.rows)
    lp.col_cost_ = np.array([float(terms.get(v, 0)) for v in range(many)])
    lp.col_lower_, lp.col_upper_ = np.zeros(many), np.array(model.upper, dtype=float)
    lp.row_lower_ = np.array([float(low) if low > -LARGE else -highspy.kHighsInf for low, _, _ in model.rows])
    lp.row_upper_ = np.array([float(high) if high < LARGE else highspy.kHighsInf for _, high, _ in model.rows])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * many
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(row) for _, _, row in model.rows)]).astype(np.int32)
    lp.a_matrix_.index_ = np.array([v for _, _, row in model.rows for v in row], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([float(c) for _, _, row in model.rows for c in row.values()])
    lp.sense_ = highspy.ObjSense.kMaximize
    solver.passModel(lp)
    first = highspy.HighsSolution()
    first.col_value = [float(value) for value in start]
    solver.setSolution(first)
    solver.run()
    if solver.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
        return None
    return _sound(model, [round(value) for value in solver.getSolution().col_value])


def cp_sat(model: Rows, terms: Terms, seconds: float, start: Solution) -> Solution | None:
    """Maximise one tier with CP-SAT."""
    from ortools.sat.python import cp_model

    ends = time.monotonic() + seconds
    native = cp_model.CpModel()
    proto = native.proto  # filled directly: with operators a model takes several times as long to build
    for upper in model.upper:
        proto.variables.add().domain.extend([0, upper])
    for low, high, row in model.rows:
        constraint = proto.constraints.add().linear
        constraint.vars.extend(row.keys())
        constraint.coeffs.extend(row.values())
        constraint.domain.extend([low, high])
    proto.objective.vars.extend(terms.keys())
    proto.objective.coeffs.extend([-coefficient for coefficient in terms.values()])
    proto.objective.scaling_factor = -1
    proto.solution_hint.vars.extend(range(len(start)))
    proto.solution_hint.values.extend(start)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = WORKERS
    solver.parameters.max_time_in_seconds = max(0.01, ends - time.monotonic())
    solver.parameters.linearization_level = 2  # finds solutions of counting models several times sooner
    if solver.solve(native) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return _sound(model, list(solver.response_proto.solution))


def _sound(model: Rows, solution: Solution) -> Solution | None:
    """Return a solution that keeps all rows in integers, None for one that was so to within a tolerance only."""
    kept = all(low <= sum(c * solution[v] for v, c in row.items()) <= high for low, high, row in model.rows)
    return solution if kept else None


def total(terms: Terms, solution: Sequence[int]) -> int:
    """Return the value of a sum."""
    return sum(coefficient * solution[variable] for variable, coefficient in terms.items())
