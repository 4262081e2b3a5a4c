"""Which of the shapes that wait to look for next: earlier bands first, and not for ever what there is no room for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from math import exp, sqrt
from random import Random

from dovetail.problem import Problem

_NEXT_BAND = 0.25  # of the chance of a band, that of the next one
_BAND_FADES, _SHAPE_FADES = 0.7, 2.0  # exponents of what is left of a chance once all hosts were looked at in vain
_PLANNED = 8.0  # times the chance of a shape of which a whole fleet's LP has more than there are
_VAIN = 50.0  # times, from where on it makes no difference


class Wanted:
    """Draws shapes, reproducibly.

    Where hosts are many, to look for the same shape once more is to look elsewhere; so chances fade by the part of
    its hosts that was looked at in vain, and are whole again once anything was found.

    Parameters
    ----------
    worth : of a replica, per shape.
    planned : replicas per shape that the LP of a whole fleet has.

    `bands` are those of all shapes.
    """

    def __init__(
        self, problem: Problem, worth: Mapping[int, float], planned: Mapping[int, int], source: Random
    ) -> None:
        self._worth, self._planned, self._source = worth, planned, source
        self.bands: Mapping[int, int] = {
            shape.index: problem.spec.band_of(shape.workload) for shape in problem.shapes
        }
        self._shapes_in_vain = defaultdict[int, float](float)  # how often all hosts were looked at
        self._bands_in_vain = defaultdict[int, float](float)

    def draw(self, waiting: Mapping[int, int]) -> int:
        """Return one of some shapes: first its band is drawn, then one of that by the root of its worth.

        Parameters
        ----------
        waiting : how many there are by now, of each shape of which some wait.
        """
        bands = sorted({self.bands[s] for s in waiting})
        fading = [exp(-_BAND_FADES * self._bands_in_vain[band]) for band in bands]
        chances = [_NEXT_BAND ** (len(bands) - number) * share for number, share in enumerate(fading, 1)]
        band = self._source.choices(bands, chances)[0]
        own = [s for s in waiting if self.bands[s] == band]
        return self._source.choices(own, [self._chance(s, waiting[s]) for s in own])[0]

    def lacks(self, shape: int, there: int) -> bool:
        """Tell whether there are fewer replicas of a shape than planned."""
        return there < self._planned.get(shape, 0)

    def _chance(self, shape: int, there: int) -> float:
        more = _PLANNED if self.lacks(shape, there) else 1.0
        return more * sqrt(self._worth[shape]) * exp(-_SHAPE_FADES * self._shapes_in_vain[shape])

    def learn(self, shape: int, looked: float, *, found: bool) -> None:
        """Take what came of a look at a part of a shape's hosts."""
        for vain, about in (self._shapes_in_vain, shape), (self._bands_in_vain, self.bands[shape]):
            vain[about] = 0.0 if found else min(_VAIN, vain[about] + looked)
