"""What it costs that somebody leaves for work of a higher band, in the tiers of a plan (S5.1, S5.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dovetail.engine.construction.leavers import Leaver
from dovetail.objectives.disruption import lost_seconds, lost_with_all
from dovetail.problem import Problem

_BITS = 64  # of each measure of a price

Price = int
"""What is lost in the tiers from the highest band of victims on (S5.1), each measure above all that come after it."""


class Toll(NamedTuple):
    """What it costs that a replica leaves, and the workload that is evicted thereby, which costs once."""

    price: Price
    evicts: str = ""


class Prices:
    """What it costs that replicas are elsewhere, or nowhere.

    Parameters
    ----------
    band : of what they give way to.

    `most` is above all of them; `evicts` is what each workload costs of which anybody is evicted, but for those that
    are hit already; `turn` is another number whenever these are others.
    """

    def __init__(self, problem: Problem, band: int) -> None:
        self._problem = problem
        lower = sorted(each for each in problem.spec.bands if each < band)
        self._shift = {each: (3 + place) * _BITS for place, each in enumerate(lower)}
        self.most: Price = 1 << (4 + len(lower)) * _BITS
        self.evicts: Price = 1 << 2 * _BITS
        self._hit = Counter[str]()
        self.turn = 0

    def hit(self, workload: str, times: int = 1) -> None:
        """Count on it that a workload is hit so many times more, or fewer: whoever else of it goes costs less."""
        self._hit[workload] += times
        self.turn += 1

    def evicted(self, leavers: Sequence[Leaver]) -> Toll:
        """Return what it costs that replicas of one workload go without a place."""
        workload = self._problem.shapes[leavers[0].shape].workload
        value = sum(max(1, self._problem.shapes[each.shape].members[0].role.value) for each in leavers)
        first = leavers[0].place is not None and not self._hit[workload.id]
        above = value << self._shift[self._problem.spec.band_of(workload)]
        return Toll(above + (self._lost(leavers, moved=False) << _BITS), workload.id if first else "")

    def total(self, tolls: Iterable[Toll]) -> Price:
        """Return what all of some cost together."""
        each = list(tolls)
        return sum(toll.price for toll in each) + self.evicts * len({toll.evicts for toll in each if toll.evicts})

    def moved(self, leaver: Leaver) -> Price:
        """Return what it costs that a replica goes on elsewhere: nothing where it came anew."""
        return (self._lost([leaver], moved=True) << _BITS) + leaver.moves

    def _lost(self, leavers: Sequence[Leaver], *, moved: bool) -> int:
        """Return the milli-GPU seconds of work that are lost."""
        problem, workload = self._problem, self._problem.shapes[leavers[0].shape].workload
        running = [each.shape for each in leavers if each.place is not None]
        if workload.atomic and running:
            return lost_with_all(problem.spec, workload, problem.context.running[workload.id])
        milli = sum(problem.shapes[shape].request.gpu_milli for shape in running)
        return milli * lost_seconds(problem.spec, workload, moved=moved)
