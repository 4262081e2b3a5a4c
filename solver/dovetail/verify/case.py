"""What every check looks at: the Spec, the plan, and the plan's rows looked up in the Spec."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

from dovetail.objectives import Tier, tiers_of
from dovetail.placement import Place, Places, View
from dovetail.placement.clients import told_settings
from dovetail.plan import Plan
from dovetail.rules import Context, context_of
from dovetail.rules.reserve import places_of
from dovetail.spec import Node, Policy, ReplicaId, Request, Role, Spec, Workload
from dovetail.verify.model import Finding, Found, Open
from dovetail.verify.unknown import counts_from_today, told_tiers

T = TypeVar("T")


class Row(NamedTuple):
    """A row of the plan whose replica and node exist, with what it asks of that node (`_asked_of`)."""

    replica: ReplicaId
    place: Place
    workload: Workload
    role: Role
    node: Node
    request: Request


@dataclass(frozen=True)
class Case:
    """A Spec and a plan to be checked against it; what is derived is derived once.

    `known` tells whether the Spec has the state that the plan started from; where it has not, nothing runs in it.
    """

    spec: Spec
    plan: Plan
    known: bool = True

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows that name a declared replica and a node of the cluster, in order."""
        found, known = [], dict[tuple[int, str | None], Request]()
        for replica, place in sorted(self.places.items()):
            role = role_of(self.spec, replica)
            node = self.spec.cluster.by_name.get(place.node)
            if role is not None and node is not None:
                key = id(role), node.accelerator
                if key not in known:
                    known[key] = _asked_of(node, role.request)
                found.append(Row(replica, place, self.spec.by_id[replica.workload], role, node, known[key]))
        return tuple(found)

    @cached_property
    def places(self) -> Places:
        """All places that the plan names, those held free under what stands for them."""
        named = {w.holds: w.id for w in self.spec.placeholders}
        held = {
            ReplicaId(named.get(policy, f"hold:{policy}"), "", index): place
            for policy, told in self.plan.held.items()
            for index, place in enumerate(told.held)
        }
        return {**self.plan.placements, **held}

    @cached_property
    def by_node(self) -> Mapping[str, tuple[Row, ...]]:
        """Rows by node name."""
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            found[row.node.name].append(row)
        return {name: tuple(rows) for name, rows in found.items()}

    @cached_property
    def by_workload(self) -> Mapping[str, tuple[Row, ...]]:
        """Rows by workload id."""
        found: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            found[row.workload.id].append(row)
        return {workload: tuple(rows) for workload, rows in found.items()}

    def gpus(self) -> Iterator[tuple[Node, int, tuple[Row, ...]]]:
        """Yield every GPU that a row names, with the rows on it."""
        for name, rows in self.by_node.items():
            on: defaultdict[int, list[Row]] = defaultdict(list)
            for row in rows:
                for index in row.place.gpus:
                    on[index].append(row)
            for index, held in sorted(on.items()):
                yield self.spec.cluster.by_name[name], index, tuple(held)

    @cached_property
    def context(self) -> Context:
        """The judged current state and the scopes of all policies."""
        return context_of(self.spec)

    @cached_property
    def view(self) -> View:
        """The placement as rules and tiers see it; where today is unknown, on GPUs cut and set as the plan tells."""
        if self.known:
            return self.by_places
        return self.by_places.as_told(self.plan.gpus, told_settings(self.spec.cluster, self.plan.shared))

    @cached_property
    def by_places(self) -> View:
        """The placement, on GPUs that are cut and set as today and the places have it."""
        searched = (policy.name for policy in self.spec.policies if policy.rule.searches)
        recovery = {name: self.plan.recovery.get(name, {}) for name in searched}
        return self.context.view(self.plan.placements, dict(places_of(self.plan.held, self.spec)), recovery)

    @cached_property
    def unchanged(self) -> View:
        """Today going on as it is, as rules and tiers see it, as far as it may."""
        today = self.context.today
        going = today.protected | today.preemptible
        return self.context.view({replica: place for replica, place in today.places.items() if replica in going})

    @cached_property
    def hard(self) -> tuple[Policy, ...]:
        """The hard policies."""
        return tuple(policy for policy in self.spec.policies if policy.enforcement.kind == "hard")

    def keeps_hard_policies(self, view: View) -> bool:
        """Tell whether a placement breaks no hard policy by more than today excuses (S4.5)."""
        context = self.context
        return all(
            count <= context.tolerated[policy.name].get(subject, 0)
            for policy in self.hard
            for subject, count in policy.rule.check(view, context.scopes[policy.name]).items()
        )

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers that the Spec is judged by; of those that depend on an unknown state, the ones told."""
        return tiers_of(self.context) if self.known else told_tiers(self.context, self.plan)

    @cached_property
    def unknown_values(self) -> frozenset[str]:
        """Names of the tiers whose value needs a state that is unknown."""
        if self.known:
            return frozenset()
        return frozenset(tier.name for tier in self.tiers if counts_from_today(tier, self.spec))

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Every tier's value on the placement, by name, as far as it can be known."""
        known = (tier for tier in self.tiers if tier.name not in self.unknown_values)
        return {tier.name: tier.measure(self.view, self.context) for tier in known}

    @property
    def has_plan(self) -> bool:
        """Tell whether the outcome comes with places."""
        return self.plan.outcome.status in ("optimal", "feasible")


def untold(
    case: Case, told: Mapping[str, T], found: Mapping[str, T], missing: T, shown: Callable[[T], str]
) -> Iterator[Found]:
    """Yield each GPU of which a plan tells something else than its places give; without the state, that is open.

    Parameters
    ----------
    missing : what is true of GPUs that are not told.
    """
    for gpu in sorted({*found, *told}):
        here, there = told.get(gpu, missing), found.get(gpu, missing)
        if here != there:
            words = f"is told as {shown(here)}, the places give {shown(there)}"
            yield Finding(gpu, words) if case.known else Open(gpu)


def role_of(spec: Spec, replica: ReplicaId) -> Role | None:
    """Return the role of a declared replica, None for one that the Spec does not have."""
    workload = spec.by_id.get(replica.workload)
    role = workload.by_role.get(replica.role) if workload else None
    return role if role is not None and replica.ordinal < role.replicas else None


def _asked_of(node: Node, request: Request) -> Request:
    """Return what a request asks of a node: of a share, what it takes of the node's accelerator (S2.2)."""
    share = request.share
    if share is None or not share.elsewhere:
        return request
    taken = {pace.accelerator: (pace.compute, pace.peak) for pace in share.elsewhere}
    compute, peak = taken.get(node.accelerator or "", (share.compute, share.peak))
    return replace(request, share=replace(share, compute=compute, peak=peak, elsewhere=()))
