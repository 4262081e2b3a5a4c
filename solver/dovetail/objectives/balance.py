"""Tiers on balance: how evenly gangs lie over the domains that they use, level by level (S5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Spec, Workload


@dataclass(frozen=True, slots=True)
class Balance:
    """By how many replicas the fullest domain of a level holds more of a workload than the emptiest that it uses.

    All workloads count whose replicas communicate or that prefer any level, each by itself.
    """

    kind: ClassVar[str] = "balance"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = True
    asks_idle: ClassVar[bool] = False

    level: str
    sense: Sense = "min"
    unit: str = "replicas"

    @property
    def name(self) -> str:
        """`balance[LEVEL]`."""
        return f"balance[{self.level}]"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum over workloads."""
        return Linear.total(_uneven(part, workload, self.level) for workload in part.changing(_subjects(part.spec)))

    def measure(self, view: View, context: Context) -> int:
        """Count each workload by domain."""
        total = 0
        for workload in _subjects(view.spec):
            found = view.tenants_of_domains(self.level, [workload], None)
            counts = [count for who in found.values() for count in who.values()]
            total += max(counts) - min(counts) if counts else 0
        return total

    def limit(self, context: Context) -> int:
        """Nothing is more even than even."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def tiers(context: Context) -> Iterator[Balance]:
    """Yield a tier per level at which domains count, outermost first."""
    for level in context.spec.counted_levels:
        yield Balance(level)


def _subjects(spec: Spec) -> list[Workload]:
    return [workload for workload in spec.workloads if workload.gathers]


def _uneven(part: TierPart, workload: Workload, level: str) -> Linear:
    """Return the most replicas in a domain less the fewest in one that holds any, 0 where none is admitted."""
    model, counts = part.model, []
    for count in part.counts(workload, level).values():
        low, high = model.range_of(count)
        if high > 0:
            counts.append((count, low, min(high, workload.replicas)))
    if len(counts) < 2:
        return Linear()
    limit = max(high for _, _, high in counts)
    most, fewest = Linear.of(model.integer(0, limit)), Linear.of(model.integer(0, limit))
    for count, low, high in counts:
        model.require(most.minus(count), lower=0)
        if low > 0:
            model.require(fewest.minus(count), upper=0)
            continue
        here = model.boolean()
        model.require(count.minus(Linear.of(here, high)), upper=0)
        model.require(fewest.minus(count).add(Linear.of(here, limit)), upper=limit)
    found = most.minus(fewest)
    model.require(found, lower=0)
    return found
