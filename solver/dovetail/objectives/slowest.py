"""The tier on slowest members: what gangs lose because all their members wait for the slowest one (S2.4, S5.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from dovetail.linear import Linear
from dovetail.objectives.base import Sense, TierPart
from dovetail.placement import View, obstacle
from dovetail.rules import Context
from dovetail.spec import Node, Spec, Workload
from dovetail.spec.workload import MILLI


@dataclass(frozen=True, slots=True)
class Slowest:
    """GPUs that atomic workloads lose: all of theirs, times how much slower the slowest member is than the fastest.

    The fastest is the fastest node that could host any replica of the workload with GPUs. A member is as fast as its
    node says, times its accelerator's throughput.
    """

    kind: ClassVar[str] = "slowest"
    limit_needs_current: ClassVar[bool] = False
    counts_nodes: ClassVar[bool] = False
    asks_domains: ClassVar[bool] = True
    asks_idle: ClassVar[bool] = False

    name: str = "slowest"
    sense: Sense = "min"
    unit: str = "milli-GPU"

    def encode(self, part: TierPart) -> Linear:
        """Return the sum over workloads; every one is charged for the slowest speed that any of it uses."""
        return Linear.total(_lost(part, workload) for workload in part.changing(_subjects(part.spec)))

    def measure(self, view: View, context: Context) -> int:
        """Compare the slowest admitted member of each workload with the fastest there could be."""
        total = 0
        for workload in _subjects(view.spec):
            own = [speed_of(view.spec, n) for n in _nodes_of(view, workload)]
            if own:
                total += _weight(workload) * max(0, max(_speeds(view.spec, workload), default=0) - min(own))
        return total

    def limit(self, context: Context) -> int:
        """Nothing is faster than the fastest."""
        return 0

    def needs_current(self, spec: Spec) -> bool:
        """Count from the finished placement alone."""
        return False


def tiers(context: Context) -> Iterator[Slowest]:
    """Yield the tier where speeds differ for any gang."""
    if any(len(_speeds(context.spec, workload)) > 1 for workload in _subjects(context.spec)):
        yield Slowest()


def hinges_on_today(spec: Spec) -> bool:
    """Tell whether the tier is not there with nothing running, and could be with something that runs somewhere."""
    there = _speeds_anywhere(spec)
    known = [_speeds(spec, workload).keys() for workload in _subjects(spec)]
    return all(len(speeds) <= 1 for speeds in known) and any(len(there | speeds) > 1 for speeds in known)


def may_be_faster(spec: Spec) -> bool:
    """Tell whether a gang could run today on a faster node than any that could host it anew."""
    fastest = max(_speeds_anywhere(spec), default=0)
    return any(fastest > max(_speeds(spec, workload), default=0) for workload in _subjects(spec))


def _speeds_anywhere(spec: Spec) -> frozenset[int]:
    return frozenset(speed_of(spec, node) for node in spec.cluster.nodes if node.accelerator)


def speed_of(spec: Spec, node: Node) -> int:
    """Return how fast a member on a node is, in thousandths of the reference."""
    card = spec.accelerators.get(node.accelerator or "")
    return node.speed * (card.throughput if card else MILLI) // MILLI


def _nodes_of(view: View, workload: Workload) -> list[Node]:
    by_name, places = view.spec.cluster.by_name, (view.places[replica] for replica in view.admitted(workload))
    return [by_name[place.node] for place in places if place.gpus]


def _subjects(spec: Spec) -> list[Workload]:
    return [w for w in spec.workloads if w.atomic and any(role.request.gpu_count for role in w.roles)]


def _weight(workload: Workload) -> int:
    """Return the GPUs that a workload asks for in all, at the least one."""
    return max(1, sum(role.replicas * role.request.gpu_milli for role in workload.roles) // MILLI)


def _speeds(spec: Spec, workload: Workload) -> Mapping[int, frozenset[str]]:
    """Return the nodes that could host any GPU replica of a workload, or do so today, by speed."""
    running = {present.node for present in spec.current.replicas if present.replica.workload == workload.id}
    roles = [role for role in workload.roles if role.request.gpu_count and role.replicas]
    found: dict[int, set[str]] = {}
    for node in spec.cluster.nodes:
        open_to = any(obstacle(workload, role, node, spec.accelerators) is None for role in roles)
        if open_to or (node.name in running and node.accelerator):
            found.setdefault(speed_of(spec, node), set()).add(node.name)
    return {speed: frozenset(names) for speed, names in sorted(found.items())}


def _lost(part: TierPart, workload: Workload) -> Linear:
    speeds = _speeds(part.spec, workload)
    fastest = max(speeds, default=0)
    roles = [role.name for role in workload.roles if role.request.gpu_count and role.replicas]
    lag = Linear.of(part.model.integer(0, fastest - min(speeds, default=fastest)))
    charged = False
    for speed, names in speeds.items():
        count = Linear.total(part.misplaced(workload, names, role=role) for role in roles)
        low, high = part.model.range_of(count)
        if speed == fastest or high <= 0:
            continue
        charged = True
        if low > 0:
            part.model.require(lag, lower=fastest - speed)
        else:
            here = part.model.boolean()
            part.model.require(count.minus(Linear.of(here, min(high, workload.replicas))), upper=0)
            part.model.require(lag.minus(Linear.of(here, fastest - speed)), lower=0)
    return lag.scaled(_weight(workload)) if charged else Linear()
