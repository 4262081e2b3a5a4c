"""Tiers on topology: over how many domains the replicas of a workload spread, level by level (S5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Node, Role, Spec, Workload
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS


@dataclass(frozen=True, slots=True)
class Span:
    """The domains of a level that workloads span, less one each.

    All workloads count whose replicas communicate or that prefer any level; with `preferred`, those alone that prefer
    this level. Both together let a workload that says where it should be come before one that would only gain by it.
    """

    kind: ClassVar[str] = "topology"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = True
    asks_idle: ClassVar[bool] = False

    level: str
    preferred: bool = False
    sense: Sense = "min"
    unit: str = "domains"

    @property
    def name(self) -> str:
        """`topology[LEVEL]`, or `preferred[LEVEL]`."""
        return f"{'preferred' if self.preferred else 'topology'}[{self.level}]"

    def subjects(self, context: Context) -> list[tuple[Workload, ...]]:
        """Return what counts: each workload by itself, but one set of those that policies keep together.

        A workload of a set counts by itself as well where it says something of its topology.
        """
        if self.level in INNER_LEVELS:
            return [(w,) for w in context.spec.workloads if w.topology and w.topology.prefer == self.level]
        counting = [workload for workload in context.spec.workloads if workload.gathers]
        if self.preferred:
            return [(w,) for w in counting if w.topology and w.topology.prefer == self.level]
        ids = {workload.id for workload in counting}
        sets = [group for group in context.sets if any(w.id in ids or w.communicates for w in group)]
        together = {workload.id for group in sets for workload in group}
        return [*sets, *((w,) for w in counting if w.id not in together or w.topology is not None)]

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of domains spanned less one."""
        subjects = self.subjects(part.context)
        changing = {workload.id for workload in part.changing({w.id: w for who in subjects for w in who}.values())}
        return Linear.total(
            _spanned(part, who, self.level) for who in subjects if any(workload.id in changing for workload in who)
        )

    def measure(self, view: View, context: Context) -> int:
        """Count the domains of each subject."""
        spans = (len(view.tenants_of_domains(self.level, who, None)) for who in self.subjects(context))
        return sum(max(0, span - 1) for span in spans)

    def limit(self, context: Context) -> int:
        """Nothing spans fewer domains than one."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def tiers(context: Context) -> Iterator[Span]:
    """Yield the tiers of a Spec: per level, outermost first, those who prefer it, then all."""
    for level in context.spec.counted_levels:
        for tier in (Span(level, preferred=True), Span(level)):
            if tier.subjects(context):
                yield tier
    if "topology" in context.spec.objective.tiers:
        for level in context.spec.preferred_inside:
            yield Span(level, preferred=True)


def _spanned(part: TierPart, who: Sequence[Workload], level: str) -> Linear:
    """Return the domains of a level that some workloads span together, less one where any of them is admitted."""
    total, most = Linear(), []
    for count in _held(part, who, level).values():
        low, high = part.model.range_of(count)
        if low > 0:
            total.constant += 1
        elif high > 0:
            high = min(high, sum(workload.replicas for workload in who))
            flag = part.model.boolean()
            part.model.require(count.minus(Linear.of(flag, high)), upper=0)
            total.add_term(flag)
            most.append(high)
    if total.constant:
        return total.plus(-1)
    if not most:
        return _least_nodes(part, who) if level == NODE_LEVEL else Linear()
    here = part.model.boolean()
    fewest = 1
    everywhere = level not in INNER_LEVELS and not part.spec.cluster.homeless(level)
    if everywhere:  # else replicas may be in no domain, or in several, and nothing more is known of the fewest
        fewest = _fewest(most, _bind(part, who, here))
    part.model.require(total.minus(Linear.of(here, fewest)), lower=0)
    return total.minus(Linear.of(here))


def _least_nodes(part: TierPart, who: Sequence[Workload]) -> Linear:
    """Return less one the fewest nodes that hold some workloads where any is admitted, for a model without nodes."""
    here = part.model.boolean()
    least = _bind(part, who, here)
    most = sum(max((_room(node, r) for node in part.free_nodes()), default=0) for w in who for r in w.roles)
    return Linear.of(here, max(0, -(-least // most) - 1)) if most else Linear()


def _room(node: Node, role: Role) -> int:
    """Return how many replicas of a role an empty node has room for, or more."""
    request = role.request
    asked = [(len(node.healthy_gpus()), request.gpus), (node.cpu, request.cpu), (node.memory, request.memory)]
    return min([role.replicas, *(free // amount for free, amount in asked if amount)])


def _held(part: TierPart, who: Sequence[Workload], level: str) -> Mapping[str, Linear]:
    """Return how many replicas of some workloads each domain of a level holds."""
    if len(who) == 1:
        return part.reaching(who[0], level)
    held: dict[str, Linear] = {}
    for workload in who:
        for path, count in part.counts(workload, level).items():
            held.setdefault(path, Linear()).add(count)
    return held


def _bind(part: TierPart, who: Sequence[Workload], here: int) -> int:
    """Let a variable be 1 where any of some workloads is admitted; return the fewest replicas there are then."""
    admitted = Linear.total(part.admitted(workload) for workload in who)
    least = max(1, min(workload.min_replicas for workload in who))
    part.model.require(admitted.minus(Linear.of(here, sum(workload.replicas for workload in who))), upper=0)
    part.model.require(admitted.minus(Linear.of(here, least)), lower=0)
    return least


def _fewest(most: Sequence[int], wanted: int) -> int:
    """Return how many domains it takes at the least that hold at most so many each."""
    held = 0
    for position, size in enumerate(sorted(most, reverse=True)):
        if held >= wanted:
            return position
        held += size
    return len(most)
