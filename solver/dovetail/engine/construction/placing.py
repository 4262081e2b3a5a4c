"""Placing replicas of a shape, one after the other where each spoils least, all hard rules kept."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import cached_property

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Gradient, Ints
from dovetail.engine.construction.outlook import NOWHERE, Outlook, Ranks, Spoilage, form_of
from dovetail.engine.construction.part_outlook import PartOutlook
from dovetail.problem import Shape
from dovetail.spec.workload import MILLI

Put = tuple[int, int, tuple[int, ...]]  # node, shape, GPUs
Told = tuple[int, int, tuple[int, ...], str]  # and the profile of its instance, empty without one

_LEAST = np.int32(-NOWHERE - 1)


class Outlooks:
    """The outlook of every form that was asked for, over one field.

    Which nodes were found blocked is remembered by shape, and so is that there was no place at all: capacity only
    shrinks, until something is undone or a rule opens places again.
    """

    def __init__(self, field: Field) -> None:
        self.field = field
        self._spoilage = Spoilage(field, Gradient(field.problem))
        self._models = np.array([node.accelerator or "" for node in field.problem.nodes])
        self._forms: dict[int, Hashable] = {}
        self._outlooks: dict[Hashable, Outlook | PartOutlook] = {}
        self._accepting: dict[frozenset[str], Bools] = {}
        self._by_gpu = any(guard.by_gpu for guard in field.guards)
        self._closed: dict[int, list[int]] = {}
        self._spent: set[int] = set()
        self._opened: dict[int, int] = {}

    def form(self, shape: int) -> Hashable:
        """Return the form of a shape."""
        if shape not in self._forms:
            self._forms[shape] = form_of(self.field, self.field.problem.shapes[shape])
        return self._forms[shape]

    @cached_property
    def domains(self) -> Mapping[str, Ints]:
        """Per level, the number of the domain that each node lies in, -1 for none."""
        found = {}
        for level in self.field.problem.spec.cluster.levels:
            numbers: dict[str | None, int] = {None: -1}
            paths = [node.domain(level) for node in self.field.problem.nodes]
            found[level] = np.array([numbers.setdefault(path, len(numbers) - 1) for path in paths], dtype=np.int64)
        return found

    def place(
        self, shape: int, count: int, models: frozenset[str] | None = None, nodes: Bools | None = None
    ) -> list[Put]:
        """Add up to so many replicas of a shape, each where it spoils least then.

        Parameters
        ----------
        models : accelerators to use, None for any.
        nodes : a mask of the nodes to use, None for all.
        """
        form = self.field.problem.shapes[shape]
        accepted = self.accepted(models) if models is not None and form.request.gpu_count else None
        if nodes is not None:
            accepted = nodes if accepted is None else accepted & nodes
        puts: list[Put] = []
        while (wanted := min(count - len(puts), self.field.room_in_all(shape))) > 0:
            self._recall(shape)
            if shape in self._spent:
                break
            found = self._fill(form, wanted, accepted)
            if not found:
                break
            puts += found
        return puts

    def told(self, puts: list[Put]) -> list[Told]:
        """Return what was put last with the profiles of its instances, by which it may be undone once others left."""
        return [(*put, profile) for put, profile in zip(puts, self.field.cuts.last(puts), strict=True)]

    def only(self, nodes: Iterable[int]) -> Bools:
        """Return a mask of some nodes."""
        mask = np.zeros(len(self.field.problem.nodes), dtype=bool)
        mask[list(nodes)] = True
        return mask

    def ranks(self, shape: int) -> Ranks:
        """Return the rank of every node for a shape, as masks and room tell it."""
        return self._open(self._outlook(self.field.problem.shapes[shape]), shape, None)

    def undo(self, asked: list[int], puts: list[Put]) -> list[str]:
        """Take off what was put last; what shapes that were not asked since then remember is as true as before.

        Returns the profile of each one's instance, empty without one.
        """
        profiles = [self.field.undo(*put) for put in reversed(puts)]
        for shape in set(asked):
            self.reopen(shape)
        return profiles[::-1]

    def put_back(self, puts: list[Put], profiles: list[str]) -> None:
        """Put back as it was what was taken off."""
        for put, profile in zip(puts, profiles, strict=True):
            self.field.put_back(*put, profile)

    def reopen(self, shape: int) -> None:
        """Forget which places were blocked to a shape."""
        self._closed.pop(shape, None)
        self._spent.discard(shape)

    def forget(self) -> None:
        """Forget all that was found blocked, as where nodes hold something else than before."""
        self._closed.clear()
        self._spent.clear()

    def _recall(self, shape: int) -> None:
        """Forget what was blocked where rules have opened places since."""
        opened = self.field.gates.opened(shape)
        if self._opened.get(shape, opened) != opened:
            self.reopen(shape)
        self._opened[shape] = opened

    def copies(self, shape: Shape, nodes: Ints, models: frozenset[str] | None = None) -> Ints:
        """Return for how many replicas of a shape each of some nodes has room, or more where GPUs may be cut.

        Parameters
        ----------
        models : accelerators to use, None for any.
        """
        own, request = self.field, shape.request
        room = np.full(len(nodes), shape.demand, dtype=np.int64)
        amounts = [(own.cpu, request.cpu), (own.memory, request.memory)]
        amounts += [(own.resources[name], amount) for name, amount in request.resources.items()]
        for free, amount in amounts:
            if amount:
                room = np.minimum(room, free[nodes] // amount)
        if request.gpus:
            room = np.minimum(room, own.whole_room(shape, nodes))
        if request.share:
            left = np.clip(own.gpus[nodes], 0, MILLI) // own.share_milli(shape, nodes)[:, None]
            room = np.minimum(room, left.sum(axis=1))
        allowed = own.hosts(shape)[nodes]
        shut = own.gates.shut(shape.index)
        if shut is not None:
            allowed = allowed & ~shut[nodes]
        if models is not None and request.gpu_count:
            allowed = allowed & self.accepted(models)[nodes]
        return np.where(allowed, np.maximum(room, 0), 0)

    def accepted(self, models: frozenset[str]) -> Bools:
        """Return a mask of the nodes that have one of some accelerators."""
        if models not in self._accepting:
            self._accepting[models] = np.isin(self._models, sorted(models))
        return self._accepting[models]

    def _fill(self, form: Shape, count: int, accepted: Bools | None) -> list[Put]:
        """Add replicas up to a count until there is no place, or until rules have opened places."""
        shape, field = form.index, self.field
        outlook = self._outlook(form)
        ranks = self._open(outlook, shape, accepted)
        opened = self._opened[shape]
        puts: list[Put] = []
        node = _best(ranks)
        while len(puts) < count and field.gates.opened(shape) == opened:
            if node is None:
                if accepted is None:
                    self._spent.add(shape)
                break
            before = ranks[node]
            taken = self._put(outlook, form, node, count - len(puts))
            if not taken:
                self._closed.setdefault(shape, []).append(node)
                ranks = self._open(outlook, shape, accepted)
                node = _best(ranks)
                continue
            puts += [(node, shape, gpus) for gpus in taken]
            ranks[node] = outlook.ranks[node]
            if ranks[node] > before:  # else it is the best still, as the others are what they were
                node = _best(ranks)
        return puts

    def _put(self, outlook: Outlook | PartOutlook, form: Shape, node: int, most: int) -> list[tuple[int, ...]]:
        """Add a replica to a node, and as many more as make that no worse, where only room is to check.

        Returns the GPUs of each, nothing where a hard rule bars all places.
        """
        field = self.field
        if not field.turned_away(node, form.index, outlook.gpu(node)):
            return outlook.put(form.index, node, 1 if field.gates.strict(form.index) else most)
        for _, gpu in outlook.places(node) if form.request.partial and self._by_gpu else ():
            if not field.turned_away(node, form.index, gpu):
                return outlook.put_on(form.index, node, gpu)
        return []

    def _outlook(self, form: Shape) -> Outlook | PartOutlook:
        key = self.form(form.index)
        if key not in self._outlooks:
            cut = form.request.may_use_mig
            made = PartOutlook(self.field, form) if cut else Outlook(self.field, self._spoilage, form)
            self._outlooks[key] = made
        self._outlooks[key].refresh()
        return self._outlooks[key]

    def _open(self, outlook: Outlook | PartOutlook, shape: int, accepted: Bools | None) -> Ranks:
        """Return the ranks of the nodes that are open to a shape; the outlook's own where all are."""
        shut = self.field.gates.shut(shape)
        closed = self._closed.get(shape)
        if shut is None and closed is None and accepted is None:
            return outlook.ranks
        # The least number less one wraps round to the greatest: several times as fast as to choose node by node.
        ranks = outlook.ranks.copy() if shut is None else np.maximum(outlook.ranks, _LEAST - shut)
        if closed is not None:
            ranks[closed] = NOWHERE
        if accepted is not None:
            ranks[~accepted] = NOWHERE
        return ranks


def _best(ranks: Ranks) -> int | None:
    """Return the first node of the least rank, None where no node has any."""
    node = int(ranks.argmin()) if len(ranks) else 0
    return None if not len(ranks) or ranks[node] == NOWHERE else node
