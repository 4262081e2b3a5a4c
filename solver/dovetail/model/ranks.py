"""Which replica of a gang takes which place: neighbours in rank are neighbours in the tree, groups stay whole (S2.5).

A model counts replicas by domain; in every domain of a group's level there are whole groups, so consecutive indices
can have them. Groups of which some stay where they run are finished there, the others follow domain by domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dovetail.model.squads import Block, Open, Squads, cut
from dovetail.placement import Place, Places, Today
from dovetail.placement.nested import path_of
from dovetail.problem import Problem
from dovetail.spec import Group, Nest, Node, ReplicaId, Workload
from dovetail.spec.inside import holds, mask_of


@dataclass(frozen=True, slots=True)
class Ranks:
    """Gives the places of one workload to its replicas.

    Parameters
    ----------
    kept : the workload's replicas that stay where they run.
    """

    problem: Problem
    workload: Workload
    kept: Places

    def assign(self, places: Open) -> dict[ReplicaId, Place]:
        """Return who takes which of the open places; as many replicas of each role as it has places."""
        left = {role: self._in_order(found) for role, found in places.items()}
        found: dict[ReplicaId, Place] = {}
        for nest in self.workload.topology.nests if self.workload.topology else ():
            whole = {role: range(self.workload.by_role[role].replicas) for role in nest.group.sizes}
            for replica, place in self._settle(nest, [whole], {role: left.get(role, []) for role in whole}):
                found[replica] = place
                left[replica.role].remove(place)
        for role, rest in left.items():
            free = [replica for replica in self._claimants(role) if replica not in found]
            found.update(zip(free, rest, strict=False))
        if self.workload.topology is None or not self.workload.topology.loose:
            self._call_back(found)
        return found

    def _call_back(self, found: dict[ReplicaId, Place]) -> None:
        """Let those who run and may move take places before those who wait, where no group is whole that way.

        Who lost its place waits no more where not all are there or none: to replace it costs no move (S6.5).
        """
        today, lost = self.problem.context.today.places, self.problem.context.today.lost
        first = today.keys() if self.workload.atomic else today.keys() | lost.keys()
        running = (replica for replica in today if replica.workload == self.workload.id)
        left = [each for each in running if each not in self.kept and each not in found and not self._away(each)]
        for replica in left:
            idle = (other for other in found if other.role == replica.role and other not in first)
            other = next((each for each in idle if not self._is_whole(each, found)), None)
            if other is not None:
                found[replica] = found.pop(other)

    def _is_whole(self, replica: ReplicaId, found: Places) -> bool:
        """Tell whether the outermost group of a replica is there as a whole, in one domain."""
        groups = self.workload.topology.groups if self.workload.topology else ()
        group = next((group for group in groups if replica.role in group.sizes), None)
        if group is None:
            return False
        number = replica.ordinal // group.sizes[replica.role]
        members = (
            ReplicaId(self.workload.id, role, i)
            for role, size in group.sizes.items()
            for i in range(number * size, (number + 1) * size)
        )
        places = [self.kept.get(member) or found.get(member) for member in members]
        return None not in places and len({self._domain(group.within, place) for place in places if place}) == 1

    def _in_order(self, places: Sequence[Place]) -> list[Place]:
        order, nodes = self.problem.tree_order, self.problem.spec.cluster.by_name
        return sorted(places, key=lambda place: (order[place.node], _order_inside(nodes[place.node], place.gpus)))

    def _claimants(self, role: str) -> list[ReplicaId]:
        """Return a role's replicas without a place: running ones, those that lost theirs, the rest."""
        every = (ReplicaId(self.workload.id, role, i) for i in range(self.workload.by_role[role].replicas))
        return sorted((r for r in every if r not in self.kept), key=claim(self.problem.context.today))

    def _settle(self, nest: Nest, blocks: Sequence[Block], places: Open) -> Iterator[tuple[ReplicaId, Place]]:
        """Yield who of some blocks takes which place, group by group inside group by group."""
        by_domain = self._by_domain(nest.group.within, places)
        if nest.loose or (nest.number and nest.counted):
            today = self.problem.context.today
            squads = Squads(self.workload, nest, self.kept, today, self._turn, self._domain)
            homes = squads.homes(blocks, places)
        else:
            homes = self._homes(nest.group, [part for block in blocks for part in cut(block, nest)], by_domain)
        for path, here in homes.items():
            yield from self._inside(nest, here, by_domain.get(path, {}))

    def _inside(self, nest: Nest, blocks: Sequence[Block], places: Open) -> Iterator[tuple[ReplicaId, Place]]:
        """Yield who of some groups takes which place of one domain."""
        inner = {role for each in nest.inner for role in each.group.sizes}
        yield from self._take(blocks, {role: own for role, own in places.items() if role not in inner})
        for each in nest.inner:
            yield from self._settle(each, blocks, {role: places[role] for role in each.group.sizes if role in places})

    def _take(self, blocks: Sequence[Block], places: Open) -> Iterator[tuple[ReplicaId, Place]]:
        """Yield who of some blocks takes which place, those who run on one their own."""
        for role, found in places.items():
            every = (ReplicaId(self.workload.id, role, i) for block in blocks for i in block.get(role, ()))
            own = sorted((each for each in every if each not in self.kept), key=self._away)[: len(found)]
            today, rest, waiting = self.problem.context.today.places, list(found), []
            for replica in own:
                if today.get(replica) in rest:
                    rest.remove(today[replica])
                    yield replica, today[replica]
                else:
                    waiting.append(replica)
            yield from zip(waiting, rest, strict=False)

    def _by_domain(self, level: str, places: Open) -> dict[str, dict[str, list[Place]]]:
        """Return places by domain, domains in the order of the tree."""
        found: dict[str, dict[str, list[Place]]] = {}
        everywhere = [(role, place) for role, own in places.items() for place in own]
        for role, place in sorted(everywhere, key=lambda pair: self.problem.tree_order[pair[1].node]):
            path = self._domain(level, place)
            if path is not None:
                found.setdefault(path, {}).setdefault(role, []).append(place)
        return found

    def _domain(self, level: str, place: Place) -> str | None:
        return path_of(self.problem.spec.cluster, level, place)

    def _homes(
        self, group: Group, parts: Sequence[Block], places: Mapping[str, Mapping[str, Sequence[Place]]]
    ) -> dict[str, list[Block]]:
        """Return which groups go to which domain: where some of them stay, else where there is room for all."""
        home = [self._home(part, group) for part in parts]
        held: Counter[tuple[str, str]] = Counter()
        for part in parts:
            for replica, place in self._staying(part):
                held[self._domain(group.within, place) or "", replica.role] += 1
        room = {
            path: min((len(own.get(role, ())) + held[path, role]) // size for role, size in group.sizes.items())
            - home.count(path)
            for path, own in places.items()
        }
        homeless = [position for position, path in enumerate(home) if path is None]
        ran = sum(self._claims(parts[position])[WAITS] < _size(parts[position]) for position in homeless)
        scarce = sum(left for left in room.values() if left > 0) < ran
        for position in sorted(homeless, key=lambda i: (self._turn(parts[i], scarce=scarce), i)):
            path = home[position] = next((path for path, left in room.items() if left > 0), None)
            if path is not None:
                room[path] -= 1
        found: dict[str, list[Block]] = {}
        for part, path in zip(parts, home, strict=True):
            if path is not None:
                found.setdefault(path, []).append(part)
        return found

    def _staying(self, part: Block) -> Iterator[tuple[ReplicaId, Place]]:
        for role, indices in part.items():
            for replica in (ReplicaId(self.workload.id, role, i) for i in indices):
                if replica in self.kept:
                    yield replica, self.kept[replica]

    def _home(self, part: Block, group: Group) -> str | None:
        """Return the domain where most of a group stays, None where nobody does."""
        paths = Counter(self._domain(group.within, place) for _, place in self._staying(part))
        return max(paths, key=lambda path: (paths[path], path or ""), default=None)

    def _claims(self, part: Block) -> Counter[int]:
        """Return how many of a group go on, were lost, run or wait."""
        return Counter(map(claim(self.problem.context.today), self._members(part)))

    def _members(self, part: Block) -> Iterator[ReplicaId]:
        return (ReplicaId(self.workload.id, role, i) for role, indices in part.items() for i in indices)

    def _turn(self, part: Block, *, scarce: bool = False) -> list[int]:
        """Return what sorts groups: those that must go on first, then those of which most ran.

        Where there is no room for all of which anybody ran, so that some are evicted anyway, those that move least
        come before others. Last are those of which most run elsewhere and may not move.
        """
        claims = self._claims(part)
        ran = [claims[RUNS], -claims[LOST]] if scarce else [-claims[LOST] - claims[RUNS], claims[RUNS]]
        return [sum(map(self._away, self._members(part))), -claims[GOES_ON], *ran]

    def _away(self, replica: ReplicaId) -> bool:
        """Tell whether a replica runs where it does not stay, and may be nowhere else."""
        runs = replica in self.problem.context.today.places
        return not self.workload.movable and runs and replica not in self.kept


def _order_inside(node: Node, gpus: Sequence[int]) -> tuple[int, ...]:
    """Return what sorts places on a node: the sets around them by their first GPU, the wider first, then GPUs."""
    if not (node.islands or node.sockets) or not gpus:
        return ()
    around = [each for each in node.sets if holds(each, mask_of(gpus))]
    return *((each & -each).bit_length() for each in reversed(around)), *gpus


def _size(part: Block) -> int:
    return sum(map(len, part.values()))


GOES_ON, LOST, RUNS, WAITS = range(4)


def claim(today: Today) -> Callable[[ReplicaId], int]:
    """Return what sorts replicas that take new places: those that go on, lost ones, other running ones, the rest.

    What runs of a workload that could not go on as it is comes after what it lost: replacing costs no move.
    """

    def order(replica: ReplicaId) -> int:
        if replica in today.protected or replica in today.preemptible:
            return GOES_ON
        if replica in today.lost:
            return LOST
        return RUNS if replica in today.places else WAITS

    return order
