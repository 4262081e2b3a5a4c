"""From the LP over patterns to whole nodes: settle what the LP is sure of, price again on the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import cbrt, floor, inf
from typing import Final, NamedTuple

from dovetail.engine.contents.patterns import Column, Mixture
from dovetail.engine.generation.master import Master
from dovetail.engine.generation.pricing import Pricing

Chosen = list[tuple[Column, int]]

_WHOLE = 1e-6
_SURE = 0.7, 0.5  # fractions from here on are rounded up, several in one step; the same where a dive is slow
_END = 0.35  # of the time and work, kept for the nodes that are settled last
_LATE = 0.01  # of the nodes, that a dive may be behind its time
_DEAR = 0.5  # of the price per GPU of the dearest node left
_AT_ONCE = 0.1  # of the nodes left, that such a step may settle
_ROUNDS = 60  # of pricing after each step
_DEARLY = 10.0, 100.0  # times what is no matter: what a step may cost, also where a dive is slow
_LOST = 2.0  # times the same: where a step lost more, its LP has its part of the time and work once more
_MORE = 3  # times
_CHANCES = 40  # steps that may be taken back because they cost more
_IN_A_ROW = 6  # of these, until one is taken that costs more
_AGAIN, _AGAIN_SHARE = 10, 0.5  # times, and of the time and the work that are left then
_LAST = 10  # nodes that are settled last, and once more in whole numbers
_REST = 0.5  # of the time and work left, where those nodes come next that are settled all at once
_SECONDS = 3.0  # that whole numbers may take where time is limited

TAILS: Final = (60.0, 25.0)
"""Nodes that the LP still uses, few enough to settle all at once: at first, and once more."""


def dive(
    master: Master, mixture: Mixture, pricing: Pricing, rounds: int = _ROUNDS, tails: Sequence[float] = TAILS
) -> list[Chosen]:
    """Settle all nodes of a master on whole patterns; those it finds none for are left out.

    Returns the ends that this came to, the best first.

    After every step the LP is solved again for the nodes and demand that are left, and patterns are priced until it
    is worth what it was before, as far as budget allows. A single node that costs too much is settled otherwise, up
    to some number of times. The master is left as the dive ends.

    Each step may take its part of the work and time that are left, so that a dive comes to its end: the fewer the
    nodes, the more for each. Where it is slow all the same, more is settled at once and only what costs very much is
    taken back. Once few nodes are left, all of these are settled in whole numbers at once; where that loses much,
    step by step as well, with a second attempt on the way, and the best of these ends counts.

    Without such tails the LP has more time where a step lost anything, the last nodes are settled in whole numbers as
    well, of all patterns that steps came to, and the dive goes back to the steps that lost most, and on from there
    another way.

    Parameters
    ----------
    tails : numbers of nodes that the LP still uses, few enough to settle all at once.
    """
    diving = _Dive(master, pricing, rounds, list(tails) if rounds else [], rounds > 0 and not tails)
    diving.down(mixture)
    if diving.goes_back:
        diving.again()
    pricing.pause_after(1, 1)
    return [found for _, found in sorted(diving.ends, key=lambda end: -end[0])]


class _Step(NamedTuple):
    """A step of a dive: what it settled, what that lost, and the columns that the LP used before."""

    settled: Chosen
    lost: float
    before: Sequence[Column]


@dataclass(slots=True)
class _Dive:
    """A dive on its way: its steps, and the ends that it came to with their worth.

    Parameters
    ----------
    tails : numbers of nodes in use, at which all of them are settled at once as well.
    goes_back : whether it goes back to steps that lose much, and prices for long what they lost.
    """

    master: Master
    pricing: Pricing
    rounds: int
    tails: list[float]
    goes_back: bool
    steps: list[_Step] = field(default_factory=list)
    ends: list[tuple[float, Chosen]] = field(default_factory=list)

    def down(self, mixture: Mixture) -> None:
        """Settle what is left, step by step."""
        master, pricing, rounds = self.master, self.pricing, self.rounds
        chances, row, at_once = _CHANCES, 0, _AT_ONCE
        pace: _Pace | None = None
        while any(master.sizes):
            if self._all_at_once(mixture):
                return
            nodes = _before_end(mixture, self.tails)
            behind = pace is not None and pace.behind(nodes)
            sure = 0.0 if pricing.hurried else _SURE[behind]
            in_use = _in_use(master, mixture)
            settled = _step(master, mixture, first=not self.steps, sure=sure, at_once=at_once)
            if not settled:
                break
            if rounds:  # otherwise the caller's mixture is still of use
                master.narrow(mixture)
            before = mixture
            keep_pace = partial(_keep_pace, pricing, nodes, settled)
            more = keep_pace if self.goes_back and not behind else None
            keep_pace()
            mixture = _priced(master, pricing, rounds, before, more)
            pace = pace or _Pace(pricing, _before_end(mixture, self.tails))
            retry = rounds and row < min(chances, _IN_A_ROW) and (at_once or _alone(settled))
            at_once = _AT_ONCE
            lost = before.value - mixture.value
            if self.steps and retry and _too_dear(lost, master, settled, pricing, slow=behind):
                chances -= 1
                keep_pace()
                mixture, settled = self._otherwise(_Step(settled, lost, in_use), mixture, before, more)
                at_once = _AT_ONCE if settled else 0.0
            row = 0 if settled else row + 1
            self.steps += [_Step(settled, before.value - mixture.value, in_use)] if settled else []
        self.ends.append((mixture.value, self._chosen))
        if self.goes_back and self.steps and not pricing.hurried:
            self._end_better()

    def _end_better(self) -> None:
        """Choose patterns of the nodes that were settled last in whole numbers, of all that the way down came to."""
        master, least = self.master, self.ends[-1][0] + self.master.wish.grain
        last: list[_Step] = []
        while self.steps and sum(times for step in last for _, times in step.settled) < _LAST:
            last.append(self.steps.pop())
        known = [each for step in last for each in step.settled]
        self._undo(last)
        found = self.pricing.whole(master, self.pricing.solve(master), _SECONDS, known, least)
        if found.value > least:
            self.ends.append((found.value, self._chosen + found.chosen))
        for step in reversed(last):
            for column, times in step.settled:
                master.take(column, times)
        self.steps += reversed(last)

    def _undo(self, steps: Sequence[_Step]) -> None:
        """Take steps back, and have those patterns again that the LP used before them and may have dropped since."""
        for step in steps:
            for column, times in step.settled:
                self.master.take(column, -times)
            _bring_back(self.master, step.before)
        self.master.refresh()

    def again(self) -> None:
        """Go back to before the step that lost most, settle otherwise from there on, and so again and again."""
        master, pricing = self.master, self.pricing
        until, least = pricing.budget.moment(_AGAIN_SHARE), (1 - _AGAIN_SHARE) * pricing.budget.work
        tried = {0}
        for _ in range(_AGAIN):
            late = pricing.hurried or pricing.budget.late(until) or pricing.budget.work <= least
            others = (i for i in range(len(self.steps)) if i not in tried)
            back = max(others, key=lambda i: self.steps[i].lost, default=None)
            if late or back is None or self.steps[back].lost <= _DEARLY[0] * master.wish.grain:
                return
            tried.add(back)
            undone = self.steps[back:]
            del self.steps[back:]
            for column, _ in undone[0].settled:
                master.ban(column)
            self._undo(undone)
            pricing.pause_after(_REST, _REST)
            self.down(pricing.settle(master, pricing.solve(master), self.rounds, inf))

    def _otherwise(
        self, step: _Step, mixture: Mixture, before: Mixture, more: Callable[[], None] | None
    ) -> tuple[Mixture, Chosen]:
        """Take a step back, for good if the LP is worth more without; return it, and what stays settled.

        Several nodes are settled one by one then. A pattern on a single node is left out from then on.

        Parameters
        ----------
        mixture : after the step; `before` is what there was before it.
        """
        master, pricing = self.master, self.pricing
        in_use = _in_use(master, mixture)
        self._undo([step])
        if not _alone(step.settled):
            return pricing.solve(master), []
        column = step.settled[0][0]
        master.ban(column)
        other = _priced(master, pricing, self.rounds, before, more)
        if other.value > mixture.value:
            return other, []
        master.allow(column)
        master.take(column, 1)
        _bring_back(master, in_use)
        master.refresh()
        return pricing.solve(master), step.settled

    @property
    def _chosen(self) -> Chosen:
        return [each for step in self.steps for each in step.settled]

    def _all_at_once(self, mixture: Mixture) -> bool:
        """Settle all that is left in whole numbers, where that is few enough; tell whether it is as good."""
        if not self.tails or sum(mixture.uses.values()) > self.tails[0] or self.pricing.spent:
            return False
        self.tails.pop(0)
        found = self.pricing.whole(self.master, mixture, _SECONDS)
        self.ends.append((found.value, self._chosen + found.chosen))
        return mixture.value - found.value <= _DEARLY[0] * self.master.wish.grain * len(found.chosen)


def _in_use(master: Master, mixture: Mixture) -> list[Column]:
    """Return the columns that an LP's last solution uses."""
    return [master.columns[index] for index in mixture.uses]


def _bring_back(master: Master, columns: Sequence[Column]) -> None:
    """Add the patterns of columns, as far as they were dropped since."""
    for column in columns:
        master.add(column.lot, column.pattern)


def _before_end(mixture: Mixture, tails: list[float]) -> float:
    """Return how many nodes an LP uses but for those that are settled all at once."""
    return sum(mixture.uses.values()) - max(tails, default=0.0)


class _Pace:
    """Tells whether a dive goes through its nodes as fast as through its time and work.

    Parameters
    ----------
    nodes : in use and not settled, those of the end left out, once the whole parts of the mixture are settled.
    """

    def __init__(self, pricing: Pricing, nodes: float) -> None:
        self._pricing, self._nodes = pricing, nodes
        self._begun = pricing.left

    def behind(self, nodes: float) -> bool:
        """Tell whether a smaller share of time or work is left than of nodes, but for what is kept for the end."""
        left = min(now / max(before, _WHOLE) for now, before in zip(self._pricing.left, self._begun, strict=True))
        return (left - _END) / (1 - _END) < nodes / max(self._nodes, 1.0) - _LATE


def _keep_pace(pricing: Pricing, nodes: float, settled: Chosen) -> None:
    """Let a step take its part of the work and time that are left: the fewer nodes are left, the more for each.

    Parameters
    ----------
    nodes : in use before the step, those of the end left out.
    """
    left = max(0.0, 1 - sum(times for _, times in settled) / max(nodes, 1.0))
    share = 1 - cbrt(left) if left else _REST
    pricing.pause_after(share, share)


def _priced(
    master: Master, pricing: Pricing, rounds: int, before: Mixture, more: Callable[[], None] | None
) -> Mixture:
    """Return the LP for what is left, priced until it is worth what it was before.

    Parameters
    ----------
    more : gives more of the time and work, some times, where it is worth less for want of these.
    """
    grain = master.wish.grain
    aim, enough = before.value - grain, before.value - _LOST * grain
    master.refresh()
    mixture = pricing.settle(master, pricing.solve(master), rounds, aim)
    for _ in range(_MORE):
        if more is None or mixture.value >= enough or not pricing.over or pricing.hurried:
            break
        more()
        mixture = pricing.settle(master, mixture, rounds, aim)
    return mixture


def _too_dear(lost: float, master: Master, settled: Chosen, pricing: Pricing, *, slow: bool) -> bool:
    """Tell whether a step costs so much that another one is worth a look, or even worth the time of a slow dive.

    Where many nodes had no time for pricing, what they cost may be patterns that are not there yet; very much is not.
    """
    dearly, very = (times * master.wish.grain for times in _DEARLY)
    told = not slow and (_alone(settled) or not pricing.over)
    return not pricing.hurried and lost > (dearly if told else very)


def _alone(settled: Chosen) -> bool:
    """Tell whether a step settled a single node."""
    return len(settled) == 1 and settled[0][1] == 1


def _step(master: Master, mixture: Mixture, *, first: bool, sure: float, at_once: float) -> Chosen:
    """Settle whole parts of the mixture and, but for the first step, fractions near one; at least something.

    Parameters
    ----------
    sure : fractions from here on are settled, as far as they still fit, largest first; 0: all of them.
    at_once : the part of the nodes left that may be settled on fractions.
    """
    settled: Chosen = []
    rest: list[tuple[float, int]] = []
    for index, uses in mixture.uses.items():
        whole = floor(uses + _WHOLE)
        _take(master, index, whole, settled)
        rest.append((whole - uses, index))
    if settled and (first or not at_once) and sure:
        return settled
    limit = max(1, int(at_once * sum(master.sizes))) if sure else sum(master.sizes)
    for minus, index in _in_order(master, mixture, rest):
        if minus > -_WHOLE or (settled and -minus < sure):
            break
        limit -= _take(master, index, 1, settled)
        if limit <= 0:
            break
    return settled


def _in_order(master: Master, mixture: Mixture, rest: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return fractions, less than 0, in the order to round them up: those on the dearest nodes, largest first.

    Where a rule ties many domains to the scarcest one, a node there is worth several others, which follow it.
    """
    fractions = sorted((minus, index) for minus, index in rest if minus < -_WHOLE)
    lots = {index: master.columns[index].lot for _, index in fractions}
    worth = {index: mixture.nodes[lot] / master.rows.lots[lot].gpus for index, lot in lots.items()}
    dear = _DEAR * max(worth.values(), default=0.0)
    return [each for each in fractions if worth[each[1]] >= dear]


def _take(master: Master, index: int, times: int, settled: Chosen) -> int:
    column = master.columns[index]
    times = min(times, master.times(column))
    if times > 0:
        master.take(column, times)
        settled.append((column, times))
    return max(0, times)
