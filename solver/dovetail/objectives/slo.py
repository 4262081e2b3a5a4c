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
from dovetail.rules.rates import absent, shortfall
from dovetail.spec import Spec, Workload


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Thousandths that are missing of promised rates and replicas, rounded up, weighted by class and added up."""

    kind: ClassVar[str] = "slo"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    name: str = "slo"
    sense: Sense = "min"
    unit: str = "thousandths"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of a variable per promise that is at least what is missing of it."""
        total = Linear()
        for workload in part.changing(part.spec.workloads):
            if (slo := workload.slo) is not None:
                total.add(shortfall(part, workload, slo.owed), slo.floors.weight)
                total.add(absent(part, workload), slo.floors.weight)
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up what is missing of each promise."""
        return sum(_missing(view, workload) for workload in view.spec.workloads)

    def limit(self, context: Context) -> int:
        """Everything may be kept but deadlines that are over."""
        return sum(w.slo.floors.weight * 1000 for w in context.spec.workloads if w.slo is not None and w.slo.late)

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def _missing(view: View, workload: Workload) -> int:
    slo = workload.slo
    if slo is None:
        return 0
    return slo.missing(served(view, workload), len(view.admitted(workload)), workload.replicas)


def tiers(context: Context) -> Iterator[Tier]:
    """Yield the tier where anything is promised."""
    promises = ((w.slo, w.replicas) for w in context.spec.workloads if w.slo is not None)
    if any(slo.owed or slo.late or slo.least(replicas) for slo, replicas in promises):
        yield Shortfall()
