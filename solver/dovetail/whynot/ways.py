"""Ways out for a workload that is not admitted in full, each of them planned: what would admit it, what that takes.

A way that helps is shown by a plan that admits the workload; one that does not is only known not to where that plan
is proved, and then another that is worth as much may admit it in the place of other work. Policies that keep it out
come first, as they cost nothing but themselves; then work that would have to go, the least first; then nodes of each
group, as few as are found to help; last the policies that forbid it no place, and may keep other work in its way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dovetail.placement import Makes, View, obstacle
from dovetail.plan import Plan
from dovetail.spec import Node, Spec, Workload
from dovetail.whatif import Add, Drop, Patch, Solve
from dovetail.whynot.barring import Bar, barring, bystanders, suspects

_MOST_NODES: Final = 16
_MOST_EVICTED: Final = 4


@dataclass(frozen=True, slots=True)
class Way:
    """One change and what planning with it gave.

    Parameters
    ----------
    admitted : replicas of the workload that the plan admits, None where there is no plan.
    helps : whether it is admitted in full.
    certain : whether a longer search could not admit more: all is admitted, or every tier is proved.
    least : for nodes, whether each smaller number of them is certain not to help.
    """

    patch: Patch
    plan: Plan
    admitted: int | None
    helps: bool
    certain: bool
    least: bool = False


def ways(
    spec: Spec,
    plan: Plan,
    workload: Workload,
    solve: Solve,
    most: int,
    over: Callable[[], bool] = lambda: False,
    bars: Sequence[Bar] | None = None,
) -> Iterator[Way]:
    """Yield ways out, at most so many plans made for them.

    Parameters
    ----------
    bars : what `barring` finds, where that is known.
    over : tells, before each plan, that no more are to be made.
    """
    asking = _Asking(spec, workload, solve, most, over)
    bars = barring(spec, plan, workload) if bars is None else bars
    for policy in suspects(bars):
        yield from asking.tried(Drop(policy=policy.name))
    for other in _in_the_way(spec, plan, workload):
        yield from asking.tried(Drop(workload=other))
    for group in _groups(spec, workload):
        yield from asking.fewest(group)
    for policy in bystanders(spec, plan, bars):
        yield from asking.tried(Drop(policy=policy.name))


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
        """Yield nodes of a group that help, as few as are found; where no number helps, what the most of them do."""
        told: dict[int, Way] = {}
        for number in _numbers(told):
            found = self._with(group, number)
            if found is None:
                break
            told[number] = found
        if told:
            number = min((each for each, way in told.items() if way.helps), default=max(told))
            certain = all(each in told and told[each].certain for each in range(1, number))
            yield replace(told[number], least=told[number].helps and certain)

    def _with(self, group: str, number: int) -> Way | None:
        return next(self.tried(Add(group, number)), None)


def _numbers(told: Mapping[int, Way]) -> Iterator[int]:
    """Yield the numbers of nodes to try, each after what came of those before it is told.

    More nodes need not help where fewer do, as other work may be worth as much on them: so small numbers come first,
    and numbers between one that does not help and one that does last.
    """
    yield 1
    if told[1].helps:
        return
    yield _MOST_NODES
    if not told[_MOST_NODES].helps:
        return
    low, high = 1, _MOST_NODES
    while high - low > 1:
        number = min(2 * low, (low + high) // 2)
        yield number
        low, high = (low, number) if told[number].helps else (number, high)


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
