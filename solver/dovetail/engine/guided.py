"""A start that follows the LP over kinds of nodes: whole contents of nodes at a time, then replica by replica (E3).

The LP says how many nodes of each kind are to take which side, what runs on them in all, and how their GPUs are cut.
Nodes of one side of a kind are alike, so contents are made up once and used as often as what is asked for lasts. Each
content keeps to the side's average of CPU and memory per GPU, so that the last nodes still find what fits them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.construct import fill_band
from dovetail.engine.field import Field
from dovetail.engine.fleet_lp import FleetLp, Target
from dovetail.engine.knapsack import Knapsack
from dovetail.engine.patterns import Pattern, counts_of
from dovetail.engine.placing import Outlooks, Put
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.proof.kinds import Kind
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

Floats = NDArray[np.float64]
_ALMOST = 1e-6
_WAYS = 4  # how often lower bands make way for a band
_EVEN = 1.0
_BOUND = 1.5  # how much more what may not go elsewhere counts


def guided(lp: FleetLp, stop: Stop) -> State:
    """Return a state that follows the LP's last solution as far as hard rules let it, filled up by construction."""
    fleet = lp.fleet
    problem = fleet.problem
    field = Field(problem, State())
    targets = list(lp.targets())
    joint = {s.index for s in problem.shapes if s.workload.atomic or s.workload.min_replicas > 1}
    counts = [
        Counter({s: n for s, n in found.items() if s not in joint}) for found in _whole_counts(problem, targets)
    ]
    free: dict[tuple[int, ...], list[int]] = {}
    waiting: list[_Wish] = []
    over: dict[Hashable, Counter[int]] = defaultdict(Counter)  # what found no room, by where else it may go
    for target, number, wanted in zip(targets, _whole_nodes(targets), counts, strict=True):
        if stop:
            break
        nodes = free.setdefault(target.members, list(target.members))
        allowed = frozenset(fleet.kinds[target.kind].sides[target.side])
        for place in (target.kind, target.members):
            wanted += Counter({s: over[place].pop(s) for s in sorted(allowed & over[place].keys())})
        packer = Packer(problem, fleet.kinds[target.kind], target, wanted)
        for content, times in packer.contents(number):
            taken, nodes[:times] = nodes[:times], []
            waiting += [(node, *part) for node in taken for part in content]
        for s, count in packer.left():
            over[target.members if s in target.bound else target.kind][s] += count
    granted = _grant(field, waiting, stop)
    planned = sum(counts, Counter[int]())
    outlooks = Outlooks(field)
    for band in problem.spec.bands:
        fill_band(outlooks, band, stop)
        for _ in range(_WAYS):
            if stop or not _make_way(outlooks, band, planned, granted):
                break
            fill_band(outlooks, band, stop)
    return field.state()


def _make_way(outlooks: Outlooks, band: int, planned: Counter[int], granted: dict[int, list[Put]]) -> bool:
    """Clear nodes of lower bands for what the target has of a band and found no place; tell whether any was."""
    field = outlooks.field
    problem = field.problem
    rank = {s.index: problem.spec.bands.index(problem.spec.band_of(s.workload)) for s in problem.shapes}
    mine = problem.spec.bands.index(band)
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


Content = tuple[tuple[int, tuple[int, ...], int], ...]  # shape, positions among the healthy GPUs, count


_Wish = tuple[int, int, tuple[int, ...], int]  # node, shape, positions among its healthy GPUs, count


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
        blocked = field.blocked(node, shape, gpus[0] if form.request.share else None)
        if blocked or field.wanted(shape) <= 0 or not field.room_on(node, form, gpus):
            return done
        field.put(node, shape, gpus)
    return count


class Packer:
    """Makes up contents of alike nodes from what is to run on them in all.

    Contents are priced by the part of a node that they fill, so that none leaves what fits nobody; what may not go to
    other plots, and what asks much of the host for its GPUs, comes early.

    Parameters
    ----------
    kind, target, wanted : the nodes, and what the LP has on them, in fractions and rounded.
    """

    def __init__(self, problem: Problem, kind: Kind, target: Target, wanted: Counter[int]) -> None:
        self._problem = problem
        self._gpus = len(kind.node.healthy_gpus())
        self._wanted = Counter({s: n for s, n in wanted.items() if n > 0 and problem.shapes[s].request.gpu_count})
        self._knapsack = Knapsack(problem, kind, sorted(self._wanted)) if self._wanted else None
        most = max(target.prices.values(), default=0.0) or 1.0
        self._price = {
            s: (target.prices.get(s, 0.0) / most + _EVEN * _part(problem, kind.node, s))
            * (_BOUND if s in target.bound else 1.0)
            for s in self._wanted
        }

    def contents(self, nodes: int) -> Iterator[tuple[Content, int]]:
        """Yield contents and how many nodes take each."""
        while nodes > 0 and self._knapsack is not None and any(self._wanted.values()):
            given = nodes
            for _, pattern in self._knapsack.price(self._price, self._wanted):
                uses = counts_of(pattern)
                times = min([nodes, *(self._wanted[s] // n for s, n in uses.items())])
                if times:
                    self._wanted.subtract({s: n * times for s, n in uses.items()})
                    nodes -= times
                    yield self._content(pattern), times
            if nodes == given:
                return

    def left(self) -> list[tuple[int, int]]:
        """Return the shapes that found no room, and how many replicas of each."""
        return [(s, n) for s, n in sorted(self._wanted.items()) if n > 0]

    def _content(self, pattern: Pattern) -> Content:
        """Give replicas of whole GPUs the positions that shared ones leave."""
        shared = {slot.gpu for slot, _ in pattern if slot.gpu >= 0}
        free = iter(gpu for gpu in range(self._gpus) if gpu not in shared)
        found: list[tuple[int, tuple[int, ...], int]] = []
        for slot, count in pattern:
            if slot.gpu >= 0:
                found.append((slot.shape, (slot.gpu,), count))
            else:
                gpus = self._problem.shapes[slot.shape].request.gpus
                found += [(slot.shape, tuple(next(free) for _ in range(gpus)), 1) for _ in range(count)]
        return tuple(found)


def _part(problem: Problem, node: Node, shape: int) -> float:
    """Return about which part of a node a replica fills: of its GPUs, and half of that of its CPU and memory."""
    request = problem.shapes[shape].request
    gpus = request.gpu_milli / (MILLI * max(1, len(node.healthy_gpus())))
    return gpus + (request.cpu / max(1, node.cpu) + request.memory / max(1, node.memory)) / 4
