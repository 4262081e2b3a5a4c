"""Ruin and recreate where nodes cost: what a few nodes hold finds places on others, and some are in use no more.

Whether a node is in use is all or nothing, so most steps towards an idle one cost as much as before. What guides them
is that a node which is hardly in use counts for less than it costs. Where nothing better is found for a while, steps
that make this worse are taken too, fewer as they go on (simulated annealing: Kirkpatrick, Gelatt and Vecchi, Science
220, 1983), in rounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp
from random import Random
from statistics import median
from typing import ClassVar

import numpy as np

from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.construction.leavers import Leaver
from dovetail.engine.construction.node_costs import NodeCosts, prices_of
from dovetail.engine.construction.promised import Promised
from dovetail.engine.generation.ruins import Ruins
from dovetail.model.state import State
from dovetail.problem import Problem
from dovetail.spec.workload import MILLI

_DISCOUNT = 300  # thousandths of its price that a node counts for less while it is all but idle (measured, as all)
_DRAWN = 4, 32  # nodes in use, or one in so many, of which the one with most that is idle loses all
_IDLEST = 0.7  # of the times; else it is any of them
_MOST = 14  # replicas that it loses at the most
_OTHERS = 3  # nodes that lose a few
_FEW = 3
_BLIND = 0.1  # of the nodes in use, that nobody comes to for once
_AGAIN = 0.3  # of the times, that who left a node may come back at once
_SIZES = 0.6, 0.8  # of the times, that the largest by GPUs come first, else by CPU; else in any order
_HEAT = 0.05, 0.002  # of what a node costs, at the begin and at the end of a round
_ROUND = 8_000  # attempts
_PATIENCE, _TIMES = 1_000, 10  # attempts in vain before anything worse is taken, and times the nodes


class CostRuins(Ruins):
    """Lets nodes in use cost less (S5.6) by what came anew; what is admitted stays so.

    No less is kept of what is promised, as nodes that cost less may be slower.
    """

    work: ClassVar[float] = 0.002
    wanders: ClassVar[bool] = True

    def __init__(self, problem: Problem, state: State, source: Random) -> None:
        super().__init__(problem, state, source)
        self._problem = problem
        self._prices = np.array(prices_of(problem), dtype=np.int64)
        self._levels = sorted(set(self._prices.tolist()))
        self._costs, self._promised = NodeCosts(self._field), Promised(self._field)
        self._counted = [self._counts(node, cost) for node, cost in enumerate(self._costs)]
        self._cost = self._least = sum(self._costs)
        paid = [cost for cost in self._costs if cost]
        self._node = float(median(paid)) if paid else 1.0
        self._blind = np.random.default_rng(source.randrange(1 << 32))
        self._saved = self._vain = 0  # by the last attempt, and attempts since nodes cost less than ever
        self._patience = max(_PATIENCE, _TIMES * len(self.hosts))

    def _ruin(self, turn: int) -> int | None:
        self._vain += 1
        seed, leavers = self._draw()
        self._off(leavers)
        if not leavers or not self._recreated(seed, leavers) or (self._promised.more(turn) or 0) < 0:
            return None
        now = self._costs.since(turn)
        self._saved = self._costs.saved(now)
        return sum(self._counted[node] - self._counts(node, cost) for node, cost in now.items())

    def _takes(self, more: int) -> bool:
        """Take nothing worse for a while after nodes cost less than ever, so that the best is not lost in a step."""
        if (wandered := self._vain - self._patience) < 0:
            return more >= 0 and self._saved >= 0
        hot, cold = _HEAT
        heat = hot * (cold / hot) ** (wandered % _ROUND / _ROUND) * self._node
        return more >= 0 or self._source.random() < exp(more / heat)

    def _is_better(self, more: int) -> bool:
        self._cost -= self._saved
        if self._cost >= self._least:
            return False
        self._least, self._vain = self._cost, 0
        return True

    def _enter(self, node: int) -> None:
        super()._enter(node)
        self._promised.keep(node)
        self._counted[node] = self._counts(node, self._costs.keep(node))

    def _counts(self, node: int, cost: int) -> int:
        """Return what a node of some cost counts for: that, or less where hardly any of it is in use."""
        healthy = MILLI * len(self._problem.nodes[node].healthy_gpus())
        if not (cost and healthy):
            return cost
        idle = MILLI * self._idle(node) // healthy
        return cost - cost * _DISCOUNT * idle * idle // MILLI**3

    def _idle(self, node: int) -> int:
        """Return the thousandths of GPUs of a node that are idle."""
        return int(np.maximum(self._field.gpus[node], 0).sum())

    def _draw(self) -> tuple[int, list[Leaver]]:
        """Return a node that loses all, and who leaves it and some others."""
        source, (least, one_in) = self._source, _DRAWN
        drawn = min(max(least, len(self.hosts) // one_in), len(self.hosts))
        used = [node for node in source.sample(self.hosts, drawn) if self._costs.used[node]]
        if not used:
            return -1, []
        idlest = max(used, key=lambda node: self._idle(node) * int(self._prices[node]))
        seed = idlest if source.random() < _IDLEST else used[0]
        found = self._some(seed, _MOST)
        for other in source.sample(self.hosts, min(source.randint(0, _OTHERS), len(self.hosts))):
            if other != seed:
                found += self._some(other, source.randint(1, _FEW))
        return seed, found

    def _some(self, node: int, most: int) -> list[Leaver]:
        """Return some of those that came to a node anew."""
        there = list(self._anew(node))
        return self._source.sample(there, min(most, len(there)))

    def _recreated(self, seed: int, leavers: Sequence[Leaver]) -> bool:
        """Place who left one by one, on nodes in use if there is room; tell whether all have a place."""
        open_to = self._costs.used & (self._blind.random(len(self._costs.used)) > _BLIND)
        open_to[seed] = self._source.random() < _AGAIN
        placed = all(self._placed(leaver, open_to, seed) for leaver in self._ordered(leavers))
        return placed and not any(map(self._field.gates.ahead, {each.shape for each in leavers}))

    def _placed(self, leaver: Leaver, open_to: Bools, seed: int) -> bool:
        """Place a replica on some nodes, else where all left, else on the cheapest idle node, which is open then."""
        enough = self._serve_as_much(leaver)
        for nodes in self._places(open_to, seed):
            turn = self._field.turn
            if self._journal.place(leaver.shape, nodes if enough is None else nodes & enough):
                open_to |= self._field.touched > turn
                return True
        return False

    def _serve_as_much(self, leaver: Leaver) -> Bools | None:
        """Return the nodes on which one who is promised anything serves as much as where it was, None for all."""
        workload = self._problem.shapes[leaver.shape].workload
        if workload not in self._promised:
            return None
        rates = self._promised.rates(workload.id)
        return np.asarray(rates >= rates[leaver.put[0]])

    def _places(self, open_to: Bools, seed: int) -> Iterator[Bools]:
        yield open_to
        if not open_to[seed]:
            yield self._journal.outlooks.only([seed])
        idle = ~(self._costs.used | open_to)
        for price in self._levels:
            if (nodes := idle & (self._prices == price)).any():
                yield nodes

    def _ordered(self, leavers: Sequence[Leaver]) -> list[Leaver]:
        """Return who left in the order of their sizes, or in any."""
        shapes, found = self._problem.shapes, list(leavers)
        self._source.shuffle(found)
        by_gpus, by_cpu = _SIZES
        if (drawn := self._source.random()) < by_gpus:
            found.sort(key=lambda each: (-shapes[each.shape].request.gpu_milli, -shapes[each.shape].request.cpu))
        elif drawn < by_cpu:
            found.sort(key=lambda each: (-shapes[each.shape].request.cpu, -shapes[each.shape].request.gpu_milli))
        return found
