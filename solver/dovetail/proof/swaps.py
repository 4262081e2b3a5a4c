"""What a node gains at the most where some of what is protected there goes and others come: exact integers.

Who comes lacks something, and the least loss that makes up for it is found by trying who leaves, CPU, memory,
resources and GPUs alike. Who comes together pays for the dearest of these losses, and shares what so much lets go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

_STEPS = 400  # sets that are tried for one that comes


Key = TypeVar("Key")


class Leaving(NamedTuple):
    """A protected replica: what is lost where it goes, positive, and what that frees in each dimension."""

    loss: int
    freed: tuple[int, ...]


class Coming(NamedTuple, Generic[Key]):
    """Alike replicas that may come: what each is worth, what it needs in each dimension, and how many may."""

    comer: Key
    worth: int
    needs: tuple[int, ...]
    room: int


def gained(
    free: tuple[int, ...],
    leaving: Sequence[Leaving],
    coming: Sequence[Coming[Key]],
    packed: Callable[[Sequence[Coming[Key]]], int],
    lost: int,
) -> int:
    """Return what a node gains at the most, what is lost taken off; 0 where nothing pays.

    Parameters
    ----------
    free : what is left in each dimension where all stay.
    packed : what some that come are worth together at the most, whatever leaves.
    lost : the least loss that is looked at.
    """
    most = packed(coming)
    items = sorted(each for each in leaving if each.loss < most)
    least: dict[tuple[int, ...], int] = {}
    losses: list[tuple[int, Coming[Key]]] = []
    for each in coming:
        if each.needs not in least:
            lack = tuple(need - left for need, left in zip(each.needs, free, strict=True))
            least[each.needs] = least_loss(items, lack, most)
        if least[each.needs] < most:
            losses.append((least[each.needs], each))
    best = 0
    steps = sorted({loss for loss, _ in losses})
    for position, loss in enumerate(steps):
        following = steps[position + 1] if position + 1 < len(steps) else most
        able = [each for least_, each in losses if least_ <= loss]
        if best >= packed(able) - loss:
            continue
        for low, high in _stages(items, max(loss, lost), following):
            room = _freed(free, items, high)
            worth = min([packed(able), *(together(able, d, left) for d, left in enumerate(room))])
            best = max(best, worth - low)
    return best


def _stages(items: Sequence[Leaving], low: int, high: int) -> list[tuple[int, int]]:
    """Return ranges of losses from one to below another, cut where one more may leave."""
    found, total = [low], 0
    for item in items:
        total += item.loss
        if total >= high:
            break
        if total > low:
            found.append(total)
    return list(zip(found, [*found[1:], high], strict=True)) if low < high else []


def _freed(free: tuple[int, ...], items: Sequence[Leaving], below: int) -> tuple[int, ...]:
    """Return what is free in each dimension at the most where less than some loss is accepted."""
    able = [item for item in items if item.loss < below]
    many, total = 0, 0
    for item in able:
        total += item.loss
        if total >= below:
            break
        many += 1
    if not many:
        return free
    return tuple(
        left + sum(sorted((item.freed[d] for item in able), reverse=True)[:many]) for d, left in enumerate(free)
    )


def together(coming: Sequence[Coming[Key]], dimension: int, room: int) -> int:
    """Return what is worth most together that takes no more of one dimension than there is, parts counted too.

    Any price of the dimension gives a bound; that of the last one that has room gives the best.
    """
    total = sum(each.worth * each.room for each in coming if each.needs[dimension] <= 0)
    taking = [each for each in coming if each.needs[dimension] > 0]
    left = room = max(0, room)
    for last in sorted(taking, key=lambda each: -each.worth / each.needs[dimension]):
        left -= last.needs[dimension] * last.room
        if left < 0:
            worth, need = last.worth, last.needs[dimension]
            more = sum(max(0, each.worth * need - worth * each.needs[dimension]) * each.room for each in taking)
            return total + (more + worth * room) // need
    return total + sum(each.worth * each.room for each in taking)


def least_loss(items: Sequence[Leaving], lack: tuple[int, ...], most: int) -> int:
    """Return the least loss that frees what is lacking, `most` where that is no less.

    Parameters
    ----------
    items : by ascending loss.
    """
    if max(lack, default=0) <= 0:
        return 0
    if (least := _singly(items, lack, most)) >= most:
        return most
    search = _Search(items, most)
    search.go(0, lack, 0)
    return search.best if search.steps <= _STEPS else least


def _singly(items: Sequence[Leaving], lack: tuple[int, ...], most: int) -> int:
    """Return a loss below which what is lacking cannot be freed: as if the cheapest freed all that one can."""
    found = 0
    for dimension, amount in enumerate(lack):
        left, loss = amount, 0
        sizes = sorted((item.freed[dimension] for item in items), reverse=True)
        for size, item in zip(sizes, items, strict=True):
            if left <= 0:
                break
            left, loss = left - size, loss + item.loss
        found = max(found, most if left > 0 else loss)
    return min(found, most)


class _Search:
    """Tries who leaves, the cheapest first."""

    def __init__(self, items: Sequence[Leaving], most: int) -> None:
        self._items = items
        self.best = most
        self.steps = 0

    def go(self, start: int, lack: tuple[int, ...], loss: int) -> None:
        """Let some of the items from one on leave, where they make up for what is lacking."""
        tried: set[Leaving] = set()
        for position in range(start, len(self._items)):
            item = self._items[position]
            if loss + item.loss >= self.best or self.steps > _STEPS:
                return
            if item in tried:
                continue
            tried.add(item)
            self.steps += 1
            left = tuple(a - b for a, b in zip(lack, item.freed, strict=True))
            if max(left) <= 0:
                self.best = loss + item.loss
            elif loss + 2 * item.loss < self.best and any(0 < a > b for a, b in zip(lack, left, strict=True)):
                self.go(position + 1, left, loss + item.loss)
