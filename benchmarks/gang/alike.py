"""Running pods that nothing tells apart where they may move: one workload stands for all of them.

A question about moves asks how many pods of a kind are on each node; whose pods those are is of no account. So it has
a count per kind and node, and not one per running name and node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from benchmarks.gang.case import Case, Counts, Running


def kinds_of(running: Iterable[Running]) -> list[list[Running]]:
    """Return pods that may move by kind: as they ask for the same, and may go to the same nodes."""
    found: dict[Hashable, list[Running]] = {}
    for each in running:
        key = tuple(sorted(each.per_pod.items())), each.eligible, each.queue
        found.setdefault(key, []).append(each)
    return list(found.values())


def as_kinds(case: Case, running: Sequence[Running]) -> Case:
    """Return a case in which each kind of some running pods has one name, that of its first."""
    moving = {each.name for each in running}
    others = tuple(each for each in case.running if each.name not in moving)
    return replace(case, running=(*others, *(_all_of(kind) for kind in kinds_of(running))))


def _all_of(kind: Sequence[Running]) -> Running:
    on: Counter[str] = Counter()
    for each in kind:
        on.update(each.on)
    return replace(kind[0], on=dict(on), priority=max(each.priority for each in kind))


def dealt(running: Sequence[Running], pods: Mapping[str, Counts]) -> dict[str, Counts]:
    """Return where the pods of every name are in the end, of where those of each kind are.

    On a node that some leave, those that are named first stay; nobody comes to it.
    """
    found = dict(pods)
    for kind in kinds_of(running):
        if kind[0].name in pods:
            found |= _dealt(kind, pods[kind[0].name])
    return found


def _dealt(kind: Sequence[Running], after: Counts) -> dict[str, Counts]:
    before, left = _all_of(kind).on, Counter(after)
    free = [node for node, count in sorted(after.items()) for _ in range(count - before.get(node, 0))]
    found: dict[str, Counts] = {}
    for each in kind:
        stay = Counter({node: min(count, left[node]) for node, count in each.on.items()})
        left.subtract(stay)
        gone = each.pods - stay.total()
        stay.update(free[:gone])
        del free[:gone]
        found[each.name] = {node: count for node, count in stay.items() if count}
    return found
