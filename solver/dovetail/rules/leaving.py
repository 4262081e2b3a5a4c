"""How many of those that run must leave their places for a plan to break less than today does.

Arithmetic on the documents, whatever room there is: of three replicas on a node that is to hold one, two leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Leaving:
    """Those who must leave for one subject of a rule (S4.5).

    Parameters
    ----------
    workloads : whose replicas they may be.
    fewer : by how many fewer must leave for each violation that the subject keeps, from none on; never by more than
        for the one before. Added up they are those who must leave where it keeps none.
    """

    workloads: frozenset[str]
    fewer: tuple[int, ...]

    @classmethod
    def each(cls, workloads: Iterable[str], count: int) -> Leaving:
        """Return that one must leave for each of so many violations."""
        return cls(frozenset(workloads), (1,) * count)


def must_leave(policies: Iterable[Sequence[Leaving]], kept: int, each: Callable[[str], int]) -> int:
    """Return what is lost at the least by those who leave in a plan that keeps so many violations in all.

    Parameters
    ----------
    policies : those who must leave for each policy; its subjects have no replica in common. Of policies that may mean
        the same replicas the one counts for which more is lost.
    each : what is lost at the least with one replica of a workload.
    """
    found = [_losses(own, each) for own in policies]
    counted, seen = list[int](), set[str]()
    for losses, whose in sorted(found, key=lambda one: (-sum(one[0]), sorted(one[1]))):
        if seen.isdisjoint(whose):
            seen |= whose
            counted += losses
    return sum(sorted(counted, reverse=True)[kept:])


def _losses(own: Iterable[Leaving], each: Callable[[str], int]) -> tuple[list[int], frozenset[str]]:
    """Return what is lost less for each violation that is kept of one policy, and with whom."""
    losses, whose = list[int](), set[str]()
    for leaving in own:
        if leaving.fewer:
            least = min(map(each, leaving.workloads))
            losses += (fewer * least for fewer in leaving.fewer)
            whose |= leaving.workloads
    return losses, frozenset(whose)


def evened(counts: Sequence[int], most: int, skew: int) -> tuple[int, ...]:
    """Return `Leaving.fewer` where domains may differ by `skew`, and by one more for each violation.

    With n replicas in the emptiest domain in the end, those leave of whom a domain has more than n and what it may be
    ahead by; and as many come to domains that have less than n, of whom only those are new who are not there yet.

    Parameters
    ----------
    counts : the replicas of a workload in each domain that it may use, all of which stay or move.
    most : how many replicas there may be in all.
    """
    there, domains = sum(counts), len(counts)
    new = most - there
    leave: list[int] = []
    while not leave or leave[-1]:
        ahead = skew + len(leave)
        least = max(0, -(-there // domains) - ahead)
        ends = range(least, most // domains + 1)  # of the emptiest domain; none where nothing is so even
        leave.append(min((max(_over(counts, n + ahead), _short(counts, n) - new) for n in ends), default=there))
    return _descending(leave)


def _over(counts: Sequence[int], most: int) -> int:
    return sum(max(0, count - most) for count in counts)


def _short(counts: Sequence[int], least: int) -> int:
    return sum(max(0, least - count) for count in counts)


def _descending(values: list[int]) -> tuple[int, ...]:
    """Return by how much falling values fall, never by more than before; they are lowered where they would."""
    bends = True
    while bends:
        bends = False
        for i in range(1, len(values) - 1):
            if 2 * values[i] > values[i - 1] + values[i + 1]:
                values[i], bends = (values[i - 1] + values[i + 1]) // 2, True
    return tuple(a - b for a, b in pairwise(values))
