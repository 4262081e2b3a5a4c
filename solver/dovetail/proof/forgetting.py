"""What a fleet in counts per kind of node forgets: rules that it does not count in full, and demands (S5.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dovetail.placement.clients import equal_parts
from dovetail.plan import relaxed
from dovetail.spec import Policy

if TYPE_CHECKING:
    from dovetail.proof.fleet import FleetModel


def forgotten(fleet: FleetModel) -> Iterator[str]:
    """Yield what a model forgets: what no document names first, then policies by name."""
    policies = (p for p in fleet.original.spec.policies if p.enforcement.kind != "audit" and _forgets(fleet, p))
    yield from sorted(_unnamed(fleet))
    yield from sorted(policy.name for policy in policies)


def _unnamed(fleet: FleetModel) -> Iterator[str]:
    shares = [s.request.share for s in fleet.problem.shapes if s.request.share]
    by_parts = [equal_parts(node) for node in fleet.problem.nodes]
    yield relaxed.NODES
    if any(kind.node.islands or kind.node.sockets for kind in fleet.kinds):
        yield relaxed.INSIDES
    if any(workload.atomic and workload.mix != "any" for workload in fleet.original.spec.workloads):
        yield relaxed.MIX
    if fleet.original.context.today.places:
        yield relaxed.TODAY
    if not fleet.tells_modes and any(w.slo is not None and w.slo.by_profile for w in fleet.original.spec.workloads):
        yield relaxed.INSTANCES
    if any(share.memory is not None for share in shares) and not (fleet.tells_settings and all(by_parts)):
        yield relaxed.MEMORY
    if shares and any(by_parts) and not fleet.tells_settings:
        yield relaxed.MODES


def _forgets(fleet: FleetModel, policy: Policy) -> bool:
    """Tell whether any part of a policy is not in a model."""
    if policy.name in fleet.untold or policy.rule.needs_current:
        return True
    if policy.rule.closes():
        return not _tells_modes(fleet, policy)
    terms = policy.rule.node_terms(fleet.context.scopes[policy.name])
    if (terms.apart and not fleet.sided) or (terms.one_profile and not fleet.tells_settings):
        return True
    return policy.name in fleet.inside and not (terms and terms.all and policy.enforcement.kind == "hard")


def _tells_modes(fleet: FleetModel, policy: Policy) -> bool:
    """Tell whether sides, and rows on whole GPUs, say all that a policy does about modes."""
    hard = policy.enforcement.kind == "hard" and not fleet.context.tolerated[policy.name]
    roles = (role for workload in fleet.context.scopes[policy.name].workloads for role in workload.roles)
    profiles = "mig" in policy.rule.closes() and any(role.request.mig for role in roles)
    return fleet.tells_settings and hard and not profiles
