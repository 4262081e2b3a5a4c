"""A start that follows the LP over kinds of nodes: whole contents of nodes at a time, then replica by replica (E3).

The LP says how many nodes of each kind are to take which side, and what runs on them in all.
Nodes of one side of a kind are alike, so contents are made up once and used as often as what is asked for lasts
(`packing`). Where something of a higher band found no place, nodes of lower ones are cleared for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

from dovetail.engine.construct import fill_band
from dovetail.engine.field import Field
from dovetail.engine.fleet_lp import FleetLp, Target
from dovetail.engine.packing import Packer
from dovetail.engine.placing import Outlooks, Put
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop

_ALMOST = 1e-6
_Wish = tuple[int, int, tuple[int, ...], int]  # node, shape, positions among its healthy GPUs, count

_WAYS = 4  # how often lower bands make way for a band


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
    granted = _grant(field, _wishes(lp, targets, counts, stop), stop)
    outlooks = Outlooks(field)
    ranks = {band: rank for rank, band in enumerate(problem.spec.bands)}
    rank_of = {s.index: ranks[problem.spec.band_of(s.workload)] for s in problem.shapes}
    for mine, band in enumerate(problem.spec.bands):
        fill_band(outlooks, band, stop)
        for _ in range(_WAYS):
            if stop or not _make_way(outlooks, mine, rank_of, planned, granted):
                break
            fill_band(outlooks, band, stop)
    return field.state()


def _wishes(lp: FleetLp, targets: Sequence[Target], counts: Sequence[Counter[int]], stop: Stop) -> list[_Wish]:
    """Return what is to be where, node by node; what finds no room is offered to later nodes that may take it."""
    free: dict[tuple[int, ...], list[int]] = {}
    waiting: list[_Wish] = []
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
            waiting += [(node, *part) for node in taken for part in content]
        for s, count in packer.left():
            over[target.members if s in target.bound else target.kind][s] += count
    return waiting


def _make_way(
    outlooks: Outlooks, mine: int, rank: Mapping[int, int], planned: Counter[int], granted: dict[int, list[Put]]
) -> bool:
    """Clear nodes of lower bands for what the target has of a band and found no place; tell whether any was.

    Parameters
    ----------
    mine, rank : the band's place among all, 0 the highest, and that of each shape's.
    """
    field = outlooks.field
    problem = field.problem
    lacking = {
        s.index: short
        for s in problem.shapes
        if rank[s.index] == mine
        and s.request.gpu_count
        and (short := min(field.wanted(s.index), planned[s.index] - field.admitted[s.index])) > 0
    }
    lower = {node: [put for put in puts if rank[put[1]] > mine] for node, puts in granted.items()}
    order = sorted((node for node in lower if lower[node]), key=lambda node: _ease(granted[node], rank, mine, node))
    cleared = False
    for s, short in lacking.items():
        may = field.hosts(problem.shapes[s]) & ~field.gates.crowded(s)
        need = short * problem.shapes[s].request.gpu_milli
        for node in order:
            if need <= 0:
                break
            if may[node] and lower[node]:
                need -= sum(problem.shapes[put[1]].request.gpu_milli for put in lower[node])
                outlooks.undo(list(lacking), lower[node])
                granted[node] = [put for put in granted[node] if rank[put[1]] <= mine]
                lower[node], cleared = [], True
    return cleared


def _ease(puts: list[Put], rank: Mapping[int, int], mine: int, node: int) -> tuple[bool, int, int]:
    """Return the order in which nodes are cleared: those of lower bands alone first, the lowest before others."""
    ranks = [rank[shape] for _, shape, _ in puts]
    return min(ranks) <= mine, -max(ranks), node


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


def _grant(field: Field, wishes: list[_Wish], stop: Stop) -> dict[int, list[Put]]:
    """Put what is wished for where it is; what a hard rule keeps off for now waits until others are placed.

    Returns what was put on each node.
    """
    granted: dict[int, list[Put]] = defaultdict(list)
    more = True
    while wishes and more and not stop:
        more, left = False, []
        for node, shape, gpus, count in wishes:
            healthy = field.problem.nodes[node].healthy_gpus()
            here = tuple(healthy[gpu] for gpu in gpus)
            done = _put(field, node, shape, here, count)
            granted[node] += [(node, shape, here)] * done
            more = more or done > 0
            if done < count:
                left.append((node, shape, gpus, count - done))
        wishes = left
    return granted


def _put(field: Field, node: int, shape: int, gpus: tuple[int, ...], count: int) -> int:
    """Put as many replicas as are asked for, fit and keep hard rules; return how many."""
    form = field.problem.shapes[shape]
    for done in range(count):
        blocked = field.blocked(node, shape, gpus[0] if form.request.partial else None)
        if blocked or field.wanted(shape) <= 0 or not field.room_on(node, form, gpus):
            return done
        field.put(node, shape, gpus)
    return count
