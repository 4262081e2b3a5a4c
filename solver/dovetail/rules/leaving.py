"""How many of those that run must leave their places for a plan to break less than today does.

Arithmetic on the documents, whatever room there is: of three replicas on a node that is to hold one, two leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


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


def thinned(counts: Mapping[str, int], most: int) -> tuple[int, ...]:
    """Return `Leaving.fewer` where each of some domains may hold `most` replicas, and one more for each violation."""
    over = [count - most for count in counts.values() if count > most]
    return tuple(sum(each > kept for each in over) for kept in range(max(over, default=0)))
