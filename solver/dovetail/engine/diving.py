"""From the LP over patterns to whole nodes: settle what the LP is sure of, price again on the rest (E3)."""

from __future__ import annotations

from collections import Counter
from math import floor
from random import Random

from dovetail.engine.patterns import Column, Master, Mixture
from dovetail.engine.pricing import Pricing

Chosen = list[tuple[Column, int]]

_WHOLE = 1e-6
_SURE = 0.7  # fractions from here on are rounded up, several in one step
_AT_ONCE = 0.1  # of the nodes left, that such a step may settle
_ROUNDS = 10  # of pricing after each step
_CLOSE = 1e-6
_LAST = 40  # nodes settled last, which later dives always take up again
_RELEASED = 0.12  # of all others, that they take up too


def dive(master: Master, mixture: Mixture, pricing: Pricing, rounds: int = _ROUNDS) -> Chosen:
    """Settle all nodes of a master on whole patterns; those it finds none for are left out.

    After every step the LP is solved again for the nodes and demand that are left, and patterns are priced until it
    is worth what it was before, as far as budget allows. The master is left as the dive ends.
    """
    chosen: Chosen = []
    while sum(master.sizes.values()):
        aim = mixture.value
        settled = _step(master, mixture, first=not chosen, hurried=pricing.hurried)
        if not settled:
            break
        chosen += settled
        aim -= sum(master.worth_of(column) * times for column, times in settled)
        master.refresh()
        mixture = pricing.settle(master, pricing.solve(master), rounds, aim * (1 - _CLOSE))
    return chosen


def dive_again(master: Master, chosen: Chosen, everything: Counter[int], pricing: Pricing, source: Random) -> Chosen:
    """Settle some nodes anew, those that were settled last among them; the result may be worse.

    Parameters
    ----------
    everything : replicas per shape that all nodes together may hold.
    """
    kept, sizes = _release(chosen, source)
    demand = Counter(everything)
    for column, times in kept:
        demand.subtract({shape: times * count for shape, count in column.counts.items()})
    master.reset({position: sizes[position] for position in master.sizes}, demand)
    master.refresh()
    mixture = pricing.settle(master, pricing.solve(master), _ROUNDS, pricing.bound - worth(master, kept))
    return kept + dive(master, mixture, pricing)


def worth(master: Master, chosen: Chosen) -> float:
    """Return the value of what nodes were settled on."""
    return sum(master.worth_of(column) * times for column, times in chosen)


def _release(chosen: Chosen, source: Random) -> tuple[Chosen, Counter[int]]:
    """Cut what was chosen into what stays and nodes, per class, that are free again."""
    kept: Chosen = []
    sizes: Counter[int] = Counter()
    late = sum(times for _, times in chosen) - _LAST
    for column, times in chosen:
        late -= times
        freed = times if late < 0 else sum(source.random() < _RELEASED for _ in range(times))
        sizes[column.node_class] += freed
        if times > freed:
            kept.append((column, times - freed))
    return kept, sizes


def _step(master: Master, mixture: Mixture, *, first: bool, hurried: bool) -> Chosen:
    """Settle whole parts of the mixture and, but for the first step, fractions near one; at least something.

    Parameters
    ----------
    hurried : settle all fractions as far as they still fit, largest first.
    """
    settled: Chosen = []
    rest: list[tuple[float, int]] = []
    for index, uses in mixture.uses.items():
        whole = floor(uses + _WHOLE)
        _take(master, index, whole, settled)
        rest.append((whole - uses, index))
    if settled and first and not hurried:
        return settled
    limit = sum(master.sizes.values()) if hurried else max(1, int(_AT_ONCE * sum(master.sizes.values())))
    for minus, index in sorted(rest):
        if minus > -_WHOLE or (settled and -minus < _SURE and not hurried):
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
