"""Bounds of whole fleets, as tests ask for them."""

from __future__ import annotations

from dovetail.engine.fleet.fleet_bounds import FleetBounds
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Spec


def bound_by_kinds(spec: Spec) -> tuple[int, tuple[str, ...]]:
    """Return the bound on what is admitted first by counts per kind of node, and what it forgets."""
    problem = compile_problem(context_of(spec))
    bounds, tier = FleetBounds(problem, Stop()), next(tier for tier in problem.tiers if tier.kind == "admitted")
    bounds.prove(tier, {})
    best = bounds.best(tier, {})
    assert best is not None
    return best[0], best[1].fleet.relaxed
