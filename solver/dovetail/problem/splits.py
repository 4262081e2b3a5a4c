"""Which attribute splits classes and shapes, worked out from the very keys that they are made by (S4.6).

Nothing here knows any attribute or rule: whatever has a name in a key is told by that name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Split:
    """What one attribute does to a partition.

    Parameters
    ----------
    values : how many different values it has.
    adds : how many more groups there are once it is told apart as well, the attributes before it being told apart
        already. Over all attributes these add up to the number of groups less one.
    alone : how many fewer groups there would be without it, all others being told apart.
    """

    attribute: str
    values: int
    adds: int
    alone: int


def splits_of(keys: Sequence[Mapping[str, Hashable]]) -> tuple[Split, ...]:
    """Return what each attribute does that has more than one value, in the order of the keys.

    Parameters
    ----------
    keys : of every thing its attributes; all have the same names in the same order.
    """
    columns = {name: _numbered(key[name] for key in keys) for name in (keys[0] if keys else ())}
    told = {name: column for name, column in columns.items() if max(column) > 0}
    before = _refinements(keys, list(told.values()))
    after = _refinements(keys, list(told.values())[::-1])[::-1]
    total = _groups(before[-1])
    found = []
    for position, (name, column) in enumerate(told.items()):
        adds = _groups(before[position + 1]) - _groups(before[position])
        without = len(set(zip(before[position], after[position + 1], strict=True)))
        found.append(Split(name, _groups(column), adds, total - without))
    return tuple(found)


def _numbered(values: Iterable[Hashable]) -> list[int]:
    """Return a number for each value, equal ones for equal values, from 0 in the order that they are met."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _refinements(keys: Sequence[object], columns: Sequence[list[int]]) -> list[list[int]]:
    """Return the partitions by none, by the first, by the first two, ... of some columns."""
    found = [[0] * len(keys)]
    for column in columns:
        found.append(_numbered(zip(found[-1], column, strict=True)))
    return found


def _groups(partition: Sequence[int]) -> int:
    return max(partition, default=-1) + 1
