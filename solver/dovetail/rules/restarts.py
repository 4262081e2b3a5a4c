"""A search for where lost replicas restart: quick ways first, then every way within a number of steps (S4.7)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby
from typing import Final

from dovetail.placement import Place, Places
from dovetail.rules.bonds import Bond, sides_on
from dovetail.rules.recovery import Failure, Rescue, agrees
from dovetail.spec import Node, ReplicaId
from dovetail.spec.inside import INNER_LEVELS

_STEPS: Final = 20_000


def search(rescue: Rescue, failure: Failure) -> Places:
    """Return places for what is lost: all of it where quick steps or a bounded search find that."""
    lost = [r for r in rescue.lost(failure) if any(name not in failure.nodes for name in rescue.best(r))]
    found = _Quick(rescue, failure).run(lost)
    if len(found) < len(lost) and len(found) < (most := rescue.most(lost, failure)):
        small_first = _Quick(rescue, failure).run(lost[::-1])
        found = max(found, small_first, key=len)
        if len(found) < most:
            found = max(found, _Exact(rescue, failure, most).run(lost), key=len)
    return dict(sorted(found.items()))


class _Trial:
    """Replicas that restart on trial, and on which sides their bonds are."""

    def __init__(self, rescue: Rescue, failure: Failure) -> None:
        self._rescue, self._failure = rescue, failure
        self._nodes = rescue.survivors(failure)
        self._now: dict[ReplicaId, Place] = {}
        self._sides: defaultdict[Bond, Counter[str | None]] = defaultdict(Counter)

    def _put(self, replica: ReplicaId, place: Place) -> bool:
        """Restart a replica, and tell whether there is room."""
        if not self._rescue.take(replica, place):
            return False
        self._now[replica] = place
        for bond in self._rescue.bonds(replica):
            self._sides[bond][self._rescue.side(bond, place)] += 1
        return True

    def _drop(self, places: Places) -> None:
        for replica, place in places.items():
            self._rescue.undo(replica, place)
            del self._now[replica]
            for bond in self._rescue.bonds(replica):
                self._sides[bond][self._rescue.side(bond, place)] -= 1

    def _on(self, bond: Bond) -> set[str | None]:
        """Return the sides that a bond is on: where it survives, and where it restarts."""
        again = {side for side, count in self._sides[bond].items() if count}
        return again | self._rescue.standing(bond, self._failure)


class _Quick(_Trial):
    """Bond by bond, the widest first, on the side that takes most of it, and each replica where it fits best."""

    def run(self, lost: Sequence[ReplicaId]) -> dict[ReplicaId, Place]:
        """Return where replicas restart, workload by workload."""
        for workload in dict.fromkeys(replica.workload for replica in lost):
            self._settle([replica for replica in lost if replica.workload == workload], 0, {}, self._nodes)
        found = dict(self._now)
        self._drop(found)
        return found

    def _settle(
        self, own: Sequence[ReplicaId], depth: int, chosen: Mapping[Bond, str], nodes: Sequence[Node]
    ) -> dict[ReplicaId, Place]:
        """Restart replicas on some nodes, on the sides chosen for their first bonds, and return where."""
        parts: dict[Bond | None, list[ReplicaId]] = {}
        for replica in own:
            bonds = self._rescue.bonds(replica)
            parts.setdefault(bonds[depth] if depth < len(bonds) else None, []).append(replica)
        found: dict[ReplicaId, Place] = {}
        for bond, members in parts.items():
            if bond is None:
                found |= self._one_by_one(members, chosen, nodes)
            else:
                found |= self._best_side(bond, members, depth, chosen, nodes)
        return found

    def _best_side(
        self, bond: Bond, own: Sequence[ReplicaId], depth: int, chosen: Mapping[Bond, str], nodes: Sequence[Node]
    ) -> dict[ReplicaId, Place]:
        """Restart replicas on the first side that takes all of them, or most."""
        best: dict[ReplicaId, Place] = {}
        for side, there in self._open_sides(bond, own, nodes):
            found = self._settle(own, depth + 1, {**chosen, bond: side}, there)
            if len(found) == len(own):
                return found
            self._drop(found)
            best = max(best, found, key=len)
        for replica, place in best.items():
            self._put(replica, place)
        return best

    def _open_sides(
        self, bond: Bond, own: Sequence[ReplicaId], nodes: Sequence[Node]
    ) -> Iterator[tuple[str, list[Node]]]:
        """Yield the sides that a bond may restart on, with their nodes: where it is, else those with least idle."""
        roles = {replica.role: replica for replica in own}
        names = {name for replica in roles.values() for name in self._rescue.hosts(replica)}
        there: dict[str, list[Node]] = {}
        for node in nodes:
            for side in sides_on(bond, node) if node.name in names else ():
                there.setdefault(side, []).append(node)
        if held := self._on(bond):
            yield from ((side, there.get(side, [])) for side in held if side is not None and agrees(held))
            return
        idle = {side: sum(map(self._rescue.idle, found)) for side, found in there.items()}
        yield from ((side, there[side]) for side in sorted(idle, key=lambda side: (idle[side], side)))

    def _one_by_one(
        self, own: Sequence[ReplicaId], chosen: Mapping[Bond, str], nodes: Sequence[Node]
    ) -> dict[ReplicaId, Place]:
        if not chosen:
            return self._anywhere(own)
        inner = {bond: side for bond, side in chosen.items() if bond.level in INNER_LEVELS}
        found: dict[ReplicaId, Place] = {}
        for replica in own:
            options = self._rescue.options(replica, nodes)
            near = (o for o in options if all(self._rescue.side(b, o[1]) == side for b, side in inner.items()))
            best = min(near, default=None)
            if best is not None and self._put(replica, best[1]):
                found[replica] = best[1]
        return found

    def _anywhere(self, own: Sequence[ReplicaId]) -> dict[ReplicaId, Place]:
        """Restart replicas where they fit best, asking anew only nodes that something restarts on."""
        found: dict[ReplicaId, Place] = {}
        for _, alike in groupby(own, key=lambda replica: replica.role):
            members = list(alike)
            asked = {place.node for place in self._now.values()}
            options = [self._best_on(members[0], name) for name in sorted(asked)]
            changed = [each for each in options if each is not None]
            heapify(changed)
            closed = asked | self._failure.nodes
            others = (option for name, option in self._rescue.best(members[0]).items() if name not in closed)
            other = next(others, None)
            for replica in members:
                if other is not None and (not changed or other < changed[0]):
                    (_, place), other = other, next(others, None)
                elif changed:
                    _, place = heappop(changed)
                else:
                    break
                if self._put(replica, place):
                    found[replica] = place
                again = self._best_on(replica, place.node)
                if again is not None:
                    heappush(changed, again)
        return found

    def _best_on(self, replica: ReplicaId, name: str) -> tuple[int, Place] | None:
        return min(self._rescue.options(replica, [self._rescue.node(name)]), default=None)


class _Exact(_Trial):
    """Every way to restart lost replicas, within a number of steps: one after the other, somewhere or nowhere.

    Where one restarts nowhere, nor do the like of it that come next: whoever does may change places with it.

    Parameters
    ----------
    most : how many may restart at the most.
    """

    def __init__(self, rescue: Rescue, failure: Failure, most: int) -> None:
        super().__init__(rescue, failure)
        self._most, self._left = most, _STEPS
        self._lost: Sequence[ReplicaId] = ()
        self._next: list[int] = []  # by position, the first one after it that is not alike
        self._best: dict[ReplicaId, Place] = {}

    def run(self, lost: Sequence[ReplicaId]) -> dict[ReplicaId, Place]:
        """Return the most that restarts, as far as the steps go."""
        self._lost = lost
        self._next = [len(lost)] * len(lost)
        kinds = [(replica.workload, replica.role, self._rescue.bonds(replica)) for replica in lost]
        for index in reversed(range(len(lost) - 1)):
            self._next[index] = self._next[index + 1] if kinds[index] == kinds[index + 1] else index + 1
        self._decide(0)
        return self._best

    def _decide(self, index: int) -> bool:
        """Try everything from a replica on; tell whether to stop."""
        if len(self._now) > len(self._best):
            self._best = dict(self._now)
        self._left -= 1
        if len(self._best) == self._most or self._left <= 0:
            return True
        if index == len(self._lost) or len(self._now) + len(self._lost) - index <= len(self._best):
            return False
        replica = self._lost[index]
        for _, place in sorted(self._rescue.options(replica, self._nodes)):
            if not self._put(replica, place):
                continue
            done = all(agrees(self._on(bond)) for bond in self._rescue.bonds(replica)) and self._decide(index + 1)
            self._drop({replica: place})
            if done:
                return True
        return self._decide(self._next[index])
