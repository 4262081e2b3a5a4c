"""Which replicas of a gang are the pods that it keeps, so that its groups of consecutive replicas can hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.gang.case import Case, Counts, Gang
from benchmarks.gang.meaning import hopeless, inner, slices, step, widths

Seat = str | None
_NONE: frozenset[str] = frozenset()


def seats(case: Case, gang: Gang) -> Mapping[int, str]:
    """Return the node of every kept pod by the index of its replica.

    Pods of one domain share as few groups as they can, level by level; which groups of a domain is of no account.
    """
    return {index: node for index, node in enumerate(_row(case, gang)) if node is not None}


def core(case: Case, gang: Gang) -> int:
    """Return how many replicas of an elastic gang must be there so that its kept pods are; 0 where these stay anyway.

    What runs stays as long as it could go on as it is (S5.3): whole slices, at a width that is enough.
    """
    least, most = widths(gang)
    if least == most or gang.shrinks or not gang.kept:
        return 0
    row, size = _row(case, gang), step(gang)
    fine = None not in row and len(row) >= least and not len(row) % size
    return 0 if fine else -(-len(row) // size) * size


def _row(case: Case, gang: Gang) -> list[Seat]:
    sizes = slices(case, gang, inner(case, [gang.required], case.set_of(gang.name)))
    return [seat for block in _blocks(case, gang.kept, sizes) for seat in block]


def _blocks(case: Case, kept: Counts, sizes: Sequence[tuple[str, int]]) -> list[list[Seat]]:
    """Return groups of the outermost level, each with the node of a kept pod per replica, or None."""
    if not sizes:
        return [[node] for node, count in sorted(kept.items()) for _ in range(count)]
    (level, size), *rest = sizes
    homes: dict[str, dict[str, int]] = {}
    for node, count in kept.items():
        homes.setdefault(case.home(node, level), {})[node] = count
    found: list[list[Seat]] = []
    for _, inside in sorted(homes.items()):
        row = [seat for block in _blocks(case, inside, rest) for seat in block]
        cut = [row[start : start + size] for start in range(0, len(row), size)]
        found += [[*block, *[None] * (size - len(block))] for block in cut]
    return found


def without_hope(case: Case) -> Case:
    """Return a case in which a gang that cannot be placed at all, as nothing added could help, may go nowhere."""
    lost = {gang.name: gang for gang in case.gangs if hopeless(gang) or _broken(case, gang)}
    gangs = (replace(gang, eligible=_NONE, slices=(), pinned={}, previous={}) for gang in lost.values())
    by_name = {gang.name: gang for gang in gangs}
    busy = case.busy | {node for gang in lost.values() for node in gang.charged}
    return replace(case, gangs=tuple(by_name.get(gang.name, gang) for gang in case.gangs), busy=busy)


def _broken(case: Case, gang: Gang) -> bool:
    """Tell whether what a gang keeps breaks what it asks for already."""
    if gang.shrinks:
        return False
    by_level = {level: _per_domain(case, level, gang.kept) for level in case.levels}
    wide = gang.required in by_level and len(by_level[str(gang.required)]) > 1
    full = any(n > each.most for each in gang.spread for n in by_level.get(each.level, {}).values())
    high = gang.max_per_node is not None and any(count > gang.max_per_node for count in gang.kept.values())
    return wide or full or high or max(seats(case, gang), default=-1) >= widths(gang)[1]


def _per_domain(case: Case, level: str, pods: Counts) -> Counts:
    found: dict[str, int] = {}
    for node, count in pods.items():
        home = case.home(node, level)
        found[home] = found.get(home, 0) + count
    return found
