"""Ruin and recreate: a few replicas are taken off and placed one by one where they now spoil least.

Source: Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record breaking optimization results using the ruin and
recreate principle", Journal of Computational Physics 159, 2000. Who is placed one by one takes the best place of that
time; taken off together with others, and placed in another order, all find better ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import ClassVar

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import Leaver, Leavers
from dovetail.engine.construction.placing import Outlooks
from dovetail.model.state import State
from dovetail.problem import Problem

_WHOLE = 0.5  # of the times, that nodes lose all that came anew (measured, as all of these)
_NODES = 3  # that lose all that came anew at a time, at most
_REPLICAS = 8  # that leave a node each, at most
_MOST = 12  # replicas that are taken off at a time


class Whereabouts:
    """The nodes to which replicas of each shape came anew, or did once: who looks there in vain forgets it."""

    def __init__(self) -> None:
        self._nodes: dict[int, dict[int, None]] = defaultdict(dict)

    def enter(self, node: int, there: Iterable[Leaver]) -> None:
        """Take note of who came to a node anew."""
        for leaver in there:
            self._nodes[leaver.shape][node] = None

    def of(self, shape: int) -> Sequence[int]:
        """Return the nodes to look at for one of a shape."""
        return list(self._nodes.get(shape, ()))

    def __contains__(self, shape: int) -> bool:
        """Tell whether there are any."""
        return bool(self._nodes.get(shape))

    def forget(self, shape: int, node: int) -> None:
        """Forget a node on which none of a shape was found."""
        del self._nodes[shape][node]

    def one_of(
        self,
        shape: int,
        source: Random,
        anew: Callable[[int], Iterable[Leaver]],
        among: Callable[[int], object] = lambda _: True,
    ) -> Leaver | None:
        """Return one of a shape that came anew to a node, or to one `among` some, None where there is none."""
        while nodes := [node for node in self.of(shape) if among(node)]:
            node = source.choice(nodes)
            if found := next((each for each in anew(node) if each.shape == shape), None):
                return found
            self.forget(shape, node)
        return None


class Ruins(ABC):
    """Places anew, few by few, what came anew to the nodes of a state.

    Who runs where it did, and what stands or falls together, stays where it is.

    Parameters
    ----------
    source : draws who is taken off.
    pinned : workloads that may not move.

    `hosts` are the nodes to which anything came anew that may leave them; `work` is the units of work of an attempt,
    and `wanders` tells whether they go on from states that are no better.
    """

    work: ClassVar[float] = 0.0005
    wanders: ClassVar[bool] = False

    def __init__(self, problem: Problem, state: State, source: Random, pinned: frozenset[str] = frozenset()) -> None:
        self._field = Field(problem, state)
        self._journal = Journal(Outlooks(self._field))
        self._leavers = Leavers(self._field, pinned)
        self._source = source
        self.hosts = [node for node in state.fills if any(self._anew(node))]
        self._known = set(self.hosts)

    @property
    def over(self) -> bool:
        """Whether there is nothing to place anew."""
        return not self.hosts

    def attempts(self, number: int, over: Callable[[], bool]) -> bool:
        """Take some replicas off and place them anew, so many times; tell whether that made anything better.

        Parameters
        ----------
        over : tells when to try no more.
        """
        better = False
        for _ in range(number):
            if self.over or over():
                break
            better |= self._attempt()
        return better

    def shake(self, number: int) -> None:
        """Take some replicas off and place them anew, so many times, though it makes things worse."""
        for _ in range(number):
            if not self.over:
                self._attempt(worse=True)

    def state(self) -> State:
        """Return what nodes hold now."""
        return self._field.state()

    def _attempt(self, *, worse: bool = False) -> bool:
        """Place some replicas anew, as long as that is no worse, or though it is; tell whether it is better."""
        turn = self._field.turn
        more = self._ruin(turn)
        if more is None or not (worse or self._takes(more)):
            self._journal.undo()
            return False
        self._journal.keep()
        for node in np.flatnonzero(self._field.touched > turn).tolist():
            self._enter(node)
        return self._is_better(more)

    def _takes(self, more: int) -> bool:
        """Tell whether to go on from what is so much better, or worse."""
        return more >= 0

    def _is_better(self, more: int) -> bool:
        """Tell whether what was taken, so much better or worse, is better than all before."""
        return more > 0

    @abstractmethod
    def _ruin(self, turn: int) -> int | None:
        """Take some replicas off and place them anew; return how much better that is, None where it may not be.

        Parameters
        ----------
        turn : that of the field before.
        """

    def _enter(self, node: int) -> None:
        """Take note of a node that holds something else than before."""
        if node not in self._known:
            self._known.add(node)
            self.hosts.append(node)

    def _anew(self, node: int) -> Iterator[Leaver]:
        """Yield what came to a node anew and may leave it."""
        return self._leavers.anew(node)

    def _makes_way(self, node: int, fits: Callable[[], object], like: Leaver | None = None) -> list[Leaver] | None:
        """Take off what came to a node, one by one in any order, until somebody fits; return it, None if nobody does.

        Parameters
        ----------
        fits : places that somebody if there is room, and tells whether there was.
        like : somebody of about whose size they are to be, those first that are nearest.
        """
        there, off = list(self._anew(node)), list[Leaver]()
        self._source.shuffle(there)
        if like is not None:
            shapes = self._field.problem.shapes
            size = shapes[like.shape].request.gpu_milli
            there.sort(key=lambda each: -abs(shapes[each.shape].request.gpu_milli - size))
        while not fits():
            if not there:
                return None
            off.append(there.pop())
            self._journal.leave(off[-1])
        return off

    def _taken_off(self) -> list[Leaver]:
        """Take some replicas off; return them."""
        return self._off(self._drawn())

    def _off(self, leavers: Iterable[Leaver]) -> list[Leaver]:
        """Take replicas off, once it is known which; return them."""
        found = list(leavers)
        for leaver in found:
            self._journal.leave(leaver)
        return found

    def _drawn(self) -> Iterator[Leaver]:
        """Yield who is taken off: all that came anew to a few nodes, or one replica each of several."""
        whole = self._source.random() < _WHOLE
        most = min(self._source.randint(1, _NODES if whole else _REPLICAS), len(self.hosts))
        left = _MOST
        for node in self._source.sample(self.hosts, most):
            there = list(self._anew(node))
            chosen = self._source.sample(there, min(left if whole else 1, len(there)))
            left -= len(chosen)
            yield from chosen
