"""Nodes whose pods take more than there is: what leaves makes up for that first, and only then is there room.

Nobody has to leave such a node, so all that is there has room on it, and nothing new comes: a stand-in has all ways
in. Instead of it there may be one that takes what is missing, for which there is room once enough has left. One of
the two is there, for every node and resource of which too much is taken; pods that ask for none of it do not mind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

from benchmarks.gang.case import Case, Counts, Gang, Host, Running
from benchmarks.gang.meaning import untouched_before


@dataclass(frozen=True, slots=True)
class Owed:
    """What is missing of a resource on a node, from where pods that take some of it may leave."""

    node: str
    resource: str
    amount: int


@dataclass(frozen=True, slots=True)
class StandIn:
    """A workload of one replica: what it takes of the case's resources, and of those of this module."""

    name: str
    label: str
    takes: Counts
    ways: Counts


def there(pods: Gang | Running) -> Counts:
    """Return the pods whose use is taken off `free`, by node."""
    return pods.on if isinstance(pods, Running) else pods.kept


class Arrears:
    """What is owed, and the resources and stand-ins that say so; all is empty where nothing is.

    Parameters
    ----------
    gangs : whose pods may come to nodes; what they keep stays.
    running : pods that may leave nodes.
    moving : those of them that may come to other nodes.
    """

    def __init__(
        self, case: Case, gangs: Sequence[Gang], running: Sequence[Running], moving: Sequence[Running]
    ) -> None:
        self._coming: dict[str, Gang | Running] = {gang.name: gang for gang in gangs}
        self._coming |= {run.name: run for run in moving}
        self._owed = [owed for node in case.nodes for owed in _owed(node.name, node.free, running)]
        self._scarce = {name: index for index, name in enumerate(sorted({owed.resource for owed in self._owed}))}
        leaving = {run.name for run in moving for owed in self._owed if run.on.get(owed.node)}
        self._apart = {name: index for index, name in enumerate(sorted(leaving))}

    def ways(self, pods: Gang | Running) -> Counts:
        """Return what a pod takes to be on a node: a way in for every scarce resource that it asks for.

        Pods that may leave where something is owed have ways of their own, so that none is left to others.
        """
        if pods.name not in self._coming:
            return {}
        own = self._apart.get(pods.name)
        asked = [number for name, number in self._scarce.items() if pods.per_pod.get(name)]
        return {f"way-{number}" if own is None else f"way-{number}-{own}": 1 for number in asked}

    def of_node(self, node: str) -> Counts:
        """Return the ways in that a node has, one for every pod that could be there, and places for stand-ins."""
        found: Counter[str] = Counter()
        for pods in self._coming.values():
            found.update(dict.fromkeys(self.ways(pods), pods.pods + there(pods).get(node, 0)))
        found.update({_place(index): 1 for index, owed in enumerate(self._owed) if owed.node == node})
        return found

    def stand_ins(self) -> Iterator[StandIn]:
        """Yield stand-ins, of which one of every label has to be there."""
        for index, owed in enumerate(self._owed):
            label, place = f"owed-{index}", {_place(index): 1}
            yield StandIn(f"closed-{index}", label, {}, self._all_ways(owed.resource) | place)
            yield StandIn(f"repaid-{index}", label, {owed.resource: owed.amount}, place)

    def _all_ways(self, resource: str) -> dict[str, int]:
        """Return the ways in of all pods that ask for a resource; those of pods that are on a node come on top."""
        start, found = f"way-{self._scarce[resource]}", Counter[str]()
        for pods in self._coming.values():
            found.update({way: pods.pods for way in self.ways(pods) if f"{way}-".startswith(f"{start}-")})
        return dict(found)


def spared(case: Case, running: Sequence[Running]) -> Iterator[tuple[Owed, ...]]:
    """Yield what is owed in domains that may be left untouched, each choice of enough of them, the smallest first.

    A stand-in touches a domain, and where pods leave one for good nothing has to be made up for.
    """
    leaving, found = [run.name for run in running], dict[tuple[str, str], tuple[Owed, ...]]()
    for each in case.reserve:
        untouched = untouched_before(case, each.level, leaving)
        for node in (case.by_name[name] for name in sorted(untouched)):
            key, owed = (each.level, node.domain[each.level]), tuple(_owed(node.name, node.free, running))
            found |= {key: (*found.get(key, ()), *owed)} if owed else {}
    for count in range(1 + sum(each.count for each in case.reserve)):
        yield from (tuple(chain.from_iterable(some)) for some in combinations(found.values(), count))


def closed(case: Case, some: Collection[Owed]) -> Case:
    """Return a case in which no pods come to where what they ask for is owed, so that it is of no account."""
    owed = {(each.node, each.resource) for each in some}

    def open_to(pods: Gang | Running, eligible: frozenset[str] | None) -> frozenset[str] | None:
        barred = {node for node, resource in owed if pods.per_pod.get(resource)}
        return frozenset(case.by_name if eligible is None else eligible) - barred if barred else eligible

    def none_owed(host: Host) -> Counts:
        return {name: 0 if (host.name, name) in owed else amount for name, amount in host.free.items()}

    return replace(
        case,
        nodes=tuple(replace(host, free=none_owed(host)) for host in case.nodes),
        gangs=tuple(replace(gang, eligible=open_to(gang, gang.eligible)) for gang in case.gangs),
        running=tuple(replace(run, eligible=open_to(run, run.eligible)) for run in case.running),
    )


def _place(index: int) -> str:
    return f"owed-{index}"


def _owed(node: str, free: Counts, running: Sequence[Running]) -> Iterator[Owed]:
    for resource, amount in sorted(free.items()):
        leaving = any(run.on.get(node) and run.per_pod.get(resource) for run in running)
        if amount < 0 and leaving:
            yield Owed(node, resource, -amount)
