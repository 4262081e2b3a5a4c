"""A base plan as the current state (S6.5)."""

from __future__ import annotations

from dovetail.plan.model import Plan
from dovetail.spec import Current, PresentReplica


def current_of(plan: Plan) -> Current:
    """Return what would run today if a plan were carried out; how long it has run is not known."""
    ordered = sorted(plan.placements.items())
    present = tuple(PresentReplica(replica, *place) for replica, place in ordered)
    return Current(present, from_outside=True, gpus=dict(plan.gpus), all_gpus=True, settings=dict(plan.shared))
