"""What a case means beyond its words: levels and slices that nest, widths, wishes, untouched domains."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping

from benchmarks.gang import names
from benchmarks.gang.case import Case, Gang, Running, Together


def members(together: Together, gangs: Iterable[Gang], policy: str) -> list[Gang]:
    """Return the subgroups of a policy in a set: those that say so, or that are named after it; else all gangs."""
    inside = [gang for gang in gangs if gang.name in together.gangs]
    told = [gang for gang in inside if policy in gang.labels]
    return told or [gang for gang in inside if _named_after(together, gang) == policy] or inside


def _named_after(together: Together, gang: Gang) -> str | None:
    """Return the policy with the longest name that a gang's name begins with."""
    return max((name for name in together.min_subgroups if gang.name.startswith(name)), key=len, default=None)


def loose(case: Case) -> frozenset[str]:
    """Return the gangs that may be away: none of their pods is needed, or their set may be away or lack them."""
    inside = {name for each in case.sets if each.atomic or each.optional for name in each.gangs}
    return frozenset(inside | {gang.name for gang in case.gangs if not gang.least})


def staying(case: Case) -> tuple[str, ...]:
    """Return the gangs that may be away, if it were not for the pods that they keep."""
    free = loose(case)
    return tuple(gang.name for gang in case.gangs if gang.name in free and gang.kept and not gang.shrinks)


def has_own_topology(case: Case, gang: Gang) -> bool:
    """Tell whether a gang asks for any topology that none of its sets asks for: to repeat a set's is nothing new."""
    mine = (each for each in case.sets if gang.name in each.gangs)
    return bool(gang.topology) and not any(_repeats(gang.topology, each) for each in mine)


def _repeats(topology: Mapping[str, str], together: Together) -> bool:
    of_set: Mapping[str, str | None] = {"required": together.required, "preferred": together.preferred}
    return all(of_set.get(key) == level for key, level in topology.items())


def untouched_before(case: Case, level: str, leaving: Iterable[str] = ()) -> frozenset[str]:
    """Return the nodes of the domains of a level where nothing runs, or nothing but what may leave."""
    away = set(leaving)
    busy = {*case.busy, *(node for gang in case.gangs for node in gang.charged)}
    busy |= {node for each in case.running if each.name not in away for node in each.on}
    told = _told_use(case)
    found: dict[str, list[str]] = {}
    for node in case.nodes:
        if level in node.domain:
            found.setdefault(node.domain[level], []).append(node.name)
            own = told.get(node.name)
            others = node.used if own is None else {n: amount - own[n] for n, amount in node.used.items() if n in own}
            if any(amount > 0 for amount in others.values()):
                busy.add(node.name)
    return frozenset(node for nodes in found.values() if not busy & set(nodes) for node in nodes)


def _told_use(case: Case) -> Mapping[str, Counter[str]]:
    """Return what running pods that are told of use, by node."""
    found: dict[str, Counter[str]] = {}
    for each in case.running:
        for node, pods in each.on.items():
            found.setdefault(node, Counter()).update({name: amount * pods for name, amount in each.per_pod.items()})
    return found


def too_few_untouched(case: Case, leaving: Iterable[Running] = ()) -> str:
    """Return which domains that must remain untouched were touched before, empty where there are enough."""
    away = [each.name for each in leaving]
    for each in case.reserve:
        whole = {case.by_name[node].domain[each.level] for node in untouched_before(case, each.level, away)}
        if each.count > len(whole):
            return f"{len(whole)} domains of {each.level} are untouched, and {each.count} must remain"
    return ""


def levels(case: Case) -> Mapping[str, str]:
    """Return the documents' name of each level; the innermost is `node` where every node is its own domain."""
    found = dict(names.labels(case.levels, "level", ["node", "gpu", "island", "socket"]))
    if case.levels:
        last = [node.domain.get(case.levels[-1]) for node in case.nodes]
        if None not in last and len(set(last)) == len(last):
            found[case.levels[-1]] = "node"
    return found


def depth(case: Case, level: str) -> int:
    return case.levels.index(level) if level in case.levels else len(case.levels)


def inner(case: Case, levels: list[str | None], together: Together | None) -> str | None:
    """Return the innermost of the levels that are demanded of all pods of a workload."""
    given = [level for level in [*levels, together.required if together else None] if level is not None]
    return max(given, key=lambda level: depth(case, level), default=None)


def slices(case: Case, gang: Gang, within: str | None) -> list[tuple[str, int]]:
    """Return levels and sizes that nest, outermost first: pods come in multiples of all sizes inside as well.

    What says nothing is left out: single pods, and a level at which all pods are in one domain anyway.
    """
    found: dict[str, int] = {}
    size = 1
    for each in sorted(gang.slices, key=lambda item: -depth(case, item.level)):
        size = math.lcm(size, each.size)
        around = within is not None and depth(case, each.level) <= depth(case, within)
        if size > 1 and not around:
            found[each.level] = size
    return list(found.items())[::-1]


def nonsense(case: Case) -> str:
    """Return which gang has slices of no pods, or at a level that is unknown or above the one it requires, or ""."""
    empty = next((g.name for g in case.gangs if any(s.size < 1 for s in g.slices)), None)
    if empty is not None:
        return f"{empty}: slices of less than one pod"
    wrong = ((g.name, s.level) for g in case.gangs for s in g.slices if not _makes_sense(case, g, s.level))
    return next((f"{gang}: slices at level {level}, which is unknown or above its own" for gang, level in wrong), "")


def _makes_sense(case: Case, gang: Gang, level: str) -> bool:
    """Tell whether a slice's level is known, and not above the one that its gang requires."""
    return level in case.levels and (gang.required is None or depth(case, level) >= depth(case, gang.required))


def step(gang: Gang) -> int:
    """Return what a gang's number of pods is a multiple of."""
    return math.lcm(1, *(each.size for each in gang.slices))


def widths(gang: Gang) -> tuple[int, int]:
    """Return the fewest and the most pods, of an elastic gang as whole slices."""
    if gang.least == gang.pods:
        return gang.pods, gang.pods
    size = step(gang)
    least, most = max(size, -(-gang.least // size) * size), gang.pods // size * size
    return (least, most) if least <= most else (gang.pods, gang.pods)


def hopeless(gang: Gang) -> bool:
    """Tell whether no number of pods that is enough is a multiple of all slices."""
    least, most = widths(gang)
    return bool(most % step(gang)) or (least == most and bool(least % step(gang)))


def shunned(gang: Gang, nodes: frozenset[str]) -> Iterable[tuple[int, frozenset[str]]]:
    """Return, from the most wished nodes on, what a pod elsewhere than on nodes at least as wished costs."""
    wish = {node: gang.prefer_nodes.get(node, 0) for node in nodes}
    steps = sorted(set(wish.values()), reverse=True)
    for high, low in itertools.pairwise(steps):
        yield high - low, frozenset(node for node in nodes if wish[node] < high)
