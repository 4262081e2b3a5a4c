"""How many nodes of each kind are in use at the least cost: the LP over kinds of nodes, led to whole numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf

from dovetail.engine.fleet.fleet_lp import FleetLp
from dovetail.progress import Stop
from dovetail.proof.fleet_models import Within

_WHOLE = 1e-4
_STEPS = 20_000  # numbers change little from one LP to the next
_NEAR = 0.15  # of a node: numbers so near to whole ones are rounded together

Numbers = Mapping[int, int]


def nodes_in_use(
    lp: FleetLp, tier: str, given: Mapping[str, int], limits: Within, until: float | None, stop: Stop
) -> Mapping[int, int] | None:
    """Return how many nodes of each kind that has a price to use, so that they cost about the least.

    Sums of kinds are rounded first, up or down as the LP then costs less, and then single kinds to what is nearer.
    Where time runs out before, those of which it has the largest parts are up. None where there is no time at all.

    Parameters
    ----------
    tier : the cost; `given` what earlier tiers are to reach, greater being better.
    limits : the case to begin with, as where a proof has told cases apart.
    until : when to stop, on the monotonic clock.
    """
    try:
        return _Dive(lp, tier, given, limits, until).run(stop)
    finally:
        lp.confine({})


@dataclass(slots=True)
class _Dive:
    """An LP, the numbers that are fixed so far, and its last solution with them."""

    lp: FleetLp
    tier: str
    given: Mapping[str, int]
    limits: Within
    until: float | None
    fixed: dict[int, int] = field(default_factory=dict)
    values: Sequence[float] = ()

    def run(self, stop: Stop) -> Mapping[int, int] | None:
        reached = self._reached({})
        while reached is not None and (parts := self._parts()) and not stop:
            several = self.lp.fleet.in_use[next(iter(parts))] > 1
            reached = self._round_sum(parts) if several else self._round_single(parts)
        return self._numbers() if self.values else None

    def _numbers(self) -> Mapping[int, int]:
        """Return the last solution in whole numbers: where it has parts, those are up that are largest."""
        used_of = self.lp.fleet.used_of
        exact = {kind: self.values[used] for kind, used in enumerate(used_of) if used is not None}
        found = {kind: floor(value + _WHOLE) for kind, value in exact.items()}
        parts = sorted(exact, key=lambda kind: found[kind] - exact[kind])
        for kind in parts[: ceil(sum(exact.values()) - _WHOLE) - sum(found.values())]:
            found[kind] += 1
        return found

    def _round_sum(self, parts: Mapping[int, float]) -> float | None:
        """Fix the first sum at whichever of its neighbours costs less; return what the LP reaches then."""
        total, value = next(iter(parts.items()))
        ways = sorted((floor(value), ceil(value)), key=lambda number: -abs(number - value))
        reached = {number: self._reached({total: number}) for number in ways}  # the likelier one last
        best = max(ways, key=lambda number: -inf if (found := reached[number]) is None else found)
        self.fixed[total] = best
        return reached[best] if best == ways[-1] else self._reached({})

    def _round_single(self, parts: Mapping[int, float]) -> float | None:
        """Fix single kinds at what is nearer, all that are near at once; return what the LP reaches then."""
        near = {kind: round(value) for kind, value in parts.items() if abs(value - round(value)) <= _NEAR}
        kind, value = min(parts.items(), key=lambda each: abs(each[1] - round(each[1])))
        first, other = round(value), floor(value) + ceil(value) - round(value)
        for numbers in ([near] if len(near) > 1 else []) + [{kind: first}, {kind: other}]:
            if (reached := self._reached(numbers)) is not None:
                self.fixed.update(numbers)
                return reached
        return None

    def _reached(self, more: Numbers) -> float | None:
        """Return what the LP reaches with some more numbers fixed; None where that is no solution, or time is up."""
        left = None if self.until is None else self.until - time.monotonic()
        if left is not None and left <= 0:
            return None
        fixed = {**self.fixed, **more}
        near = self._within(self.fixed) if fixed else None
        self.lp.confine(self._within(fixed))
        reached = self.lp.optimise(self.tier, self.given, seconds=left, like=near, steps=_STEPS)
        if not self.lp.complete:  # time is up
            return None
        dearest = sum(kind.size * kind.node.full_price for kind in self.lp.fleet.kinds)
        if reached < -dearest:  # earlier tiers fall short
            return None
        self.values = self.lp.values()
        return reached

    def _within(self, fixed: Numbers) -> Within:
        """Return the limits of a case with some numbers fixed."""
        return {**self.limits, **{variable: (number, number) for variable, number in fixed.items()}}

    def _parts(self) -> dict[int, float]:
        """Return the sums of nodes of which the solution has parts, those of most kinds first."""
        parts = {variable: self.values[variable] for variable in self.lp.fleet.in_use}
        return {v: x for v, x in parts.items() if v not in self.fixed and abs(x - round(x)) > _WHOLE}
