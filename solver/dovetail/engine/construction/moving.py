"""Replicas that make way for others: all that a node holds is taken off and put elsewhere, or back where it was.

Construction never touches what it has placed. So the last replica of a service that may only go where others are
stays out although these could be anywhere, and a node stays in use for one replica that others have room for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from dovetail.engine.construction.construct import fill_band
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.node_costs import cheaper_idle, prices_of
from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.engine.construction.tier_order import promises_first
from dovetail.model.state import NO_GPU, State
from dovetail.problem import Problem
from dovetail.progress import Stop
from dovetail.spec.slo import host_of
from dovetail.spec.workload import MILLI

_TRIES = 30  # nodes that are cleared in vain for one shape
_MOST_TRIES = 300  # for all shapes together


def tidied(problem: Problem, state: State, stop: Stop, over: Callable[[], bool]) -> State:
    """Return a state with what waits placed where others can make way, and with fewer or cheaper nodes in use.

    Parameters
    ----------
    over : tells when time has run out.
    """
    field = Field(problem, state)
    outlooks = Outlooks(field)
    rank_of = ranks(problem)
    mover = Mover(outlooks, rank_of, lambda tries: bool(stop) or over() or tries > _MOST_TRIES)
    for mine, band in enumerate(problem.spec.bands):
        fill_band(outlooks, band, stop)
        lacking = {s.index: field.wanted(s.index) for s in problem.shapes if s.request.gpu_count}
        mover.make_way({s: n for s, n in lacking.items() if n > 0 and rank_of[s] == mine}, mine, lossless=False)
    if any(tier.counts_nodes for tier in problem.search_tiers):
        Mover(outlooks, rank_of, lambda _: bool(stop) or over()).empty()
    return field.state()


def ranks(problem: Problem) -> Mapping[int, int]:
    """Return the band of each shape, 0 the highest."""
    of = {band: rank for rank, band in enumerate(problem.spec.bands)}
    return {s.index: of[problem.spec.band_of(s.workload)] for s in problem.shapes}


class Mover:
    """Moves what was put on the nodes of a field by this search, which is all that it knows a place for.

    Nodes stay as they are that hold anything of today's, parts of what stands or falls together, cut GPUs, or whole
    GPUs that it matters to be next to each other.

    Parameters
    ----------
    rank_of : the band of each shape, 0 the highest.
    over : tells, by how many nodes were tried, when to try no more; `cleared` are those that hold something else now.
    """

    def __init__(self, outlooks: Outlooks, rank_of: Mapping[int, int], over: Callable[[int], bool]) -> None:
        self._outlooks, self._field = outlooks, outlooks.field
        self._problem = outlooks.field.problem
        self._rank_of = rank_of
        self._over = over
        self._tied = {s.index for s in self._problem.shapes if s.workload.joint or s.workload.holds}
        self._promises = promises_first(self._problem)
        self._rates: dict[int, Ints] = {}  # per node, of shapes to whose workloads anything is promised
        self.tries = 0
        self.cleared: set[int] = set()

    def contents(self, node: int) -> list[Put] | None:
        """Return what a node holds, replica by replica, highest band and largest first; None where some must stay."""
        fill = self._field.fills.get(node)
        if fill is None:
            return []
        slots = [(slot, count) for slot, count in fill.slots.items() if count]
        if +fill.kept or self._field.blocks.matter(node) or self._field.crowds.parted[node]:
            return None
        if any(slot.profile or slot.shape in self._tied for slot, _ in slots):
            return None
        shared = {slot.gpu for slot, _ in slots}
        whole = (g for g in self._problem.nodes[node].healthy_gpus() if g not in shared and not self._idle(node, g))
        found: list[Put] = []
        for slot, count in slots:
            gpus = self._problem.shapes[slot.shape].request.gpus
            for _ in range(count):
                taken = tuple(next(whole) for _ in range(gpus)) if slot.gpu == NO_GPU else (slot.gpu,)
                found.append((node, slot.shape, taken))
        return sorted(found, key=self._order)

    def _idle(self, node: int, gpu: int) -> bool:
        return bool(self._field.gpus[node, gpu] or self._field.cuts.closed[node, gpu])

    def _order(self, put: Put) -> tuple[int, int, int, int]:
        request = self._problem.shapes[put[1]].request
        return self._rank_of[put[1]], -request.gpu_milli, -request.cpu, put[1]

    # Making way.

    def make_way(self, lacking: Mapping[int, int], mine: int, *, lossless: bool) -> bool:
        """Place what found no place where others can leave; tell whether any was.

        Parameters
        ----------
        lacking : how many replicas of each shape found no place.
        mine : their band; lower ones may lose replicas by this, unless it is to be `lossless`.
        """
        done = False
        for shape, short in lacking.items():
            least = len(self._problem.spec.bands) if lossless else mine
            while short > 0 and self._field.room_in_all(shape) > 0 and not self._over(self.tries):
                many = self._for_one(shape, short, least)
                if not many:
                    break
                done, short = True, short - many
        return done

    def _for_one(self, shape: int, short: int, least: int) -> int:
        """Clear one node for replicas of a shape; return how many are on it then."""
        for node in self._candidates(shape):
            if self._over(self.tries):
                break
            self.tries += 1
            taken = self.contents(node)
            if not taken or any(put[1] == shape for put in taken):
                continue
            off = self._outlooks.undo([shape], taken)
            put = self._outlooks.place(shape, short, nodes=self._outlooks.only([node]))
            if put and self._resettled(taken, None, least):
                self._outlooks.forget()
                self.cleared.add(node)
                return len(put)
            self._outlooks.undo([shape], put)
            self._outlooks.put_back(taken, off)
        return 0

    def _candidates(self, shape: int) -> Iterable[int]:
        """Return nodes to clear for a shape, those first that hold least of it and higher bands."""
        field = self._field
        may = field.hosts(self._problem.shapes[shape]) & ~field.gates.crowded(shape)
        nodes = np.flatnonzero(may)
        idle = np.maximum(field.gpus[nodes], 0).sum(axis=1)
        order = nodes[np.argsort(-idle, kind="stable")]
        return [int(node) for node in order if node in field.fills][:_TRIES]

    def _resettled(self, puts: Sequence[Put], nodes: Bools | None, least: int) -> bool:
        """Put replicas elsewhere; where one of a band before `least`, or of it, finds no place, none is moved.

        Nor is any where one finds none of a shape that runs today: it may have to stay admitted. On some nodes, which
        are cheaper, one serves no less of what is promised.
        """
        placed: list[Put] = []
        for node, shape, _ in puts:
            self._outlooks.reopen(shape)
            mask = None if nodes is None else self._as_fast(node, shape, nodes)
            found = self._outlooks.place(shape, 1, nodes=mask)
            if not found and (self._rank_of[shape] <= least or self._problem.running[shape]):
                self._outlooks.undo([put[1] for put in puts], placed)
                return False
            placed += found
        return True

    def _as_fast(self, node: int, shape: int, nodes: Bools) -> Bools:
        """Return those nodes on which a replica serves as much of a promise as on one, where that comes first."""
        slo = self._problem.shapes[shape].workload.slo
        if not self._promises or slo is None or not slo.owed:
            return nodes
        if shape not in self._rates:
            rates = [slo.rates.get(host_of(n.accelerator), 0) for n in self._problem.nodes]
            self._rates[shape] = np.array(rates, dtype=np.int64)
        return np.asarray(nodes & (self._rates[shape] >= self._rates[shape][node]))

    # Emptying.

    def empty(self) -> bool:
        """Empty nodes onto others in use, or onto cheaper idle ones, the worst bargains first; tell if any was."""
        field, nodes = self._field, self._problem.nodes
        prices = prices_of(self._problem)
        used = self._outlooks.only(index for index, fill in field.fills.items() if +fill.slots)
        busy = [MILLI * len(n.healthy_gpus()) - int(np.maximum(field.gpus[i], 0).sum()) for i, n in enumerate(nodes)]
        order = sorted(np.flatnonzero(used), key=lambda i: (-prices[i] / max(1, busy[i]), -i))
        least = len(self._problem.spec.bands)
        done = False
        for node in map(int, order):
            if self._over(self.tries):
                break
            taken = self.contents(node) if prices[node] else None
            if not taken:
                continue
            self.tries += 1
            off = self._outlooks.undo([], taken)
            used[node] = False
            for more in (None, *cheaper_idle(field, node, used, prices, {shape for _, shape, _ in taken})):
                mask = used.copy()
                if more is not None:
                    mask[more] = True
                if self._resettled(taken, mask, least):
                    used, done = mask, True
                    break
            else:
                used[node] = True
                self._outlooks.put_back(taken, off)
        return done
