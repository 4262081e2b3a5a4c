"""What one GPU of a kind of nodes earns at the most when it is cut into MIG instances (S3.3).

Every legal layout, today's pinned ones among them, is part of a largest multiset of profiles, so the best of these
under the prices at hand bounds them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from dovetail.mig import Geometry, maximal, multisets
from dovetail.problem import Problem
from dovetail.spec import Node


def profiles_of(problem: Problem, node: Node, shapes: Iterable[int]) -> dict[int, tuple[str, ...]]:
    """Return, per shape that may be on MIG instances of a node, the profiles of these."""
    able = (s for s in shapes if problem.shapes[s].request.may_use_mig)
    found = {s: tuple(mode for mode in problem.modes(s, node) if mode) for s in able}
    return {s: profiles for s, profiles in found.items() if profiles}


def best_layout(geometry: Geometry, worth: Mapping[str, int]) -> int:
    """Return the most that instances of one GPU earn, each what its profile is worth."""
    layouts = layouts_of(geometry, frozenset(worth))
    return max((sum(worth[name] * count for name, count in layout) for layout in layouts), default=0)


@lru_cache(maxsize=256)
def layouts_of(geometry: Geometry, names: frozenset[str]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Return the largest multisets of some profiles that fit one GPU, none of them contained in another."""
    cut = {tuple((n, c) for n, c in sorted(counts.items()) if n in names) for counts in maximal(geometry)}
    return tuple(sorted(one for one in cut if one and not any(_within(one, other) for other in cut if other != one)))


@lru_cache(maxsize=256)
def layouts_within(geometry: Geometry, names: frozenset[str]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """Return all multisets of some profiles that fit one GPU, but for the empty one."""
    whole = (tuple(sorted(counts.items())) for counts in multisets(geometry) if counts.keys() <= names)
    return tuple(sorted(held for held in whole if held))


def _within(one: tuple[tuple[str, int], ...], other: tuple[tuple[str, int], ...]) -> bool:
    more = dict(other)
    return all(count <= more.get(name, 0) for name, count in one)
