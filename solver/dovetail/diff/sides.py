"""One plan seen by workload, as far as a difference needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.placement import Place
from dovetail.plan.model import AdmissionResult, Plan
from dovetail.spec import ReplicaId, Spec

PlacesById = Mapping[ReplicaId, Place]


@dataclass(frozen=True, slots=True)
class Side:
    """What a plan says of one workload.

    Parameters
    ----------
    known
        Whether the plan knows the workload at all: it has places, or is listed as not fully admitted.
    result
        What is not full, None for a workload that is admitted in full.
    """

    places: PlacesById
    result: AdmissionResult | None
    known: bool

    @property
    def declared(self) -> int:
        """Return how many replicas are declared; those of a full workload are its places."""
        return len(self.places) if self.result is None else max(self.result.of, len(self.places))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return why not more is admitted."""
        return () if self.result is None else self.result.reasons


def sides(plan: Plan) -> dict[str, Side]:
    """Return what a plan says of each workload that it knows, by id."""
    places: dict[str, dict[ReplicaId, Place]] = {name: {} for name in plan.admitted}
    for replica, place in plan.placements.items():
        places.setdefault(replica.workload, {})[replica] = place
    return {name: Side(found, plan.admitted.get(name), True) for name, found in places.items()}


NOTHING = Side({}, None, False)


def still_declared(replica: ReplicaId, spec: Spec | None, target: Side, base: Side) -> bool:
    """Tell whether the target's documents still declare a replica.

    Without the documents the plan's counts decide: a workload that is admitted in full declares what it has, one
    that is not declares its indices up to its count. For a workload of several roles that is a guess.
    """
    if spec is not None:
        workload = spec.by_id.get(replica.workload)
        role = workload.by_role.get(replica.role) if workload else None
        return role is not None and replica.ordinal < role.replicas
    if not target.known or target.result is None:
        return False
    if target.declared >= base.declared:
        return True
    return replica.ordinal < target.declared
