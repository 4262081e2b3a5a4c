"""Tiers on topology: over how many domains the replicas of a workload spread, level by level (S5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Spec, Workload


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

    level: str
    preferred: bool = False
    sense: Sense = "min"
    unit: str = "domains"

    @property
    def name(self) -> str:
        """`topology[LEVEL]`, or `preferred[LEVEL]`."""
        return f"{'preferred' if self.preferred else 'topology'}[{self.level}]"

    def subjects(self, workloads: Iterable[Workload]) -> list[Workload]:
        """Return those workloads that count."""
        found = [workload for workload in workloads if workload.gathers]
        return [w for w in found if w.topology and w.topology.prefer == self.level] if self.preferred else found

    def encode(self, part: TierPart) -> Linear:
        """Return the sum over workloads of domains spanned less one."""
        return Linear.total(_spanned(part, w, self.level) for w in self.subjects(part.changing(part.spec.workloads)))

    def measure(self, view: View, context: Context) -> int:
        """Count the domains of each workload."""
        return sum(_measured(view, workload, self.level) for workload in self.subjects(view.spec.workloads))

    def limit(self, context: Context) -> int:
        """Nothing spans fewer domains than one."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def tiers(context: Context) -> Iterator[Span]:
    """Yield the tiers of a Spec: per level, outermost first, those who prefer it, then all."""
    for level in context.spec.counted_levels:
        preferred = Span(level, preferred=True)
        if preferred.subjects(context.spec.workloads):
            yield preferred
        yield Span(level)


def _measured(view: View, workload: Workload, level: str) -> int:
    return max(0, len(view.tenants_of_domains(level, [workload], None)) - 1)


def _spanned(part: TierPart, workload: Workload, level: str) -> Linear:
    """Return the domains of a level that a workload spans, less one where any of it is admitted."""
    total, most = Linear(), []
    for count in part.counts(workload, level).values():
        low, high = part.model.range_of(count)
        if low > 0:
            total.constant += 1
        elif high > 0:
            high = min(high, workload.replicas)
            flag = part.model.boolean()
            part.model.require(count.minus(Linear.of(flag, high)), upper=0)
            total.add_term(flag)
            most.append(high)
    if total.constant:
        return total.plus(-1)
    if not most:
        return Linear()
    if part.spec.cluster.homeless(level):  # where replicas may be in no domain, the fewest are none
        here, fewest = part.model.boolean(), 1
    else:
        here, fewest = _admitted(part, workload), _fewest(most, max(1, workload.min_replicas))
    part.model.require(total.minus(Linear.of(here, fewest)), lower=0)
    return total.minus(Linear.of(here))


def _admitted(part: TierPart, workload: Workload) -> int:
    """Return a variable that is 1 where any of a workload is admitted."""
    here, admitted = part.model.boolean(), part.admitted(workload)
    part.model.require(admitted.minus(Linear.of(here, workload.replicas)), upper=0)
    part.model.require(admitted.minus(Linear.of(here, max(1, workload.min_replicas))), lower=0)
    return here


def _fewest(most: Sequence[int], wanted: int) -> int:
    """Return how many domains it takes at the least that hold at most so many each."""
    held = 0
    for position, size in enumerate(sorted(most, reverse=True)):
        if held >= wanted:
            return position
        held += size
    return len(most)
