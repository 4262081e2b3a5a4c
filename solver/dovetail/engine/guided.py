"""A start that follows the LP over kinds of nodes: whole contents of nodes at a time, then replica by replica (E3).

The LP says how many nodes of each kind are to take which side, and what runs on them in all.
Nodes of one side of a kind are alike, so contents are made up once and used as often as what is asked for lasts
(`packing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence

from dovetail.engine.field import Field
from dovetail.engine.filling import Wished, follow
from dovetail.engine.fleet_lp import FleetLp, Target
from dovetail.engine.packing import Packer
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop

_ALMOST = 1e-6


def guided(lp: FleetLp, stop: Stop) -> State:
    """Return a state that follows the LP's last solution as far as hard rules let it, filled up by construction."""
    problem = lp.fleet.problem
    field = Field(problem, State())
    targets = list(lp.targets())
    joint = {s.index for s in problem.shapes if s.workload.joint}
    counts = [
        Counter({s: n for s, n in found.items() if s not in joint}) for found in _whole_counts(problem, targets)
    ]
    planned = sum(counts, Counter[int]())
    follow(field, _wishes(lp, targets, counts, stop), planned, stop)
    return field.state()


def _wishes(lp: FleetLp, targets: Sequence[Target], counts: Sequence[Counter[int]], stop: Stop) -> list[Wished]:
    """Return what is to be where, node by node; what finds no room is offered to later nodes that may take it."""
    free: dict[tuple[int, ...], list[int]] = {}
    waiting: list[Wished] = []
    over: dict[Hashable, Counter[int]] = defaultdict(Counter)  # what found no room, by where else it may go
    for target, number, wanted in zip(targets, _whole_nodes(targets), counts, strict=True):
        if stop:
            break
        nodes = free.setdefault(target.members, list(target.members))
        allowed = frozenset(lp.fleet.kinds[target.kind].sides[target.side])
        for place in (target.kind, target.members):
            wanted = wanted + Counter({s: over[place].pop(s) for s in sorted(allowed & over[place].keys())})
        packer = Packer(lp.fleet.problem, lp.fleet.kinds[target.kind], target, wanted)
        for content, times in packer.contents(number):
            taken, nodes[:times] = nodes[:times], []
            for node in taken:
                healthy = lp.fleet.problem.nodes[node].healthy_gpus()
                waiting += [(node, s, tuple(healthy[gpu] for gpu in gpus), n) for s, gpus, n in content]
        for s, count in packer.left():
            over[target.members if s in target.bound else target.kind][s] += count
    return waiting


def _whole_nodes(targets: Sequence[Target]) -> list[int]:
    """Round the nodes that sides have of each plot, no more in all than there are; the largest remainders go up."""
    found = [int(target.nodes + _ALMOST) for target in targets]
    left = {target.members: len(target.members) for target in targets}
    for target, number in zip(targets, found, strict=True):
        left[target.members] -= number
    by_rest = sorted(range(len(targets)), key=lambda i: (found[i] - targets[i].nodes, i))
    for i in by_rest:
        if targets[i].nodes - found[i] > _ALMOST and left[targets[i].members] > 0:
            found[i] += 1
            left[targets[i].members] -= 1
    return found


def _whole_counts(problem: Problem, targets: Sequence[Target]) -> list[Counter[int]]:
    """Round the replicas of each shape over all targets to what they add up to; the largest remainders go up."""
    found = [Counter({s: int(x + _ALMOST) for s, x in target.counts.items()}) for target in targets]
    rests: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for i, target in enumerate(targets):
        for s, x in target.counts.items():
            rests[s].append((x - found[i][s], i))
    for s, rest in rests.items():
        more = int(sum(amount for amount, _ in rest) + _ALMOST)
        for _, i in sorted(rest, key=lambda item: (-item[0], item[1]))[:more]:
            found[i][s] += 1
    return found
