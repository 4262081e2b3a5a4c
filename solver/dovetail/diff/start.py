"""Where a plan starts from (S6.5), and whether that is another plan."""

from __future__ import annotations

from dovetail.objectives import MEASURES
from dovetail.plan import Plan, current_of, state_digest
from dovetail.plan.digest import outside_digest
from dovetail.spec import Current, Spec

DISRUPTION = frozenset(measure().name for measure in MEASURES.values())
"""Names of the tiers that count from what runs today; a plan that starts from nothing has none of them."""


def starts_from(base: Plan, target: Plan, spec: Spec | None, *, stated: bool = False) -> bool:
    """Tell whether what the base places is what runs when the target is carried out.

    A plan that starts from nothing, or from a Placement document that is not at hand, does not say what runs: the
    first is read as the base's successor, the second is not. Nor is one from nothing where documents say, `stated`,
    that nothing runs.
    """
    state = current_of(base)
    if spec is not None and (stated or tells_start(spec, target)):
        return frozenset(spec.current.replicas) == frozenset(state.replicas)
    if target.current is not None:
        return target.current == state_digest(state)
    return not any(tier.name in DISRUPTION for tier in target.tiers)


def tells_start(spec: Spec, target: Plan) -> bool:
    """Tell whether a Spec's current state is the one that a plan was made from.

    It is one where no replica runs as well: GPUs that are cut or shared in a way are a state.
    """
    return spec.current != Current() and outside_digest(spec) == target.current
