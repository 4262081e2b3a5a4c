"""Tiers on what is admitted: value of GPU work, milli-cores of work without GPUs, and running work kept (S5.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear, Model
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View
from dovetail.placement.served import served
from dovetail.rules import Context
from dovetail.rules.rates import by_rate, require_served
from dovetail.spec import Role, Spec, Workload


def _roles(spec: Spec, workloads: Iterable[Workload], band: int, *, gpu: bool) -> Iterator[tuple[Workload, Role]]:
    for workload in workloads:
        if spec.band_of(workload) == band:
            for role in workload.roles:
                if bool(role.request.gpu_count) == gpu:
                    yield workload, role


def _worth(view: View, workload: Workload, role: Role) -> int:
    """Return what the admitted replicas of a role are worth (S2.9)."""
    if workload.slo is not None and workload.slo.open:
        return workload.slo.worth(role.value * role.replicas, served(view, workload))
    return role.worth(view.count(workload, role))


def _adds_up(workload: Workload, role: Role) -> bool:
    """Tell whether each replica of a role counts for itself."""
    return not workload.asks_rate and not role.worths


def worth_at_width(model: Model, admitted: Linear, role: Role) -> Linear:
    """Return what a role is worth at the width that it is admitted with (S2.6): one of them, or none."""
    flags = [model.boolean() for _ in role.worths]
    first = role.least or 0
    width = Linear({flag: first + role.step * i for i, flag in enumerate(flags)})
    model.require(width.minus(admitted), lower=0, upper=0)
    model.require(Linear(dict.fromkeys(flags, 1)), upper=1)
    return Linear({flag: worth for flag, worth in zip(flags, role.worths, strict=True) if worth})


def _worth_of_rate(part: TierPart, workload: Workload, role: Role) -> Linear:
    """Return a variable of at most what the rate is worth that a service serves (S2.8)."""
    value, slo = role.value * role.replicas, workload.slo
    if slo is None or not slo.rate or not value:
        return Linear(constant=value)
    earned = Linear.of(part.model.integer(0, value))
    served = by_rate(workload, part.by_host(workload))
    require_served(part.model, served, earned.scaled(-slo.rate).plus(slo.rate * value), value, slo.rate)
    return earned


@dataclass(frozen=True, slots=True)
class Admitted:
    """The value of the admitted replicas of a priority band, of those with GPUs or of those without.

    A service that asks for a rate alone is worth as much of the value of all its replicas as it serves of the rate,
    an elastic role what its width is worth where that is said.
    """

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
        """Return the sum of value times admitted replicas, and what the rates of services are worth."""
        roles = list(_roles(part.spec, part.changing(part.spec.workloads), self.band, gpu=self.gpu))
        total = part.worth((workload, role) for workload, role in roles if _adds_up(workload, role))
        for workload, role in roles:
            if workload.asks_rate:
                total.add(_worth_of_rate(part, workload, role))
            elif role.worths and role.replicas:
                total.add(worth_at_width(part.model, part.admitted_role(workload, role), role))
        return total

    def measure(self, view: View, context: Context) -> int:
        """Add up the values of the admitted replicas, and what the rates of services are worth."""
        roles = _roles(view.spec, view.spec.workloads, self.band, gpu=self.gpu)
        return sum(_worth(view, workload, role) for workload, role in roles)

    def adds_up(self, spec: Spec) -> bool:
        """Tell whether every replica that is counted counts for itself."""
        return all(_adds_up(w, role) for w, role in _roles(spec, spec.workloads, self.band, gpu=self.gpu))

    def limit(self, context: Context) -> int:
        """Return the value of everything that asks."""
        roles = _roles(context.spec, context.spec.workloads, self.band, gpu=self.gpu)
        return sum(role.worth(role.replicas) for _, role in roles)

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
