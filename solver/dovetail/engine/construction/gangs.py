"""Gangs placed jointly: domains chosen by how many whole groups they hold, the best fit first.

Greedy schedulers put one replica after the other and hope that the next ones fit nearby. Here a gang asks every
domain how much of it fits there, level by level: where one holds all, the one with least room to spare is taken, else
as few as do. What is counted is what is free now; places themselves are still judged by all hard rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dovetail.engine.construction.domains import best, most, sums
from dovetail.engine.construction.evening import even_out
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.legal import is_legal, shapes_of
from dovetail.engine.construction.placing import Outlooks, Put
from dovetail.engine.construction.seating import gpus_of, seat, units_in
from dovetail.placement.nested import every_nest
from dovetail.spec import Group, Nest, Workload
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.inside import INNER_LEVELS

_AREAS = 8  # domains that are tried for a gang that has to be within one


@dataclass(frozen=True, slots=True)
class Unit:
    """What goes together: one replica of a shape, or so many of each part within one domain of a level.

    Parameters
    ----------
    shape : of a single replica, None for a group.
    depth : position of the group's level in the cluster's, of a level inside nodes that of the node.
    inside : that level inside nodes, empty for none.
    """

    shape: int | None = None
    depth: int = -1
    parts: tuple[tuple[Unit, int], ...] = ()
    inside: str = ""

    def sizes(self) -> Counter[int]:
        """Return the replicas of each shape."""
        if self.shape is not None:
            return Counter({self.shape: 1})
        total: Counter[int] = Counter()
        for part, count in self.parts:
            for shape, size in part.sizes().items():
                total[shape] += size * count
        return total


@dataclass(slots=True)
class Crew:
    """One gang that is being placed.

    Parameters
    ----------
    models : accelerators that it may use, None for any.
    liked : per node, how many replicas are wished to be in the outermost domain around it; None: no wish.
    only : a mask of the nodes to use, None for all.
    upto : how many of a shape there are to be at the most, of others all.
    used : nodes that it is on.
    """

    outlooks: Outlooks
    workload: Workload
    models: frozenset[str] | None
    liked: Ints | None = None
    only: Bools | None = None
    upto: Mapping[int, int] | None = None
    used: set[int] = field(default_factory=set)

    def place(self) -> list[Put]:
        """Add what is missing of the gang; where it would not be a legal number, nothing."""
        self.used = {node for node, _ in self._present()}
        loose = self.workload.topology is not None and self.workload.topology.loose
        for nodes, depth in self._areas():
            for widths in ((False, True), (True,)) if loose else ((False,),):
                puts = self._fill(nodes, depth, widths)
                self._trim(puts)
                if is_legal(self.outlooks.field, self.workload):
                    return puts
                self.undo(puts)
        return []

    def undo(self, puts: list[Put]) -> None:
        """Take replicas off again."""
        self.outlooks.undo(list(self._shapes().values()), puts)
        puts.clear()

    def _shapes(self) -> Mapping[str, int]:
        return shapes_of(self.outlooks.field, self.workload)

    def _wanted(self, shape: int) -> int:
        """Return how many more of a shape there are to be."""
        field = self.outlooks.field
        wanted = field.wanted(shape)
        most = (self.upto or {}).get(shape)
        return wanted if most is None else min(wanted, most - field.admitted[shape])

    def _trim(self, puts: list[Put]) -> None:
        """Take off what is ahead of domains that must be even, and what an elastic role has above whole steps."""
        before = -1
        while before != len(puts):
            before = len(puts)
            even_out(self.outlooks, self.workload, puts)
            self._trim_steps(puts)

    def _trim_steps(self, puts: list[Put]) -> None:
        for role, shape in self._shapes().items():
            declared = self.workload.by_role[role]
            above = (self.outlooks.field.admitted[shape] - (declared.least or 0)) % declared.step
            own = [put for put in puts if put[1] == shape]
            for put in own[len(own) - above :] if 0 < above <= len(own) else ():
                self.outlooks.undo([shape], [put])
                puts.remove(put)

    def _present(self) -> Iterator[tuple[int, Counter[int]]]:
        """Yield the nodes that hold any of the gang, with how many of each shape."""
        own = set(self._shapes().values())
        if any(self.outlooks.field.admitted[shape] for shape in own):
            for node, fill in self.outlooks.field.fills.items():
                here = Counter({shape: count for shape, count in fill.counts().items() if shape in own and count > 0})
                if here:
                    yield node, here

    # Where all of it goes.

    def _areas(self) -> Iterator[tuple[Ints, int]]:
        """Yield sets of nodes to try, with the depth of the first level inside: domains where one is demanded."""
        everywhere = np.arange(len(self.outlooks.field.problem.nodes))
        everywhere = everywhere if self.only is None else everywhere[self.only]
        within = self.workload.topology.within if self.workload.topology else None
        if within is None:
            yield everywhere, 0
            return
        depth = self._depth(within)
        ids = self.outlooks.domains[self._levels()[depth]]
        if self.used:
            home = Counter(int(ids[node]) for node in self.used).most_common(1)[0][0]
            yield everywhere[ids[everywhere] == home], depth + 1
            return
        ids = ids[everywhere]
        shapes = self._shapes()
        need = {shape: self._wanted(shape) for shape in shapes.values()}
        whole = Unit(depth=depth, parts=tuple((Unit(shape), count) for shape, count in need.items() if count))
        least = self._least(need)
        room = sums(self._credit(least, everywhere), ids)
        full = sums(self._credit(whole, everywhere), ids)
        gpus = sums(self.outlooks.field.untouched[everywhere], ids)
        spare = np.where(full > 0, gpus, -gpus)
        liked = self._liked(ids, everywhere)
        order = sorted(np.flatnonzero(room).tolist(), key=lambda d: (not full[d], -liked[d], spare[d], d))
        for domain in order[:_AREAS]:
            yield everywhere[ids == domain], depth + 1

    def _least(self, need: Mapping[int, int]) -> Unit:
        """Return the fewest replicas that are worth a try, in one domain of the level demanded."""
        roles = {shape: self.workload.by_role[role] for role, shape in self._shapes().items()}
        if self.workload.atomic:
            fewest = {s: n if roles[s].least is None else min(n, roles[s].least or 0) for s, n in need.items()}
        else:
            fewest = {shape: min(count, roles[shape].least or 1) for shape, count in need.items()}
        if not any(fewest.values()):  # none is legal, and one the least that is anything
            fewest = {shape: min(count, 1) for shape, count in need.items()}
        within = self.workload.topology.within if self.workload.topology else None
        depth = self._depth(within) if within else 0
        return Unit(depth=depth, parts=tuple((Unit(shape), count) for shape, count in fewest.items() if count))

    def _depth(self, level: str) -> int:
        """Return the depth of a level; who belongs together inside a node is put on one node (cf. `blocks`)."""
        return self._levels().index(NODE_LEVEL if level in INNER_LEVELS else level)

    def _levels(self) -> Sequence[str]:
        return self.outlooks.field.problem.spec.cluster.levels

    # Groups and single replicas, level by level.

    def _fill(self, nodes: Ints, depth: int, widths: Sequence[bool]) -> list[Put]:
        """Add what is missing on some nodes: what groups that are there lack, then groups, then the rest.

        Groups come whole, or, where `widths` says so, with the minimum of each.
        """
        puts: list[Put] = []
        nests = self.workload.topology.nests if self.workload.topology else ()
        for nest in reversed(list(every_nest(nests))):
            if not nest.loose:
                puts += self._complete(nest.group, nodes)
        shapes = self._shapes()
        whole = self._inside_whole(widths[0])
        if whole is not None:
            return puts + self._spread(whole, 1, nodes, depth)[0]
        grouped: set[str] = set()
        for nest in nests:
            grouped |= nest.group.sizes.keys()
            for least in widths if nest.loose else (False,):
                puts += self._spread(*self._missing(nest, least=least), nodes, depth)[0]
        for role, shape in shapes.items():
            if role not in grouped:
                puts += self._spread(Unit(shape), self._wanted(shape), nodes, depth)[0]
        return puts

    def _inside_whole(self, least: bool) -> Unit | None:
        """Return all that is missing as one unit, where it lies within one island or socket and nothing is there."""
        within = _inside(self.workload.topology.within or "") if self.workload.topology else ""
        if not within or self.used:
            return None
        shapes = self._shapes()
        nests = self.workload.topology.nests if self.workload.topology else ()
        grouped = {role for nest in nests for role in nest.group.sizes}
        parts = [(self._unit(nest, least=least), self._missing(nest, least=least)[1]) for nest in nests]
        parts += [(Unit(shape), self._wanted(shape)) for r, shape in shapes.items() if r not in grouped]
        unit = Unit(depth=self._depth(within), parts=tuple(part for part in parts if part[1] > 0), inside=within)
        return unit if self._seats(unit) else None

    def _seats(self, unit: Unit) -> bool:
        """Tell whether a unit is given its GPUs one by one, within a part of a node."""
        field = self.outlooks.field
        return (
            bool(unit.inside)
            and any(map(field.blocks.matter, range(len(field.problem.nodes))))
            and (gpus_of(field, unit) > 0)
        )

    def _missing(self, nest: Nest, *, least: bool) -> tuple[Unit, int]:
        """Return a group as a unit, whole or with its minimum, and how many are missing."""
        wanted, shapes = self._wanted, self._shapes()
        sizes = {shapes[role]: size for role, size in nest.group.sizes.items() if role in shapes}
        number = min((max(0, wanted(shape)) // size for shape, size in sizes.items()), default=0)
        return self._unit(nest, least=least), number

    def _unit(self, nest: Nest, *, least: bool) -> Unit:
        shapes, depth = self._shapes(), self._depth(nest.group.within)
        parts: list[tuple[Unit, int]] = []
        inside: set[str] = set()
        for inner in nest.inner:
            inside |= inner.group.sizes.keys()
            parts.append((self._unit(inner, least=least), inner.least if least else inner.number))
        parts += [(Unit(shapes[r]), n) for r, n in nest.group.sizes.items() if r not in inside and r in shapes]
        return Unit(depth=depth, parts=tuple(part for part in parts if part[1]), inside=_inside(nest.group.within))

    def _complete(self, group: Group, nodes: Ints) -> list[Put]:
        """Add what groups lack of which some are there already."""
        shapes = {shape: group.sizes[role] for role, shape in self._shapes().items() if role in group.sizes}
        ids, inside = self.outlooks.domains[self._levels()[self._depth(group.within)]], set(nodes.tolist())
        held: dict[int, Counter[int]] = {}
        for node, here in self._present():
            if node in inside and ids[node] >= 0:
                held.setdefault(int(ids[node]), Counter()).update(here)
        puts: list[Put] = []
        for domain, here in sorted(held.items()):
            groups = max(-(-here[shape] // size) for shape, size in shapes.items())
            lack = {shape: groups * size - here[shape] for shape, size in shapes.items()}
            own = nodes[ids[nodes] == domain]
            for shape, count in lack.items():
                wanted = min(count, self._wanted(shape))
                puts += self._spread(Unit(shape), wanted, own, self._depth(group.within) + 1)[0]
        return puts

    def _spread(self, unit: Unit, number: int, nodes: Ints, depth: int) -> tuple[list[Put], int]:
        """Add up to so many units on some nodes, over as few domains of the level as do; tell how many."""
        if number <= 0 or not len(nodes):
            return [], 0
        if unit.shape is None and depth > unit.depth:
            return self._together(unit, number, nodes, depth)
        if depth >= len(self._levels()):
            return self._on_node(unit, number, nodes)
        ids = self.outlooks.domains[self._levels()[depth]][nodes]
        puts: list[Put] = []
        left = number
        used, liked = self._used(ids, nodes), self._liked(ids, nodes)
        for room in self._rooms(unit, ids, nodes, depth):
            while left > 0 and room.any():
                domain, before = best(room, left, used, liked), len(self.used)
                found, count = self._spread(unit, min(left, int(room[domain])), nodes[ids == domain], depth + 1)
                puts += found
                left -= count
                room[domain] = 0
                used[domain] |= len(self.used) > before
        return puts, number - left

    def _rooms(self, unit: Unit, ids: Ints, nodes: Ints, depth: int) -> Iterator[Ints]:
        """Yield how many units each domain takes: outermost ones first as many as are wished, then what they hold."""
        room = sums(self._credit(unit, nodes), ids)
        if self.liked is not None and depth == 0:
            wished = self._liked(ids, nodes) // sum(unit.sizes().values())
            yield np.minimum(room, wished)
            room = sums(self._credit(unit, nodes), ids)
        yield room

    def _used(self, ids: Ints, nodes: Ints) -> Bools:
        """Tell of each domain whether the gang is or was on some of its nodes."""
        mine = np.zeros(len(self.outlooks.field.problem.nodes), dtype=bool)
        mine[list(self.used)] = True
        return most(ids, mine[nodes]).astype(bool)

    def _liked(self, ids: Ints, nodes: Ints) -> Ints:
        """Return per domain how many replicas are wished to be in the outermost domain around it."""
        return most(ids, np.zeros(len(nodes), dtype=np.int64) if self.liked is None else self.liked[nodes])

    def _together(self, unit: Unit, number: int, nodes: Ints, depth: int) -> tuple[list[Put], int]:
        """Add units inside one domain of their level: all parts of each, or fewer units."""
        if self._seats(unit):
            return self._in_parts(unit, number, nodes)
        while number > 0:
            puts: list[Put] = []
            fewest = number
            for part, count in unit.parts:
                found, done = self._spread(part, count * number, nodes, depth)
                puts += found
                fewest = min(fewest, done // count)
            if fewest == number:
                return puts, number
            self.undo(puts)
            number = fewest
        return [], 0

    def _in_parts(self, unit: Unit, number: int, nodes: Ints) -> tuple[list[Put], int]:
        """Add up to so many units within parts of one node."""
        puts: list[Put] = []
        done = 0
        for node in nodes.tolist():
            while done < number and (found := seat(self.outlooks.field, unit, node)):
                puts += found
                self.used.add(node)
                done += 1
        return puts, done

    def _on_node(self, unit: Unit, number: int, nodes: Ints) -> tuple[list[Put], int]:
        if unit.shape is None:
            return self._together(unit, number, nodes, unit.depth + 1)
        mask = np.zeros(len(self.outlooks.field.problem.nodes), dtype=bool)
        mask[nodes] = True
        puts = self.outlooks.place(unit.shape, number, self.models, mask)
        self.used |= {node for node, _, _ in puts}
        return puts, len(puts)

    # How much fits.

    def _credit(self, unit: Unit, nodes: Ints) -> Ints:
        """Return per node a number whose sum over a domain is about how many units the domain holds.

        A group stands with the first node of the domain of its level that holds it.
        """
        if unit.shape is not None:
            return self.outlooks.copies(self.outlooks.field.problem.shapes[unit.shape], nodes, self.models)
        ids = self.outlooks.domains[self._levels()[unit.depth]][nodes]
        whole = [sums(self._credit(part, nodes), ids) // count for part, count in unit.parts]
        sizes = unit.sizes()
        shapes = self.outlooks.field.problem.shapes
        gpus = sum(shapes[shape].request.gpus * count for shape, count in sizes.items())
        if gpus and len(sizes) > 1:
            whole.append(sums(np.maximum(self.outlooks.field.untouched[nodes], 0), ids) // gpus)
        if self._seats(unit):
            whole.append(sums(units_in(self.outlooks.field, unit, nodes), ids))
        held = np.minimum.reduce(whole) if whole else np.zeros(max(0, int(ids.max(initial=-1))) + 1, dtype=np.int64)
        credit = np.zeros(len(nodes), dtype=np.int64)
        domains, first = np.unique(ids, return_index=True)
        inside = domains >= 0
        credit[first[inside]] = held[domains[inside]]
        return credit


def _inside(level: str) -> str:
    """Return a level where it lies inside nodes, else nothing."""
    return level if level in INNER_LEVELS else ""
