"""Several ways to make a state better, in turns: who finds something goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from dovetail.engine.budget import Budget

_VAIN = 3  # steps in a row that found nothing
_MOST = 12  # steps
_SHARE = 0.1  # of the work or the time that is left at the start of a turn, after which it ends (measured)


def in_turns(ways: Iterable[Iterator[bool]], budget: Budget) -> None:
    """Take steps of each way in turn, until all have ended.

    Parameters
    ----------
    ways : each yields, step by step, whether the step found anything.
    budget : what they all take of.
    """
    waiting = deque(ways)
    while waiting:
        way = waiting.popleft()
        if _turn(way, budget):
            waiting.append(way)


def _turn(way: Iterator[bool], budget: Budget) -> bool:
    """Take steps until several in a row were in vain, or many or long ones taken; tell whether there may be more.

    What one way finds with every step may be less than what another one would.
    """
    vain, least = 0, (1.0 - _SHARE) * budget.units()
    for taken, found in enumerate(way, start=1):
        vain = 0 if found else vain + 1
        if vain == _VAIN or taken == _MOST or budget.units() < least:
            return True
    return False


def several(steps: Iterator[bool], number: int) -> Iterator[bool]:
    """Yield of so many steps at a time whether any of them found anything."""
    while found := list(islice(steps, number)):
        yield any(found)


def longer(steps: Iterator[bool], most: Callable[[], int]) -> Iterator[bool]:
    """Yield steps of which several in a row that found nothing are one.

    Parameters
    ----------
    most : tells of how many, which may change on the way.
    """
    vain = 0
    for found in steps:
        vain = 0 if found else vain + 1
        if found or vain >= most():
            vain = 0
            yield found
