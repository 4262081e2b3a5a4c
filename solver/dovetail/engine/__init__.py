"""The engine: from a Spec to a proved plan. The only place that imports a solver, and only when asked to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.engine.guarded.guard import solve_guarded
    from dovetail.engine.ladder import solve

__all__ = ["solve", "solve_guarded"]


def __getattr__(name: str) -> Any:
    """Import the solvers when `solve` is first asked for."""
    if name == "solve":
        from dovetail.engine.ladder import solve

        return solve
    if name == "solve_guarded":  # the process that calls it needs no solver
        from dovetail.engine.guarded.guard import solve_guarded

        return solve_guarded
    raise AttributeError(name)
