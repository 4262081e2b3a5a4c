"""Ways out for a workload that is not admitted in full, each of them planned: what would admit it, what that takes.

A way that helps is shown by a plan that admits the workload; one that does not is only known not to where that plan
is proved. Policies come first, as they cost nothing but themselves; then work that would have to go, the least
first; then nodes of each group, the fewest that help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from dovetail.placement import Makes, View, obstacle
from dovetail.plan import Plan
from dovetail.spec import Node, Spec, Workload
from dovetail.whatif import Add, Drop, Patch, Solve
from dovetail.whynot.shortage import binding

_MOST_NODES: Final = 16
_MOST_EVICTED: Final = 4


@dataclass(frozen=True, slots=True)
class Way:
    """One change and what planning with it gave.

    Parameters
    ----------
    admitted : replicas of the workload that the plan admits, None where there is no plan.
    helps : whether it is admitted in full.
    certain : whether a plan could not admit more: it does, or every tier is proved.
    least : for nodes, whether one node less is certain not to help.
    """

    patch: Patch
    plan: Plan
    admitted: int | None
    helps: bool
    certain: bool
    least: bool = False


def ways(
    spec: Spec, plan: Plan, workload: Workload, solve: Solve, most: int, over: Callable[[], bool] = lambda: False
) -> Iterator[Way]:
    """Yield ways out, at most so many plans made for them.

    Parameters
    ----------
    over : tells, before each plan, that no more are to be made.
    """
    asking = _Asking(spec, workload, solve, most, over)
    for policy in binding(spec, workload):
        yield from asking.tried(Drop(policy=policy.name))
    for other in _in_the_way(spec, plan, workload):
        yield from asking.tried(Drop(workload=other))
    for group in _groups(spec, workload):
        yield from asking.fewest(group)


@dataclass(slots=True)
class _Asking:
    """Plans one change after the other, as long as there may be more plans."""

    spec: Spec
    workload: Workload
    solve: Solve
    left: int
    over: Callable[[], bool]

    def tried(self, patch: Patch) -> Iterator[Way]:
        """Yield what one change does, nothing where no more plans may be made."""
        if self.left <= 0 or self.over():
            return
        self.left -= 1
        plan = self.solve(patch.applied(self.spec))
        status = plan.outcome.status
        if status in ("infeasible", "unknown"):
            yield Way(patch, plan, None, False, status == "infeasible")
            return
        admitted = sum(replica.workload == self.workload.id for replica in plan.placements)
        helps = self.workload.id not in plan.admitted
        yield Way(patch, plan, admitted, helps, helps or status == "optimal")

    def fewest(self, group: str) -> Iterator[Way]:
        """Yield the fewest nodes of a group that help, by halving; where the most do not, what those do."""
        low, number = 0, _MOST_NODES
        enough, short = self._with(group, number), None
        while enough is not None and enough.helps and number - low > 1:
            middle = (low + number) // 2
            found = self._with(group, middle)
            if found is None:
                break
            if found.helps:
                enough, number = found, middle
            else:
                short, low = found, middle
        if enough is not None:
            certain = number == 1 or (number - low == 1 and short is not None and short.certain)
            yield replace(enough, least=enough.helps and certain)

    def _with(self, group: str, number: int) -> Way | None:
        return next(self.tried(Add(group, number)), None)


def _in_the_way(spec: Spec, plan: Plan, workload: Workload) -> list[str]:
    """Return admitted workloads of no higher priority on nodes that a workload could use, the smallest first."""
    makes = Makes(spec.cluster.nodes, spec.accelerators)
    hosts = makes.nodes_for(workload)
    view = View(spec, plan.placements)
    size: dict[str, int] = {}
    for replica, place in plan.placements.items():
        other = spec.by_id[replica.workload]
        if other is not workload and other.priority <= workload.priority and place.node in hosts:
            size[other.id] = size.get(other.id, 0) + max(1, view.role(replica).request.gpu_milli)
    return sorted(size, key=lambda name: (size[name], name))[:_MOST_EVICTED]


def _groups(spec: Spec, workload: Workload) -> list[str]:
    """Return the node groups whose nodes could host a replica of a workload, the cheapest first."""
    able = [
        group
        for group in spec.cluster.groups
        if any(obstacle(workload, role, group.template, spec.accelerators) is None for role in workload.roles)
    ]
    return [group.name for group in sorted(able, key=lambda group: (_price(group.template), group.name))]


def _price(node: Node) -> int:
    return node.price + node.gpu_price * node.gpus
