"""Innermost domains by class: those that lie in the same outer ones and have the same nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from dovetail.problem import Problem
from dovetail.proof.kinds import Kind


@dataclass(frozen=True)
class Class:
    """Innermost domains that nothing tells apart.

    Parameters
    ----------
    outer : paths of the domains around them, by level; None where there is none.
    nodes : per kind, how many nodes of it each domain has.
    members : per domain, its nodes by kind, as positions in the Problem's node list.
    counted : whether they are domains of the level, and not single nodes outside any.
    """

    outer: Mapping[str, str | None]
    nodes: Mapping[int, int]
    members: tuple[Mapping[int, tuple[int, ...]], ...]
    counted: bool = True

    @property
    def size(self) -> int:
        """How many domains there are of the class."""
        return len(self.members)


class _Likeness(NamedTuple):
    """What makes domains alike: the paths around them, their nodes by kind, and whether they are domains at all."""

    outer: tuple[str | None, ...]
    nodes: tuple[tuple[int, int], ...]
    counted: bool


def one_by_one(classes: Sequence[Class]) -> tuple[Class, ...]:
    """Return a class per domain, for solutions that say of every domain what it holds."""
    return tuple(replace(each, members=(member,)) for each in classes for member in each.members)


def classes_of(problem: Problem, kinds: Sequence[Kind], levels: Sequence[str]) -> tuple[Class, ...]:
    """Group the domains of the innermost of some levels; nodes outside any are domains of their own."""
    kind_of = {node: position for position, kind in enumerate(kinds) for node in kind.members}
    domains: dict[str | int, dict[int, list[int]]] = {}
    outer: dict[str | int, tuple[str | None, ...]] = {}
    for index, node in enumerate(problem.nodes):
        if index in kind_of:
            path = node.domain(levels[-1])
            key = index if path is None else path
            outer[key] = tuple(node.domain(level) for level in levels[:-1])
            domains.setdefault(key, {}).setdefault(kind_of[index], []).append(index)
    alike: dict[_Likeness, list[Mapping[int, tuple[int, ...]]]] = {}
    for key, by_kind in domains.items():
        counts = tuple(sorted((kind, len(found)) for kind, found in by_kind.items()))
        same = _Likeness(outer[key], counts, isinstance(key, str))
        alike.setdefault(same, []).append({kind: tuple(found) for kind, found in by_kind.items()})
    return tuple(
        Class(dict(zip(levels[:-1], same.outer, strict=True)), dict(same.nodes), tuple(members), same.counted)
        for same, members in alike.items()
    )


def fewest_of(rooms: Mapping[int, int], wanted: int) -> int:
    """Return how many of some domains, `rooms` by how many there are, it takes at the least to hold so many."""
    found = 0
    for room, number in sorted(rooms.items(), reverse=True):
        taken = min(number, -(-wanted // room)) if room > 0 and wanted > 0 else 0
        found, wanted = found + taken, wanted - taken * room
    return found
