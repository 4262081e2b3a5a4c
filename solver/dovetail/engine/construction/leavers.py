"""Who may leave a node: what runs there and may move, and what came anew, as far as either stands alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.placing import Put
from dovetail.mig import Instance, parse_instance
from dovetail.model.seats import without_kept
from dovetail.model.state import NO_GPU, Fill
from dovetail.problem import Present
from dovetail.rules.quota import requested_of
from dovetail.spec import Workload

MOST_MOVES = 6  # that a place for one replica may cost, where sets of who leaves are searched through
MOST_HOPS = 30  # from who leaves to who follows: what came anew follows at no move, one after the other
EVERYBODY: Final = MOST_MOVES + 1
"""Stands for any number of moves (`Leavers.most`)."""


@dataclass(frozen=True, slots=True)
class Leaver:
    """A replica that may leave its node.

    Parameters
    ----------
    place : where it runs today, None for one that came anew.
    profile : that of the MIG instance that it is on, empty without one.
    again : whether it has room on its GPU again, beside who comes, once that is cut anew.
    """

    put: Put
    place: Present | None
    profile: str = ""
    again: bool = False

    @property
    def shape(self) -> int:
        """Its shape."""
        return self.put[1]

    @property
    def instance(self) -> Instance | None:
        """The MIG instance that it runs on, None for one that came anew."""
        return parse_instance(self.place.instance) if self.place is not None and self.place.instance else None

    @property
    def moves(self) -> int:
        """What it costs that it leaves: nothing where it came anew."""
        return int(self.place is not None)


def running_at(node: int, place: Present, gpus: tuple[int, ...] | None = None) -> Leaver:
    """Return one who runs at a place of a node, counted on `gpus` where these are others that are idle as well."""
    counted = place.gpus if gpus is None else gpus
    return Leaver((node, place.shape, counted), place, place.instance.partition("@")[0])


def _stays(field: Field, leaver: Leaver, *, stays: bool) -> None:
    """Count on it that a replica stays where it runs, or does so no more."""
    node, shape, gpus = leaver.put
    if leaver.place is None:
        return
    field.changing(node).kept[leaver.place] += 1 if stays else -1
    if leaver.instance is not None:
        (field.cuts.stay if stays else field.cuts.let_go)(node, gpus[0], leaver.instance)
    elif field.partial[shape] and field.crowds.parted[node]:
        (field.crowds.stay if stays else field.crowds.let_go)(node, gpus[0])


def leave(field: Field, leaver: Leaver) -> None:
    """Take a replica off its node; where it ran there, it does not stay."""
    _stays(field, leaver, stays=False)
    field.undo(*leaver.put, leaver.profile)


def come_back(field: Field, leaver: Leaver) -> None:
    """Put a replica that left back where it was."""
    _stays(field, leaver, stays=True)
    field.put_back(*leaver.put, leaver.profile)


def pinned_gpus(fill: Fill) -> set[int]:
    """Return the GPUs of a node that certain replicas have: those that share one, and those that stay."""
    pinned = {slot.gpu for slot, count in fill.slots.items() if count and slot.gpu != NO_GPU}
    return pinned | {gpu for place, count in fill.kept.items() if count for gpu in place.gpus}


def may_leave(workload: Workload, pinned: Collection[str]) -> bool:
    """Tell whether replicas of a workload may leave where they run, one by one; those of `pinned` ones may not."""
    return stands_alone(workload) and workload.movable and workload.id not in pinned


def fewest(workload: Workload) -> tuple[int, int] | None:
    """Return with how many replicas what counts together goes on, and in which steps with more (S2.1, S2.6).

    None where it does so with all of them only, or where that depends on which they are.
    """
    if len(workload.roles) > 1 or workload.grouped or (workload.atomic and not workload.elastic):
        return None
    (role,) = workload.roles
    return max(role.least or 0, workload.min_replicas), role.step


def stands_alone(workload: Workload) -> bool:
    """Tell whether replicas of a workload come and go one by one."""
    return not (workload.joint or workload.ranked or workload.holds)


def _ranks(nodes: Ints) -> Ints:
    """Return which of its node each is, from 1 on, `EVERYBODY` after some; nodes in order."""
    rank = np.arange(len(nodes)) - np.searchsorted(nodes, nodes)
    return np.asarray(np.minimum(rank + 1, EVERYBODY))


class Leavers:
    """Who may leave the nodes of a field.

    Parameters
    ----------
    pinned : workloads that may not move.
    victims : workloads that may leave nevertheless, as they go without a place.

    `names` are CPU, memory and resources, the dimensions before GPUs.
    """

    def __init__(self, field: Field, pinned: frozenset[str], victims: frozenset[str] = frozenset()) -> None:
        self._field, self._problem, self._pinned, self._victims = field, field.problem, pinned, victims
        self.names = ("cpu", "memory", *field.resources)
        self._seen = 0

    def free(self, name: str) -> Ints:
        """Return what is left of CPU, memory or a resource on every node."""
        field = self._field
        return field.cpu if name == "cpu" else field.memory if name == "memory" else field.resources[name]

    def asked(self, shape: int) -> list[int]:
        """Return what a replica of a shape has of every dimension: `names`, and GPUs, one for a part."""
        return self._asked[shape]

    @cached_property
    def _asked(self) -> list[list[int]]:
        requests = [shape.request for shape in self._problem.shapes]
        hosts = [[requested_of(request, name) for name in self.names] for request in requests]
        gpus = [min(r.gpu_count, 1) if r.partial else r.gpus for r in requests]
        return [[*row, count] for row, count in zip(hosts, gpus, strict=True)]

    @cached_property
    def _amounts(self) -> Ints:
        """What replicas of every shape free by themselves: parts of GPUs none."""
        found = np.array(self._asked, dtype=np.int64).reshape(len(self._asked), len(self.names) + 1)
        found[self._field.partial, -1] = 0
        return found

    @cached_property
    def _movable(self) -> Bools:
        """Of which shapes replicas may leave where they run."""
        of = [shape.workload for shape in self._problem.shapes]
        return np.array([w.id in self._victims or may_leave(w, self._pinned) for w in of], dtype=bool)

    @cached_property
    def _most(self) -> Ints:
        fills = self._field.fills
        found = np.zeros((len(self._problem.nodes), EVERYBODY + 1, len(self.names) + 1), dtype=np.int64)
        runs = [
            (node, place.shape, place.gpus[0] if place.gpus else NO_GPU)
            for node, fill in fills.items()
            for place, count in fill.kept.items()
            for _ in range(count)
        ]
        if runs:
            nodes, shapes, gpus = np.array(runs, dtype=np.int64).T
            movable = self._movable[shapes]
            nodes, shapes, gpus = nodes[movable], shapes[movable], gpus[movable]
            for dimension, amounts in enumerate(self._amounts[shapes].T):
                order = np.lexsort((-amounts, nodes))
                np.add.at(found[:, :, dimension], (nodes[order], _ranks(nodes[order])), amounts[order])
            parts = np.array(self._field.partial, dtype=bool)[shapes]
            self._add_groups(found, nodes[parts], gpus[parts])
        found = found.cumsum(axis=1)
        for node, fill in fills.items():
            if fill.slots.total() != fill.kept.total():
                found[node] = self._most_of(node)
        self._seen = self._field.turn
        return found

    def _add_groups(self, found: Ints, nodes: Ints, gpus: Ints) -> None:
        """Count the GPUs that are idle once all who share them have left, by how many that are."""
        spots, sizes = np.unique(np.stack([nodes, gpus]), axis=1, return_counts=True)
        order = np.lexsort((sizes, spots[0]))
        ranked, sizes = spots[0][order], sizes[order]
        sums = np.cumsum(sizes)
        before = np.searchsorted(ranked, ranked)
        moves = sums - (sums[before] - sizes[before])
        np.add.at(found[:, :, -1], (ranked, np.minimum(moves, EVERYBODY)), 1)
        # Where nobody has a whole GPU as long as any is shared, the idle ones count as well.
        found[self._field.crowds.parted, 1, -1] += self._field.gpus.shape[1]

    def most(self) -> Ints:
        """Return what replicas free that leave a node, no less than that: by node, how many move, and dimension."""
        most = self._most
        for node in np.flatnonzero(self._field.touched > self._seen).tolist():
            most[node] = self._most_of(node)
        self._seen = self._field.turn
        return most

    def _most_of(self, node: int) -> Ints:
        found = np.zeros((EVERYBODY + 1, len(self.names) + 1), dtype=np.int64)
        leavers = self.of(node)
        if leavers:
            amounts = self._amounts[[each.shape for each in leavers]]
            free = np.array([not each.moves for each in leavers])
            ranked = -np.sort(-amounts[~free], axis=0)
            first = ranked[:MOST_MOVES]
            found[1 : len(first) + 1] = first
            found[EVERYBODY] = ranked[MOST_MOVES:].sum(axis=0)
            groups = Counter[int]()
            for each in leavers:
                if self._field.partial[each.shape]:
                    groups[each.put[2][0]] += each.moves
            for moves in accumulate(sorted(groups.values())):
                found[min(moves, EVERYBODY), -1] += 1
            if groups and self._field.crowds.parted[node]:
                found[0, -1] += self._field.gpus.shape[1]  # `_add_groups`
            found = found.cumsum(axis=0) + amounts[free].sum(axis=0)
        return found

    def of(self, node: int) -> list[Leaver]:
        """Return who may leave a node."""
        fill = self._field.fills.get(node)
        if fill is None:
            return []
        found = [
            running_at(node, place)
            for place, count in fill.kept.items()
            if self._movable[place.shape]
            for _ in range(count)
        ]
        return [*found, *self.anew(node)]

    def anew(self, node: int) -> Iterator[Leaver]:
        """Yield what came to a node anew; of whole GPUs where it is plain which these are."""
        fill = self._field.fills.get(node)
        if fill is None or fill.slots.total() == fill.kept.total():
            return
        plain = not (self._field.blocks.matter(node) or self._field.crowds.parted[node])
        pinned = pinned_gpus(fill)
        row = self._field.gpus[node].tolist()
        whole = [
            gpu
            for gpu in self._problem.nodes[node].healthy_gpus()
            if gpu not in pinned and not row[gpu] and not self._field.cuts.closed[node, gpu]
        ]
        for slot, count in without_kept(self._problem, node, fill).items():
            gpus = self._problem.shapes[slot.shape].request.gpus
            if (gpus and not plain) or not stands_alone(self._problem.shapes[slot.shape].workload):
                continue
            for _ in range(min(count, len(whole) // gpus if gpus else count)):
                taken = tuple(whole.pop() for _ in range(gpus)) if slot.gpu == NO_GPU else (slot.gpu,)
                yield Leaver((node, slot.shape, taken), None, slot.profile)
