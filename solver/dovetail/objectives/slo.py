"""The tier on service levels: how much of the promised rates is not served (S2.8, S5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, Tier, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Spec, Workload


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
            slo = workload.slo
            if slo is None or not slo.rate:
                continue
            missing = part.model.integer(0, 1000)
            enough = Linear.of(missing, slo.rate)
            for accelerator, count in part.by_accelerator(workload).items():
                enough.add(count, 1000 * slo.rates.get(accelerator, 0))
            part.model.require(enough, lower=1000 * slo.rate)
            total.add_term(missing)
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


def served(view: View, workload: Workload) -> int:
    """Return the thousandths of a request per second that a service's admitted replicas sustain."""
    if workload.slo is None:
        return 0
    by_name, rates = view.spec.cluster.by_name, workload.slo.rates
    models = (by_name[view.places[replica].node].accelerator for replica in view.admitted(workload))
    return sum(rates.get(model or "", 0) for model in models)


def tiers(context: Context) -> Iterator[Tier]:
    """Yield the tier where any service promises a rate."""
    if any(workload.slo is not None and workload.slo.rate for workload in context.spec.workloads):
        yield Shortfall()
