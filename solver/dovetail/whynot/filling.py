"""Puts several replicas of a workload into what is free, one after the other, as far as hard policies let them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from dovetail.placement import Place, Places
from dovetail.plan.space import Wanting, places_in
from dovetail.rules.topology import NAME
from dovetail.spec import Node, ReplicaId, Role, Workload
from dovetail.spec.inside import INNER_LEVELS

if TYPE_CHECKING:
    from dovetail.whynot.vacancy import Vacancy


def areas(workload: Workload, missing: Sequence[Wanting], lifted: Collection[str]) -> Iterator[frozenset[str]]:
    """Yield the nodes that replicas may be on together, by accelerator and by the domain that is demanded."""
    level = workload.topology.within if workload.topology is not None and NAME not in lifted else None
    wide = level is None or level in INNER_LEVELS
    alike = workload.atomic and workload.mix == "none"
    found: dict[tuple[str | None, str | None], set[str]] = {}
    for node in {node.name: node for wanting in missing for node in wanting.nodes}.values():
        path = None if wide or level is None else node.domain(level)
        found.setdefault((node.accelerator if alike else None, path), set()).add(node.name)
    yield from map(frozenset, found.values())


class Filling:
    """One attempt, on some nodes and without some hard policies; everything is as before after it."""

    def __init__(self, of: Vacancy, lifted: Collection[str], area: Collection[str]) -> None:
        self._of, self._area = of, area
        hard = (policy for policy in of.trials.hard if policy.name not in lifted)
        self._guards = [guard for policy in hard if (guard := of.trials.guard(policy)) is not None]
        closing = (closed for name, closed in of.closing.items() if name not in lifted)
        self._closed = frozenset(chain.from_iterable(closing))
        self._space = of.beside([name for name in of.held if name not in lifted])
        self._taken: list[tuple[Role, Node, Place]] = []

    def run(self) -> Places:
        """Return the places that replicas found, as many as are needed or fewer."""
        more: dict[ReplicaId, Place] = {}
        try:
            for wanting in sorted(self._of.missing, key=lambda wanting: -wanting.role.request.gpu_milli):
                more |= self._put(wanting, self._of.needed - len(more))
        finally:
            for role, node, place in self._taken:
                self._space.room(node).give(role.request, place.gpus, place.instance)
                self._count(role, node, place, -1)
        return more

    def _put(self, wanting: Wanting, most: int) -> Places:
        found: dict[ReplicaId, Place] = {}
        names = self._of.absent(wanting, min(most, wanting.replicas))
        for node in wanting.nodes:
            if len(found) == len(names) or self._of.left <= 0:
                break
            if node.name in self._area and node.name not in self._closed:
                self._of.left -= 1
                while len(found) < len(names) and (place := self._next(wanting.role, node)) is not None:
                    found[names[len(found)]] = place
        return found

    def _next(self, role: Role, node: Node) -> Place | None:
        """Take the first place on a node that no account blocks, None where there is none."""
        room = self._space.room(node)
        for place in places_in(room, role.request):
            if not any(guard.blocks(self._of.workload, role, node, _gpu(role, place)) for guard in self._guards):
                room.take(role.request, place.gpus, place.instance)
                self._taken.append((role, node, place))
                self._count(role, node, place, 1)
                return place
        return None

    def _count(self, role: Role, node: Node, place: Place, count: int) -> None:
        for guard in self._guards:
            guard.add(self._of.workload, role, node, _gpu(role, place), count)


def _gpu(role: Role, place: Place) -> int | None:
    return place.gpus[0] if role.request.partial else None
