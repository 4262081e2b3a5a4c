"""Ruin and recreate where promises are not kept: who is short of one comes to a node that serves more.

Who has the fast GPUs is all one to what is admitted, and mixtures of patterns tell promises apart by little more than
their tolerances. Here a replica of those who serve less than was promised takes a place on a faster node; who was
there for no promise, or does as well elsewhere, finds places in turn, as a rule the one that was left.
"""

from __future__ import annotations

from random import Random

import numpy as np

from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.leavers import Leaver
from dovetail.engine.construction.node_costs import NodeCosts
from dovetail.engine.construction.promised import Promised
from dovetail.engine.generation.ruins import Ruins, Whereabouts
from dovetail.model.state import State
from dovetail.problem import Problem

_IN_USE = 0.8  # of the times, that nobody comes to a node that holds nothing
_ALIKE = 0.8  # of the times, that those of about the same size make way first
_OTHERS = 2  # nodes that lose what came anew, beside the faster one, at the most
_ALONE = 0.6  # of the times, that none do


class PromiseRuins(Ruins):
    """Lets less be missing of promised rates (S2.8) by what came anew; what is admitted stays so.

    Parameters
    ----------
    frugal : whether nodes are never to cost more (S5.6) by that, all together; else they are not for nothing.
    """

    def __init__(self, problem: Problem, state: State, source: Random, *, frugal: bool = False) -> None:
        self._problem = problem
        self._frugal = frugal
        self._whereabouts = Whereabouts()
        super().__init__(problem, state, source)
        self._costs, self._promised = NodeCosts(self._field), Promised(self._field)
        for node in self.hosts:
            self._whereabouts.enter(node, self._anew(node))
        self._short: list[str] | None = None  # workloads that serve less than promised and might serve more

    @property
    def over(self) -> bool:
        """Whether nobody is short of a promise who might serve more."""
        return not self._lacking()

    def _lacking(self) -> list[str]:
        if self._short is None:
            shapes, there = self._problem.shapes_of_workload, self._whereabouts
            self._short = [name for name in self._promised.lacking() if any(s in there for s in shapes[name])]
        return self._short

    def _enter(self, node: int) -> None:
        super()._enter(node)
        self._whereabouts.enter(node, self._anew(node))
        self._costs.keep(node)
        if self._promised.keep(node):
            self._short = None

    def _ruin(self, turn: int) -> int | None:
        name = self._source.choice(short := self._lacking())
        shape = self._source.choice(self._problem.shapes_of_workload[name])
        rates = self._promised.rates(name)
        rates[~self._field.hosts(self._problem.shapes[shape])] = 0
        slower = rates < rates.max()
        slow = self._whereabouts.one_of(shape, self._source, self._anew, slower.__getitem__)
        if slow is None:
            short.remove(name)  # until it serves less, or others do
            return None
        self._journal.leave(slow)
        off = self._faster_for(slow, rates)
        if off is None:
            return None
        off += self._others(off)
        self._source.shuffle(off)
        off.sort(key=lambda each: -self._problem.shapes[each.shape].request.gpu_milli)
        mask = self._costs.used if self._source.random() < _IN_USE else None
        placed = all(self._journal.place(each.shape, mask) for each in off)
        if not placed or any(map(self._field.gates.ahead, {shape, *(each.shape for each in off)})):
            return None
        more = self._promised.more(turn)
        dearer = (self._frugal or not more) and self._costs.saved(self._costs.since(turn)) < 0
        return None if dearer else more

    def _faster_for(self, slow: Leaver, rates: Ints) -> list[Leaver] | None:
        """Place a replica that left on a node that serves more; return who was taken off, None without room."""
        may = rates > rates[slow.put[0]]
        if self._source.random() < _IN_USE:
            may = may & self._costs.used
        nodes = np.flatnonzero(may)
        if not len(nodes):
            return None
        node = int(self._source.choice(nodes))
        only = self._journal.outlooks.only([node])
        alike = self._source.random() < _ALIKE
        return self._makes_way(node, lambda: self._journal.place(slow.shape, only), slow if alike else None)

    def _others(self, off: list[Leaver]) -> list[Leaver]:
        """Take off what came anew to a few nodes, so that those who made way find other places; return it."""
        if not off or self._source.random() < _ALONE:
            return []
        may = self._field.hosts(self._problem.shapes[self._source.choice(off).shape])
        nodes = [node for node in self._source.sample(self.hosts, min(_OTHERS, len(self.hosts))) if may[node]]
        return self._off(leaver for node in nodes for leaver in self._anew(node))
