"""The whole meaning of a project's documents, ready to be compiled or checked against."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from dovetail.spec.cluster import NODE_LEVEL, Accelerator, Cluster
from dovetail.spec.current import Current
from dovetail.spec.inside import INNER_LEVELS
from dovetail.spec.objective import Objective
from dovetail.spec.options import Options
from dovetail.spec.permits import with_leans, with_promises
from dovetail.spec.policy import Policy, Waiver
from dovetail.spec.workload import Workload

ALWAYS = "always"


@dataclass(frozen=True)
class Spec:
    """Everything that a plan depends on (S6.2); equal Specs give equal plans.

    Parameters
    ----------
    workloads : sorted by id (bytes), so that the order of documents means nothing.
    policies, waivers : sorted by name.
    as_of : the date that waivers are judged at.
    options : limits of the command line; `policies` holds what they mean.
    phases : always the single phase `always` in this version (S2.10).
    """

    name: str
    cluster: Cluster
    accelerators: Mapping[str, Accelerator]
    workloads: tuple[Workload, ...]
    policies: tuple[Policy, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    objective: Objective = field(default_factory=Objective)
    current: Current = field(default_factory=Current)
    as_of: dt.date | None = None
    phases: tuple[str, ...] = (ALWAYS,)
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        """Write what policies permit onto nodes and shares, whatever was there."""
        cluster, workloads = with_leans(
            self.cluster, self.workloads, self.policies, self.matched, self.objective.tiers
        )
        object.__setattr__(self, "cluster", with_promises(cluster, self.policies))
        object.__setattr__(self, "workloads", workloads)

    @cached_property
    def declared(self) -> Mapping[str, Workload]:
        """Workloads by id, those alone that documents declare."""
        return {workload.id: workload for workload in self.workloads}

    @cached_property
    def by_id(self) -> Mapping[str, Workload]:
        """Workloads by id, what stands for held places included."""
        return {workload.id: workload for workload in (*self.workloads, *self.placeholders)}

    @cached_property
    def placeholders(self) -> tuple[Workload, ...]:
        """What stands for the places that policies hold free (S4.7), as workloads that are nobody's work."""
        binding = (policy for policy in self.policies if policy.enforcement.kind != "audit")
        return tuple(found for policy in binding for found in policy.rule.placeholders(policy))

    @cached_property
    def everything(self) -> tuple[Workload, ...]:
        """The workloads and what stands for held places, always the same collection."""
        return (*self.workloads, *self.placeholders)

    @cached_property
    def bands(self) -> tuple[int, ...]:
        """Lowest priority of each band, highest band first (S5.1)."""
        if self.objective.bands:
            return tuple(sorted(self.objective.bands, reverse=True))
        return tuple(sorted({workload.priority for workload in self.workloads}, reverse=True))

    @cached_property
    def uses_mig(self) -> bool:
        """Whether anything may land on a MIG instance."""
        return any(role.request.may_use_mig for workload in self.everything for role in workload.roles)

    def band_of(self, workload: Workload) -> int:
        """Return the band of a workload: the highest band its priority reaches, else the lowest band."""
        for band in self.bands:
            if workload.priority >= band:
                return band
        return self.bands[-1] if self.bands else 0  # places may be held where nothing is to run

    @cached_property
    def demanded_levels(self) -> frozenset[str]:
        """Levels at which any workload demands to be together (S2.5)."""
        return frozenset(level for w in self.workloads if w.topology is not None for level in w.topology.levels)

    @cached_property
    def asked_inside(self) -> frozenset[str]:
        """Levels inside nodes that any replica must, or should, keep within."""
        demanded = {level for w in self.everything for role in w.roles for level in role.request.inside}
        ruled = {policy.rule.inner_level for policy in self.policies} - {""}
        return frozenset(demanded | ruled | set(self.preferred_inside))

    @cached_property
    def preferred_inside(self) -> tuple[str, ...]:
        """Levels inside nodes that any workload prefers, the wider first."""
        wished = {w.topology.prefer for w in self.workloads if w.topology is not None}
        return tuple(level for level in reversed(INNER_LEVELS) if level in wished)

    @property
    def _keeps_sets(self) -> bool:
        """Tell whether policies keep workloads together while one communicates, be it of one replica."""
        talking = any(workload.communicates for workload in self.workloads)
        return talking and any(p.rule.keeps_sets and p.enforcement.kind != "audit" for p in self.policies)

    @cached_property
    def counted_levels(self) -> tuple[str, ...]:
        """Levels at which tiers count domains, outermost first: where there are several, and any matter (S5.1)."""
        counted = any(workload.gathers for workload in self.workloads) or self._keeps_sets
        if not {"topology", "balance"}.intersection(self.objective.tiers) or not counted:
            return ()
        return tuple(level for level in self.cluster.levels if len(self.cluster.members(level)) > 1)

    @cached_property
    def told_levels(self) -> tuple[str, ...]:
        """Levels wider than a node at which nodes differ for gangs: those demanded and those counted, in order."""
        told = {*self.demanded_levels, *self.counted_levels} - {NODE_LEVEL}
        return tuple(level for level in self.cluster.levels if level in told)

    def active_waivers(self, policy: str) -> tuple[Waiver, ...]:
        """Return the waivers that lift a policy on the Spec's date."""
        if self.as_of is None:
            return ()
        return tuple(w for w in self.waivers if w.policy == policy and w.active(self.as_of))

    def expired_waivers(self) -> tuple[Waiver, ...]:
        """Return the waivers that no longer lift anything on the Spec's date (S4.3)."""
        if self.as_of is None:
            return ()
        return tuple(waiver for waiver in self.waivers if not waiver.active(self.as_of))

    def matched(self, policy: Policy) -> tuple[Workload, ...]:
        """Return the workloads a policy applies to, waived ones left out."""
        waivers = self.active_waivers(policy.name)
        return tuple(
            workload
            for workload in self.workloads
            if policy.workloads.selects(workload)
            and not any(waiver.workloads.selects(workload) for waiver in waivers)
        )
