"""CP-SAT as a backend of the solver-neutral model.

Built through the proto in bulk, solved with fixed seed and workers, stopped by deterministic work so that equal
models give equal answers. Objectives are recomputed in exact integers from the solution, never read back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from ortools.sat.python import cp_model

from dovetail.engine.solvers.answer import Answer, Effort, Verdict
from dovetail.linear import Linear, Literal, Model
from dovetail.progress import Stop

_WIDE = 1 << 60
_MOST_STEPS = 40  # around a solution: in tiny models they take next to no work, and nothing tells that none is better


class CpSat:
    """A model handed to CP-SAT once and solved for several objectives, rows added in between."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._cp = cp_model.CpModel()
        self._rows = 0
        self._variables = 0
        self._sync()

    @property
    def native(self) -> cp_model.CpModel:
        """The model as CP-SAT has it: variables and constraints in the order of variables and rows."""
        return self._cp

    def _sync(self) -> None:
        """Hand over the variables and rows that were added since the last time."""
        proto = self._cp.proto
        model = self.model
        for index in range(self._variables, len(model.lower)):
            proto.variables.add().domain.extend([model.lower[index], model.upper[index]])
        self._variables = len(model.lower)
        for row in model.rows[self._rows :]:
            constraint = proto.constraints.add()
            constraint.linear.vars.extend(row.variables)
            constraint.linear.coeffs.extend(row.coefficients)
            low = -_WIDE if row.lower is None else row.lower
            constraint.linear.domain.extend([low, _WIDE if row.upper is None else row.upper])
            if row.when is not None:
                constraint.enforcement_literal.extend([_literal(row.when)])
        self._rows = len(model.rows)

    def solve(
        self,
        objective: Linear,
        sense: str,
        effort: Effort,
        hint: Mapping[int, int] | None,
        stop: Stop,
        found: list[list[int]] | None = None,
    ) -> Answer:
        """Optimise one expression; the bound is exact for the integer objective.

        Parameters
        ----------
        found : takes the variable values of every improving solution on the way, where given.
        """
        if self.model.infeasible:
            return Answer(Verdict.INFEASIBLE)
        self._sync()
        sign = -1 if sense == "max" else 1
        self._set_objective(objective, sign)
        self._set_hint(hint or {})
        solver = _solver(effort)
        with _Watch(solver, stop):
            status = solver.solve(self._cp, None if found is None else _Collector(len(self.model.lower), found))
        response = solver.response_proto
        if int(status) not in _VERDICTS:
            raise AssertionError(f"the solver does not take a model: {self._cp.validate()}")
        verdict = _VERDICTS[int(status)]
        values = list(response.solution) if verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE) else None
        bound = None
        if verdict in (Verdict.OPTIMAL, Verdict.FEASIBLE) and values is not None:
            bound = sign * response.inner_objective_lower_bound + objective.constant
            if verdict is Verdict.OPTIMAL:
                bound = objective.value(values)
        return Answer(verdict, values, bound, response.deterministic_time)

    def _set_objective(self, objective: Linear, sign: int) -> None:
        target = self._cp.proto.objective
        target.vars.clear()
        target.coeffs.clear()
        terms = [(v, sign * c) for v, c in objective.terms.items() if c]
        target.vars.extend([v for v, _ in terms])
        target.coeffs.extend([c for _, c in terms])
        target.scaling_factor = 1

    def _set_hint(self, hint: Mapping[int, int]) -> None:
        target = self._cp.proto.solution_hint
        target.vars.clear()
        target.values.clear()
        target.vars.extend(list(hint))
        target.values.extend(list(hint.values()))


_VERDICTS = {
    int(cp_model.OPTIMAL): Verdict.OPTIMAL,
    int(cp_model.FEASIBLE): Verdict.FEASIBLE,
    int(cp_model.INFEASIBLE): Verdict.INFEASIBLE,
    int(cp_model.UNKNOWN): Verdict.UNKNOWN,
}


def _literal(literal: Literal) -> int:
    return literal.variable if literal.positive else -literal.variable - 1


def _solver(effort: Effort) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers = effort.workers
    parameters.random_seed = effort.seed
    parameters.max_deterministic_time = effort.work
    parameters.catch_sigint_signal = False
    parameters.linearization_level = 2  # finds solutions of counting models several times sooner (measured)
    if effort.around:  # its neighbourhoods in turn; one worker without this does but search its tree
        parameters.interleave_search = parameters.use_lns_only = True
        parameters.max_num_deterministic_batches = _MOST_STEPS
    if effort.seconds is not None:
        parameters.max_time_in_seconds = max(0.01, effort.seconds)
    return solver


class _Collector(cp_model.CpSolverSolutionCallback):
    """Keeps every improving solution."""

    def __init__(self, variables: int, found: list[list[int]]) -> None:
        super().__init__()
        self._variables = variables
        self._found = found

    def on_solution_callback(self) -> None:
        """Keep the solution at hand."""
        self._found.append(list(self.response_proto.solution)[: self._variables])


class _Watch:
    """Ends a running search when the caller asks to stop."""

    def __init__(self, solver: cp_model.CpSolver, stop: Stop) -> None:
        self._solver = solver
        self._stop = stop
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._wait, daemon=True)

    def _wait(self) -> None:
        while not self._done.wait(0.1):
            if self._stop:
                self._solver.stop_search()
                return

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
