"""Several ways to make a state better, in turns: who finds something goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

_VAIN = 3  # steps in a row that found nothing
_MOST = 12  # steps


def in_turns(ways: Iterable[Iterator[bool]]) -> None:
    """Take steps of each way in turn, until all have ended.

    Parameters
    ----------
    ways : each yields, step by step, whether the step found anything.
    """
    waiting = deque(ways)
    while waiting:
        way = waiting.popleft()
        if _turn(way):
            waiting.append(way)


def _turn(way: Iterator[bool]) -> bool:
    """Take steps until several in a row were in vain, or there were many; tell whether there may be more."""
    vain = 0
    for taken, found in enumerate(way, start=1):
        vain = 0 if found else vain + 1
        if vain == _VAIN or taken == _MOST:
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
