"""HiGHS through Pyomo as a backend of the solver-neutral model: a second solver that shares no code with the first.

Pyomo holds the model and writes it as an LP file; HiGHS reads that file. Pyomo's own HiGHS interfaces redirect the
output of the whole process while they solve, which would swallow another thread's progress lines, and cannot be told
to stop; a file has neither trouble. What HiGHS returns is rounded and then judged in exact integers.
"""

from __future__ import annotations

import math
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dovetail.engine.solvers.answer import Answer, Verdict
from dovetail.linear import Linear, Model, Row, unconditional
from dovetail.progress import Stop

NODES = 10_000
_TOLERANCE = 1e-9  # a big-M row times HiGHS' own 1e-6 could let a whole replica slip through
_TICK = 0.1


def to_pyomo(model: Model) -> Any:
    """Return a model as a Pyomo `ConcreteModel`: `x[i]` is variable i, `rows` are its rows; it has no objective.

    A row that holds only under a literal is written with the smallest multiplier that variable bounds prove enough.
    """
    import pyomo.environ as pyo

    concrete = pyo.ConcreteModel()
    bounds = list(zip(model.lower, model.upper, strict=True))
    concrete.x = pyo.Var(range(len(bounds)), domain=pyo.Integers, bounds=lambda _, index: bounds[index])
    rows = [part for row in model.rows for part in unconditional(model, row)]
    if model.infeasible is not None:
        concrete.never = pyo.Var(bounds=(0, 0))
        concrete.nothing_fits = pyo.Constraint(expr=concrete.never >= 1)
    concrete.rows = pyo.Constraint(
        range(len(rows)),
        rule=lambda block, index: (rows[index][1], _expression(block, rows[index][0]), rows[index][2]),
    )
    return concrete


def set_objective(concrete: Any, objective: Linear, sense: str) -> None:
    """Give a model from `to_pyomo` its objective, in place of the one it may have."""
    import pyomo.environ as pyo

    if concrete.component("objective") is not None:
        concrete.del_component("objective")
    direction = pyo.maximize if sense == "max" else pyo.minimize
    concrete.objective = pyo.Objective(expr=_expression(concrete, objective), sense=direction)


def solve_pyomo(
    model: Model,
    objective: Linear,
    sense: str,
    seconds: float | None = None,
    stop: Stop | None = None,
    *,
    nodes: int = NODES,
) -> Answer:
    """Optimise one expression over a model with HiGHS.

    Parameters
    ----------
    sense : `max` or `min`.
    seconds : a ceiling of wall clock; unlike `nodes` it makes results differ from run to run where it strikes.
    nodes : the most branch-and-bound nodes to look at.

    Returns
    -------
    Answer
        `work` counts nodes. Values satisfy every row in exact integers: a solution that does not once it is rounded
        is dropped, and the verdict is then `unknown`.
    """
    concrete = to_pyomo(model)
    set_objective(concrete, objective, sense)
    with tempfile.TemporaryDirectory(prefix="dovetail-") as folder:
        path = Path(folder) / "model.lp"
        columns = _write(concrete, path)
        highs = _highs(seconds, nodes)
        highs.readModel(str(path))
    if stop is None:
        highs.run()
    else:
        with Watch(highs, stop):
            highs.run()
    return _answer(model, objective, sense, highs, columns)


def satisfies(model: Model, values: Sequence[int]) -> bool:
    """Tell whether values keep every bound and every row of a model, in exact integers."""
    if model.infeasible is not None:
        return False
    within = all(low <= value <= high for low, value, high in zip(model.lower, values, model.upper, strict=True))
    return within and all(_keeps(row, values) for row in model.rows)


def _keeps(row: Row, values: Sequence[int]) -> bool:
    if row.when is not None and (values[row.when.variable] == 1) != row.when.positive:
        return True
    total = sum(c * values[v] for v, c in zip(row.variables, row.coefficients, strict=True))
    return (row.lower is None or total >= row.lower) and (row.upper is None or total <= row.upper)


def _expression(concrete: Any, linear: Linear) -> Any:
    from pyomo.core.expr.numeric_expr import LinearExpression, MonomialTermExpression

    terms = [MonomialTermExpression((c, concrete.x[v])) for v, c in linear.terms.items() if c]
    return LinearExpression([*terms, linear.constant] if linear.constant or not terms else terms)


def _write(concrete: Any, path: Path) -> dict[str, int]:
    """Write a model as an LP file; return the variable index behind each column name."""
    from pyomo.repn.plugins.lp_writer import LPWriter

    with path.open("w", encoding="ascii", newline="\n") as file:
        symbols = LPWriter().write(concrete, file).symbol_map
    found = {}
    for index, variable in concrete.x.items():
        name = symbols.byObject.get(id(variable))
        if name is not None:
            found[name] = index
    return found


def _highs(seconds: float | None, nodes: int) -> Any:
    """Return a silent HiGHS that proves to the end, in the same steps every time."""
    import highspy

    highs = highspy.Highs()
    options: dict[str, bool | int | float | str] = {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "random_seed": 0,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": _TOLERANCE,
        "mip_max_nodes": nodes,
    }
    if seconds is not None:
        options["time_limit"] = max(0.01, seconds)
    for name, value in options.items():
        highs.setOptionValue(name, value)
    return highs


def _answer(model: Model, objective: Linear, sense: str, highs: Any, columns: dict[str, int]) -> Answer:
    import highspy

    status = highs.getModelStatus()
    info = highs.getInfo()
    work = float(max(0, info.mip_node_count))
    # Every variable has two finite bounds, so what is "unbounded or infeasible" is infeasible.
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return Answer(Verdict.INFEASIBLE, work=work)
    values = _rounded(model, highs, columns) if info.primal_solution_status == _FEASIBLE else None
    if values is None or not satisfies(model, values):
        return Answer(Verdict.UNKNOWN, work=work)
    value = objective.value(values)
    closed = status == highspy.HighsModelStatus.kOptimal
    if closed and abs(value - highs.getObjectiveValue()) < 0.5:
        return Answer(Verdict.OPTIMAL, values, value, work)
    return Answer(Verdict.FEASIBLE, values, _outward(info.mip_dual_bound, sense), work)


_FEASIBLE = 2  # HiGHS' primal_solution_status of a feasible point


def _rounded(model: Model, highs: Any, columns: dict[str, int]) -> list[int]:
    """Return the nearest integers to a solution; a variable that no row and no objective names is at its least."""
    values = list(model.lower)
    for name, value in zip(highs.getLp().col_names_, highs.getSolution().col_value, strict=True):
        if name in columns:
            values[columns[name]] = round(value)
    return values


def _outward(bound: float, sense: str) -> int | None:
    """Return a bound as an integer, with slack for the solver's arithmetic; None where it found none."""
    if not math.isfinite(bound):
        return None
    slack = 1e-6 * max(1.0, abs(bound))
    return math.floor(bound + slack) if sense == "max" else math.ceil(bound - slack)


class Watch:
    """Ends a running search when the caller asks to stop."""

    def __init__(self, highs: Any, stop: Stop) -> None:
        self._highs = highs
        self._stop = stop
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)
        highs.HandleUserInterrupt = True

    def _wait(self) -> None:
        while not self._done.wait(_TICK):
            if self._stop:
                self._highs.cancelSolve()
                return

    def __enter__(self) -> None:
        if self._stop:
            self._highs.cancelSolve()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
