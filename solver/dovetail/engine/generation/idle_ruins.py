"""Ruin and recreate where a tier asks for what is idle: who came anew is placed where less of it is useless."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np

from dovetail.engine.construction.fragmentation import Bools
from dovetail.engine.contents.idling import Idling
from dovetail.engine.contents.patterns import Pattern, counts_of, pattern_of
from dovetail.engine.generation.ruins import Ruins
from dovetail.model.state import Fill, State
from dovetail.objectives.fragmentation import fragmentation_of
from dovetail.problem import Problem
from dovetail.proof.idle import IdleUse
from dovetail.spec import Node
from dovetail.spec.workload import MILLI

_GATHERED = 0.4  # of the times, that replicas of several nodes come to one (measured, as all of these)
_SENDERS = 8  # nodes of which a replica each may come to it
_COMPARED = 4  # nodes that are drawn for it at the most, of which the one with most that is useless is taken
_NOTHING: Final = Fill()


class IdleRuins(Ruins):
    """Lets less of the idle GPU be useless (S5.5) by what came anew; what is admitted stays so.

    Parameters
    ----------
    in_use : whether nothing may come to a node that holds nothing.
    """

    def __init__(self, problem: Problem, state: State, source: Random, *, in_use: bool) -> None:
        super().__init__(problem, state, source)
        self._useless = _Useless(problem)
        used = (node for node, fill in state.fills.items() if fill.slots)
        self._used: Bools | None = self._journal.outlooks.only(used) if in_use else None
        self._amounts = [self._useless.on(node, self._fill(node)) for node in range(len(problem.nodes))]
        self._now: dict[int, int] = {}  # the same of nodes that the last attempt has changed

    def _fill(self, node: int) -> Fill:
        """Return what a node holds, with nothing of which there is none."""
        return Fill(+self._field.fills.get(node, _NOTHING).slots)

    def _ruin(self, turn: int) -> int | None:
        placed = self._gathered() if self._source.random() < _GATHERED else self._recreated()
        if not placed:
            return None
        touched = np.flatnonzero(self._field.touched > turn).tolist()
        self._now = {node: self._useless.on(node, self._fill(node)) for node in touched}
        return sum(self._amounts[node] - useless for node, useless in self._now.items())

    def _recreated(self) -> bool:
        """Take some replicas off and place them one by one, in any order; tell whether all found a place."""
        leavers = self._taken_off()
        self._source.shuffle(leavers)
        return all(self._journal.place(leaver.shape, self._used) for leaver in leavers)

    def _gathered(self) -> bool:
        """Let replicas of other nodes come to one, as far as there is room; tell whether that may be done.

        What is of no use by itself may be together: who comes one by one fills no node up that the first one spoils.
        """
        every = range(len(self._amounts))
        drawn = (self._source.choice(every) for _ in range(self._source.randint(1, _COMPARED)))
        node = max(drawn, key=self._amounts.__getitem__)
        if self._used is not None and not self._used[node]:
            return False
        only = self._journal.outlooks.only([node])
        for other in self._source.sample(self.hosts, min(len(self.hosts), _SENDERS)):
            if other == node or not (there := list(self._anew(other))):
                continue
            leaver = self._source.choice(there)
            mark = self._journal.mark()
            self._journal.leave(leaver)
            if not self._journal.place(leaver.shape, only):
                self._journal.undo(mark)
        return True

    def _enter(self, node: int) -> None:
        super()._enter(node)
        self._amounts[node] = self._now[node]
        if self._used is not None:
            self._used[node] = bool(self._fill(node).slots)


class _Useless:
    """What of the idle GPU of nodes nobody expected can use, in thousandths times weights (S5.5)."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._millis = {shape.index: shape.request.gpu_milli for shape in problem.shapes}
        self._makes: dict[int, _Make | None] = {}

    def on(self, node: int, fill: Fill) -> int:
        """Return it for a node that holds something."""
        number = self._problem.makes.of[node]
        if number not in self._makes:
            self._makes[number] = self._make(self._problem.nodes[node])
        make = self._makes[number]
        return make.of(pattern_of(self._millis, fill)) if make is not None else 0

    def _make(self, node: Node) -> _Make | None:
        shapes = [shape.index for shape in self._problem.shapes]
        idling = Idling.on(self._problem, node, shapes)
        tier = fragmentation_of(self._problem.tiers)
        if idling is None or tier is None:
            return None
        use = IdleUse(self._problem, tier)
        weight = tier.judge.weight
        empty = weight * MILLI * len(node.healthy_gpus()) - idling.most
        return _Make(idling, empty, {s: weight * use.taken(s, node) for s in shapes})


@dataclass(frozen=True, slots=True)
class _Make:
    """What contents of nodes of a make leave useless.

    Parameters
    ----------
    empty : what is useless of a node that holds nothing.
    taken : what a replica of each shape has of the node that is not idle, times the weight of all that is expected.
    """

    idling: Idling
    empty: int
    taken: Mapping[int, int]
    known: dict[Pattern, int] = field(default_factory=dict)

    def of(self, pattern: Pattern) -> int:
        if pattern not in self.known:
            taken = sum(self.taken[s] * count for s, count in counts_of(pattern).items())
            self.known[pattern] = self.empty + self.idling.lost(pattern) - taken
        return self.known[pattern]
