"""Which policies apply, to whom, and what lifts them, from the Spec and the documents alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dovetail.build import Origin, Origins
from dovetail.spec import Policy, Spec, Waiver, Workload
from dovetail.spec.policy import WaiverState


@dataclass(frozen=True, slots=True)
class LiftedBy:
    """A waiver of a policy as it stands on the Spec's date, with the ids of the matched workloads it selects."""

    waiver: Waiver
    state: WaiverState
    workloads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Listed:
    """One policy that applies.

    Parameters
    ----------
    origin : where it is written; None for one that no document holds.
    matched : ids of the workloads that it selects, waived ones included.
    waived : ids of those of them that a waiver lifts it for on the Spec's date.
    nodes : how many nodes it speaks of, None where it speaks of all.
    """

    policy: Policy
    origin: Origin | None
    matched: tuple[str, ...]
    waived: tuple[str, ...] = ()
    nodes: int | None = None
    waivers: tuple[LiftedBy, ...] = ()

    @property
    def bound(self) -> int:
        """How many workloads must keep it."""
        return len(self.matched) - len(self.waived)


@dataclass(frozen=True)
class PolicyList:
    """The policies of a project, or those that select one workload (`workload`)."""

    spec: Spec
    origins: Origins
    policies: tuple[Listed, ...]
    workload: str | None = None

    @cached_property
    def by_name(self) -> dict[str, Listed]:
        """Policies by name."""
        return {listed.policy.name: listed for listed in self.policies}


def listing(spec: Spec, origins: Origins, workload: str | None = None) -> PolicyList:
    """Return the policies of a Spec in order of their names.

    Parameters
    ----------
    workload : the id of a workload; only policies that select it are listed.
    """
    found = (_listed(spec, policy, origins.applied.get(policy.name)) for policy in spec.policies)
    listed = tuple(each for each in found if workload is None or workload in each.matched)
    return PolicyList(spec, origins, listed, workload)


def _listed(spec: Spec, policy: Policy, origin: Origin | None) -> Listed:
    selected = tuple(workload for workload in spec.workloads if policy.workloads.selects(workload))
    bound = {workload.id for workload in spec.matched(policy)}
    nodes = policy.nodes
    return Listed(
        policy=policy,
        origin=origin,
        matched=tuple(workload.id for workload in selected),
        waived=tuple(workload.id for workload in selected if workload.id not in bound),
        nodes=None if nodes is None else sum(nodes.selects(node) for node in spec.cluster.nodes),
        waivers=tuple(_lifted(spec, w, selected) for w in spec.waivers if w.policy == policy.name),
    )


def _lifted(spec: Spec, waiver: Waiver, selected: tuple[Workload, ...]) -> LiftedBy:
    state = waiver.state(spec.as_of) if spec.as_of is not None else "active"
    return LiftedBy(waiver, state, tuple(w.id for w in selected if waiver.workloads.selects(w)))
