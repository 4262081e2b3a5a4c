"""A start that follows the LP over kinds of nodes: whole contents of nodes at a time, then replica by replica (E3).

The LP says how many nodes of each kind are to take which side, what runs on them in all, and how their GPUs are cut.
Nodes of one side of a kind are alike, so contents are made up once and used as often as what is asked for lasts. Each
content keeps to the side's average of CPU and memory per GPU, so that the last nodes still find what fits them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.construct import construct
from dovetail.engine.field import Field
from dovetail.engine.fleet_lp import FleetLp, Target
from dovetail.engine.fragmentation import Bools, Ints
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.rules.quota import requested_of
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

Floats = NDArray[np.float64]
_ALMOST = 1e-6
_STEPS = 50  # how finely distances from the average line are told apart


def guided(lp: FleetLp, stop: Stop) -> State:
    """Return a state that follows the LP's last solution as far as hard rules let it, filled up by construction."""
    fleet = lp.fleet
    problem = fleet.problem
    field = Field(problem, State())
    targets = list(lp.targets())
    counts = _whole_counts(problem, targets)
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
        packer = Packer(problem, fleet.kinds[target.kind].node, target, wanted)
        for content, times in packer.contents(number):
            taken, nodes[:times] = nodes[:times], []
            waiting += [(node, *part) for node in taken for part in content]
        for s, count in packer.left():
            over[target.members if s in target.bound else target.kind][s] += count
    _grant(field, waiting, stop)
    return construct(problem, field.state(), stop)


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


def _grant(field: Field, wishes: list[_Wish], stop: Stop) -> None:
    """Put what is wished for where it is; what a hard rule keeps off for now waits until others are placed."""
    granted = True
    while wishes and granted and not stop:
        granted, left = False, []
        for wish in wishes:
            done = _put(field, wish)
            granted = granted or done > 0
            if done < wish[3]:
                left.append((*wish[:3], wish[3] - done))
        wishes = left


def _put(field: Field, wish: _Wish) -> int:
    """Put as many replicas as are asked for, fit and keep hard rules; return how many."""
    node, shape, gpus, count = wish
    healthy = field.problem.nodes[node].healthy_gpus()
    here = tuple(healthy[gpu] for gpu in gpus)
    form = field.problem.shapes[shape]
    for done in range(count):
        blocked = field.blocked(node, shape, here[0] if form.request.share else None)
        if blocked or field.wanted(shape) <= 0 or not field.room_on(node, form, here):
            return done
        field.put(node, shape, here)
    return count


class Packer:
    """Makes up contents of alike nodes from what is to run on them in all.

    Parameters
    ----------
    node : stands for the nodes; `target` and `wanted` are what the LP has on them, in fractions and rounded.
    """

    def __init__(self, problem: Problem, node: Node, target: Target, wanted: Counter[int]) -> None:
        self._shapes = sorted(+wanted)
        self._bound = np.isin(self._shapes, sorted(target.bound))
        requests = [problem.shapes[s].request for s in self._shapes]
        names = ("cpu", "memory", *sorted(node.resources))
        self._wanted = np.array([wanted[s] for s in self._shapes], dtype=np.int64)
        self._asks = np.array([[requested_of(r, name) for name in names] for r in requests], dtype=np.int64)
        self._capacity = np.array([node.cpu, node.memory, *(node.resources[n] for n in names[2:])], dtype=np.int64)
        self._sizes = np.array([r.gpus for r in requests], dtype=np.int64)
        self._milli = np.array([r.gpu_milli if r.share else 0 for r in requests], dtype=np.int64)
        self._gpus = len(node.healthy_gpus())
        self._allowed = [np.isin(self._shapes, sorted(group)) for group, _, _ in target.cuts]
        self._cuts = [cut for _, cut, _ in target.cuts]
        self._left = [round(times) for _, _, times in target.cuts]

    def contents(self, nodes: int) -> Iterator[tuple[Content, int]]:
        """Yield contents and how many nodes take each."""
        while nodes > 0 and self._wanted.any():
            before = self._wanted.copy()
            content, cuts = self._content(nodes)
            uses = before - self._wanted
            if not uses.any():
                return
            times = min([nodes, *(before[uses > 0] // uses[uses > 0])])
            times = max(1, min([times, *(self._left[i] // n for i, n in cuts.items())]))
            self._wanted = before - times * uses
            for i, n in cuts.items():
                self._left[i] -= n * times
            nodes -= times
            yield content, int(times)

    def left(self) -> list[tuple[int, int]]:
        """Return the shapes with GPUs that found no room, and how many replicas of each."""
        gpu = (self._sizes > 0) | (self._milli > 0)
        return [(s, int(n)) for s, n, g in zip(self._shapes, self._wanted, gpu, strict=True) if g and n > 0]

    def _content(self, nodes: int) -> tuple[Content, Counter[int]]:
        """Fill one node: the largest first, each shape so that CPU and memory keep to the average per GPU."""
        left = self._capacity.copy()
        gpus = np.where(self._milli > 0, self._milli / MILLI, self._sizes)
        per_gpu = (self._wanted @ self._asks) / max(1.0, float(self._wanted @ gpus))
        content: list[tuple[int, tuple[int, ...], int]] = []
        cuts: Counter[int] = Counter()
        first = 0
        apart = -(-int(self._wanted @ self._milli) // (MILLI * nodes))  # GPUs of each node that shares need
        while first < self._gpus:
            chosen = self._whole(left, self._gpus - apart - first, first, per_gpu)
            if chosen is not None:
                size = int(self._sizes[chosen])
                content.append((self._shapes[chosen], tuple(range(first, first + size)), 1))
                self._take(left, chosen)
                first += size
                continue
            cut = self._shared(left, first, per_gpu, cuts)
            if not cut and not apart:
                break
            apart = 0 if not cut else max(0, apart - 1)
            content += [(self._shapes[s], (first,), n) for s, n in sorted(Counter(cut).items())]
            first += bool(cut)
        return tuple(content), cuts

    def _take(self, left: Ints, chosen: int) -> None:
        left -= self._asks[chosen]
        self._wanted[chosen] -= 1

    def _whole(self, left: Ints, room: int, used: int, per_gpu: Floats) -> int | None:
        """Return the best shape of the largest size of whole GPUs that is wanted and fits, None if there is none."""
        fits = (self._wanted > 0) & (self._sizes > 0) & (self._sizes <= room) & (self._asks <= left).all(axis=1)
        if not fits.any():
            return None
        if (fits & self._bound).any():  # what may not go elsewhere comes first
            fits &= self._bound
        fits &= self._sizes == self._sizes[fits].max()
        return self._nearest(fits, left, used, per_gpu)

    def _nearest(self, fits: Bools, left: Ints, used: float, per_gpu: Floats) -> int:
        """Return the shape with which use comes nearest to the average line; ties go to what is wanted most."""
        candidates = np.flatnonzero(fits)
        size = np.where(self._milli > 0, self._milli / MILLI, self._sizes)[candidates]
        taken = self._capacity - left
        off = taken + self._asks[candidates] - per_gpu * (used + size)[:, None]
        distance = np.abs(off / np.maximum(self._capacity, 1)).max(axis=1)
        order = np.lexsort((-self._wanted[candidates], np.floor(distance * _STEPS)))
        return int(candidates[order[0]])

    def _shared(self, left: Ints, used: int, per_gpu: Floats, cuts: Counter[int]) -> list[int]:
        """Cut one GPU in the way that is most wanted, take the shapes for it, and return them."""
        order = sorted(range(len(self._cuts)), key=lambda i: (cuts[i] - self._left[i], i))
        for i in order:
            taken: list[int] = []
            for milli, count in sorted(self._cuts[i], reverse=True):
                for _ in range(count):
                    fits = (
                        self._allowed[i]
                        & (self._wanted > 0)
                        & (self._milli == milli)
                        & (self._asks <= left).all(axis=1)
                    )
                    if fits.any():
                        taken.append(self._nearest(fits, left, used, per_gpu))
                        self._take(left, taken[-1])
            if taken:
                cuts[i] += 1
                return taken
        return []
