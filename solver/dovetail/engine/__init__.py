"""The engine: from a Spec to a proved plan. The only place that imports a solver, and only when asked to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.engine.ladder import solve

__all__ = ["solve"]


def __getattr__(name: str) -> Any:
    """Import the solvers when `solve` is first asked for."""
    if name == "solve":
        from dovetail.engine.ladder import solve

        return solve
    raise AttributeError(name)
