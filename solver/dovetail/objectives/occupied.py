"""The tiers on what is occupied: slices of services whose hosts the planner chooses, and GPUs (S2.8, S5.1).

They stand last, so that of plans which are as good in everything else the one is chosen that takes least. A slice is
a seventh of a GPU here; an instance counts as the share of its GPU's compute slices that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, Tier, TierPart
from dovetail.placement import View
from dovetail.placement.hosts import slices
from dovetail.placement.served import hosts
from dovetail.rules import Context
from dovetail.spec import Spec, Workload


@dataclass(frozen=True, slots=True)
class Slices:
    """Thousandths of slices that the replicas of services are on whose number or hosts the planner chooses."""

    kind: ClassVar[str] = "occupied"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "occupied.slices"
    sense: Sense = "min"
    unit: str = "milli-slices"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of slices over the hosts of the services' replicas."""
        total = Linear()
        for workload in part.changing(_chosen(part.spec)):
            for host, count in part.by_host(workload).items():
                total.add(count, slices(part.spec, workload.roles[0].request, host))
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up the slices of the services' replicas."""
        return sum(
            count * slices(view.spec, workload.roles[0].request, host)
            for workload in _chosen(view.spec)
            for host, count in hosts(view, workload).items()
        )

    def limit(self, context: Context) -> int:
        """Nothing takes less than nothing."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


@dataclass(frozen=True, slots=True)
class GpusInUse:
    """GPUs in use, by whatever work."""

    kind: ClassVar[str] = "occupied"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = True
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "occupied.gpus"
    sense: Sense = "min"
    unit: str = "GPUs"

    def encode(self, part: TierPart) -> Linear:
        """Return the part's GPUs in use."""
        return Linear.total(part.gpus_used(node.name) for node in part.free_nodes())

    def measure(self, view: View, context: Context) -> int:
        """Count the GPUs that anything is on."""
        return len({(place.node, index) for place in view.places.values() for index in place.gpus})

    def limit(self, context: Context) -> int:
        """Nothing uses less than no GPU."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def _chosen(spec: Spec) -> list[Workload]:
    """Return the services of which the planner chooses the number of replicas, or on which instances they are."""
    return [w for w in spec.workloads if w.slo is not None and (w.slo.open or w.slo.by_profile)]


def tiers(context: Context) -> Iterator[Tier]:
    """Yield the tiers where the planner chooses what any service takes."""
    if _chosen(context.spec):
        yield Slices()
        yield GpusInUse()
