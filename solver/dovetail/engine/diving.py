"""From the LP over patterns to whole nodes: settle what the LP is sure of, price again on the rest (E3)."""

from __future__ import annotations

from math import floor

from dovetail.engine.patterns import Column, Master, Mixture
from dovetail.engine.pricing import Pricing

Chosen = list[tuple[Column, int]]

_WHOLE = 1e-6
_SURE = 0.7  # fractions from here on are rounded up, several in one step
_AT_ONCE = 0.1  # of the nodes left, that such a step may settle
_ROUNDS = 10  # of pricing after each step
_CLOSE = 1e-6


def dive(master: Master, mixture: Mixture, pricing: Pricing) -> Chosen:
    """Settle all nodes of a master on whole patterns; those it finds none for are left out.

    After every step the LP is solved again for the nodes and demand that are left, and patterns are priced until it
    is worth what it was before, as far as budget allows. The master is left as the dive ends.
    """
    chosen: Chosen = []
    while sum(master.sizes.values()):
        aim = mixture.value
        settled = _step(master, mixture, first=not chosen)
        if not settled:
            break
        chosen += settled
        aim -= sum(master.worth_of(column) * times for column, times in settled)
        master.refresh()
        mixture = pricing.settle(master, pricing.solve(master), _ROUNDS, aim * (1 - _CLOSE))
    return chosen


def _step(master: Master, mixture: Mixture, *, first: bool) -> Chosen:
    """Settle whole parts of the mixture and, but for the first step, fractions near one; at least something."""
    settled: Chosen = []
    rest: list[tuple[float, int]] = []
    for index, uses in mixture.uses.items():
        whole = floor(uses + _WHOLE)
        _take(master, index, whole, settled)
        rest.append((whole - uses, index))
    if settled and first:
        return settled
    limit = max(1, int(_AT_ONCE * sum(master.sizes.values())))
    for minus, index in sorted(rest):
        if minus > -_WHOLE or (settled and -minus < _SURE):
            break
        limit -= _take(master, index, 1, settled)
        if limit <= 0:
            break
    return settled


def _take(master: Master, index: int, times: int, settled: Chosen) -> int:
    column = master.columns[index]
    times = min(times, master.times(column))
    if times > 0:
        master.take(column, times)
        settled.append((column, times))
    return max(0, times)
