"""Which of the shapes that wait to look for next: earlier bands first, and not for ever what there is no room for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import exp, sqrt
from random import Random

from dovetail.problem import Problem

_NEXT_BAND = 0.25  # of the chance of a band, that of the next one
_BAND_FADES, _SHAPE_FADES = 0.7, 2.0  # exponents of what is left of a chance once all hosts were looked at in vain
_VAIN = 50.0  # times, from where on it makes no difference


class Wanted:
    """Draws shapes, reproducibly.

    Where hosts are many, to look for the same shape once more is to look elsewhere; so chances fade by the part of
    its hosts that was looked at in vain, and are whole again once anything was found.

    Parameters
    ----------
    worth : of a replica, per shape.
    """

    def __init__(self, problem: Problem, worth: Mapping[int, float], source: Random) -> None:
        self._worth, self._source = worth, source
        self._bands = {shape.index: problem.spec.band_of(shape.workload) for shape in problem.shapes}
        self._shapes_in_vain = defaultdict[int, float](float)  # how often all hosts were looked at
        self._bands_in_vain = defaultdict[int, float](float)

    def draw(self, waiting: Sequence[int]) -> int:
        """Return one of some shapes: first its band is drawn, then one of that by the root of its worth."""
        bands = sorted({self._bands[s] for s in waiting})
        fading = [exp(-_BAND_FADES * self._bands_in_vain[band]) for band in bands]
        chances = [_NEXT_BAND ** (len(bands) - number) * share for number, share in enumerate(fading, 1)]
        band = self._source.choices(bands, chances)[0]
        own = [s for s in waiting if self._bands[s] == band]
        return self._source.choices(own, [self._chance(s) for s in own])[0]

    def _chance(self, shape: int) -> float:
        return sqrt(self._worth[shape]) * exp(-_SHAPE_FADES * self._shapes_in_vain[shape])

    def learn(self, shape: int, looked: float, *, found: bool) -> None:
        """Take what came of a look at a part of a shape's hosts."""
        for vain, about in (self._shapes_in_vain, shape), (self._bands_in_vain, self._bands[shape]):
            vain[about] = 0.0 if found else min(_VAIN, vain[about] + looked)
