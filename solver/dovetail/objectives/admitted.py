"""Tiers on what is admitted: value of GPU work, milli-cores of work without GPUs, and running work kept (S5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.rules import Context
from dovetail.spec import Role, Spec, Workload


def _roles(spec: Spec, workloads: Iterable[Workload], band: int, *, gpu: bool) -> Iterator[tuple[Workload, Role]]:
    for workload in workloads:
        if spec.band_of(workload) == band:
            for role in workload.roles:
                if bool(role.request.gpu_count) == gpu:
                    yield workload, role


@dataclass(frozen=True, slots=True)
class Admitted:
    """The value of the admitted replicas of a priority band, of those with GPUs or of those without."""

    kind: ClassVar[str] = "admitted"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    band: int
    gpu: bool = True
    sense: Sense = "max"

    @property
    def name(self) -> str:
        """`admitted[P]`, or `admitted-cpu[P]` for replicas without GPU."""
        return f"{'admitted' if self.gpu else 'admitted-cpu'}[{self.band}]"

    @property
    def unit(self) -> str:
        """Value is in milli-GPU, or milli-cores without GPUs, unless documents say otherwise."""
        return "milli-GPU" if self.gpu else "milli-core"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of value times admitted replicas."""
        return part.worth(_roles(part.spec, part.changing(part.spec.workloads), self.band, gpu=self.gpu))

    def measure(self, view: View, context: Context) -> int:
        """Add up the values of the admitted replicas."""
        roles = _roles(view.spec, view.spec.workloads, self.band, gpu=self.gpu)
        return sum(role.value * view.count(workload, role) for workload, role in roles)

    def limit(self, context: Context) -> int:
        """Return the value of everything that asks."""
        return sum(
            r.value * r.replicas for _, r in _roles(context.spec, context.spec.workloads, self.band, gpu=self.gpu)
        )

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


@dataclass(frozen=True, slots=True)
class Retained:
    """The running preemptible work of a band that stays admitted, by value, each replica at least 1 (S5.3).

    It stands before `admitted[P]`, so that such work goes only where a strictly higher band gains by it. What could
    not go on as it is (too few replicas of a workload have a place that stands) is not counted: it competes anew.
    """

    kind: ClassVar[str] = "retained"
    limit_needs_current: ClassVar[bool] = True
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = False
    asks_idle: ClassVar[bool] = False

    band: int
    sense: Sense = "max"
    unit: str = "value"

    @property
    def name(self) -> str:
        """`retained[P]`."""
        return f"retained[{self.band}]"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum of value times running replicas that stay."""
        running = {replica.workload for replica in part.context.today.preemptible}
        total = Linear()
        for workload in part.changing(part.spec.workloads):
            if workload.id in running and part.spec.band_of(workload) == self.band:
                for role in workload.roles:
                    total.add(part.retained(workload, role), max(1, role.value))
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up the values of running preemptible replicas that are admitted."""
        spec = view.spec
        return sum(
            max(1, view.role(replica).value)
            for replica in context.today.preemptible
            if replica in view.places and spec.band_of(spec.by_id[replica.workload]) == self.band
        )

    def limit(self, context: Context) -> int:
        """Return the value of everything preemptible that runs."""
        return self.measure(context.view(context.today.places), context)

    def needs_current(self, spec: Spec) -> bool:
        """Count from what runs today."""
        return True
