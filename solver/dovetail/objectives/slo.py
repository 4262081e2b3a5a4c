"""The tier on service levels: how much of the promised rates is not served (S2.8, S5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, Tier, TierPart
from dovetail.placement import View
from dovetail.placement.served import served
from dovetail.rules import Context
from dovetail.rules.rates import shortfall
from dovetail.spec import Spec


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Thousandths of the rate asked for that are not served, rounded up, added up over services."""

    kind: ClassVar[str] = "slo"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "slo"
    sense: Sense = "min"
    unit: str = "thousandths"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of a variable per service that is at least what is missing of its rate."""
        total = Linear()
        for workload in part.changing(part.spec.workloads):
            total.add(shortfall(part, workload))
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up what is missing of each service's rate."""
        promised = ((w.slo, served(view, w)) for w in view.spec.workloads)
        return sum(slo.shortfall(rate) for slo, rate in promised if slo is not None)

    def limit(self, context: Context) -> int:
        """Everything may be served."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def tiers(context: Context) -> Iterator[Tier]:
    """Yield the tier where any service promises a rate."""
    if any(workload.slo is not None and workload.slo.rate for workload in context.spec.workloads):
        yield Shortfall()
