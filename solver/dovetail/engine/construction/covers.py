"""Sets of replicas without which a node has room for one more, of those who may leave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, islice
from typing import NamedTuple

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.leavers import Leaver, Leavers
from dovetail.engine.construction.reliefs import Reliefs, Tenant
from dovetail.placement.clients import pool_of
from dovetail.problem import Shape
from dovetail.rules.guards import ApartGuard
from dovetail.spec.cluster import NODE_LEVEL
from dovetail.spec.workload import MILLI

_LOOKS = 4_000  # nodes, by shape, that are remembered at once
_COVERS = 24  # sets of replicas that are looked at on one node
_FREE = 0.01  # moves as which none count
_ANEW = 2  # replicas that came anew, and leave beside others that move


class Item(NamedTuple):
    """Replicas that leave together, what that costs at the least, and what it frees in each dimension."""

    moves: int
    freed: tuple[int, ...]
    leavers: tuple[Leaver, ...]
    again: frozenset[int] = frozenset()  # of the leavers, who has room on its GPU again

    def part_of(self, lack: Sequence[int]) -> float:
        """Return how much of what is lacking it frees, dimension by dimension and added up."""
        return sum(min(1.0, more / short) for more, short in zip(self.freed, lack, strict=True) if short > 0)

    def left_of(self, lack: Sequence[int]) -> tuple[int, ...]:
        """Return what is lacking once it is gone."""
        return tuple(short - more for short, more in zip(lack, self.freed, strict=True))

    def going(self) -> Iterator[Leaver]:
        """Yield who leaves, each with whether it has room again."""
        for position, leaver in enumerate(self.leavers):
            yield replace(leaver, again=True) if position in self.again else leaver


class Look(NamedTuple):
    """What was seen of a node: when, who has to leave, what is lacking then, and what else may leave."""

    turn: int
    barring: Sequence[Leaver]
    lack: tuple[int, ...]
    items: Sequence[Item]


class Covers:
    """Who has to leave the nodes of a field for one replica more.

    Parameters
    ----------
    leavers : of the field.
    """

    def __init__(self, field: Field, leavers: Leavers) -> None:
        self._field, self._problem, self._leavers = field, field.problem, leavers
        self._reliefs = Reliefs(field.cuts)
        self._looks: dict[tuple[int, int], Look] = {}

    def few(self, form: Shape, node: int, moves: int) -> Iterator[tuple[Leaver, ...]]:
        """Yield sets of replicas without which a node has room for one, none that holds another, few first."""
        _, barring, lack, items = self.look(form, node)
        budget = moves - sum(each.moves for each in barring)
        if budget < 0:
            return
        for chosen in islice(_chosen([item for item in items if item.moves <= budget], lack, budget), _COVERS):
            cover = [*barring, *(leaver for item in chosen for leaver in item.leavers)]
            if len(set(map(id, cover))) == len(cover):
                yield (*barring, *(leaver for item in chosen for leaver in item.going()))

    def many(self, form: Shape, node: int, goes: Callable[[Leaver], bool]) -> tuple[Leaver, ...] | None:
        """Return one such set of any number: those first for whom the fewest move per GPU, then the largest.

        None where there is no room even without all of them.

        Parameters
        ----------
        goes : tells who is to leave of those who may.
        """
        barring, rest = self._told_apart(form, node)
        if not all(map(goes, barring)):
            return None
        lack = self._lack(form, node, barring)
        items = self._items(form, node, list(filter(goes, rest)), lack)
        gone: dict[int, Leaver] = {}
        making_idle = sorted(
            (i for i in items if i.freed[-1]), key=lambda item: (item.moves / item.freed[-1], item.moves)
        )
        for item in (*making_idle, *sorted(items, key=lambda item: _share(item, lack), reverse=True)):
            useful = any(freed and short > 0 for freed, short in zip(item.freed, lack, strict=True))
            if useful and not any(id(each) in gone for each in item.leavers):
                gone |= {id(each): going for each, going in zip(item.leavers, item.going(), strict=True)}
                lack = item.left_of(lack)
        return None if any(short > 0 for short in lack) else (*barring, *gone.values())

    def look(self, form: Shape, node: int) -> Look:
        """Return what is seen of a node for a shape, looked at anew where that has changed."""
        turn, known = int(self._field.touched[node]), self._looks.get((form.index, node))
        if known is None or known.turn != turn:
            barring, rest = self._told_apart(form, node)
            lack = self._lack(form, node, barring)
            known = Look(turn, barring, lack, self._items(form, node, rest, lack))
            if len(self._looks) >= _LOOKS:
                self._looks.clear()
            self._looks[form.index, node] = known
        return known

    def _told_apart(self, form: Shape, node: int) -> tuple[list[Leaver], list[Leaver]]:
        """Return who has to leave a node, as a rule keeps them apart, and who else may."""
        leavers = self._leavers.of(node)
        barring = [each for each in leavers if self._bars(form, each.shape)]
        return barring, [each for each in leavers if each not in barring]

    def _bars(self, form: Shape, shape: int) -> bool:
        """Tell whether a rule that looks at nodes keeps two shapes apart."""
        other = self._problem.shapes[shape].workload
        for guard in self._field.gates.guards(form.index):
            if isinstance(guard, ApartGuard) and guard.level == NODE_LEVEL:
                mine, theirs = guard.key(form.workload), guard.key(other)
                if mine is not None and theirs is not None and mine != theirs:
                    return True
        return False

    def _lack(self, form: Shape, node: int, gone: Sequence[Leaver]) -> tuple[int, ...]:
        """Return what a node lacks for a replica once some are gone: CPU, memory, resources, and GPUs."""
        *hosts, gpus = self._leavers.asked(form.index)
        free = (int(self._leavers.free(name)[node]) for name in self._leavers.names)
        lack = [asked - left for asked, left in zip(hosts, free, strict=True)]
        idle = int(self._field.untouched[node])
        if form.request.partial and (form.request.may_use_mig or self._field.crowds.parted[node] or idle == 0):
            idle = int(any(self._has_room(form, node, gpu) for gpu in range(self._field.gpus.shape[1])))
        for each in gone:
            request = self._problem.shapes[each.shape].request
            lack = [a - b for a, b in zip(lack, self._leavers.asked(each.shape)[:-1], strict=True)]
            idle += request.gpus or int(form.request.partial and request.partial)
        return (*lack, gpus - idle)

    def _has_room(self, form: Shape, node: int, gpu: int) -> bool:
        """Tell whether a GPU has room for a part."""
        if not (form.request.may_use_mig or self._field.crowds.parted[node]):
            return self._relieves(form, node, gpu, 0)
        untouched = bool(self._field.gpus[node, gpu] == MILLI)
        profile = self._field.cuts.profile(node, gpu, form, untouched=untouched)
        return profile is not None or self._field.share_fits(node, form, gpu)

    def _relieves(self, form: Shape, node: int, gpu: int, milli: int) -> bool:
        """Tell whether a GPU that is shared by fractions has room for a share once so much more of it is free."""
        if form.request.share is None or self._field.crowds.parted[node] or self._field.cuts.held(node, gpu):
            return False
        left, asked = int(self._field.gpus[node, gpu]), self._problem.request(form.index, self._problem.nodes[node])
        return left >= 0 and left + milli >= max(1, asked.gpu_milli)

    def _items(self, form: Shape, node: int, leavers: Sequence[Leaver], lack: Sequence[int]) -> list[Item]:
        """Return what may leave, replica by replica, and who of a GPU frees it, or enough of it, together."""
        found = []
        shared: dict[int, list[Leaver]] = {}
        made = self._problem.nodes[node]
        for each in leavers:
            if each.shape == form.index:
                if each.profile:
                    shared.setdefault(each.put[2][0], []).append(each)
                continue
            request = self._problem.request(each.shape, made)
            *hosts, gpus = self._leavers.asked(each.shape)
            if request.partial:
                shared.setdefault(each.put[2][0], []).append(each)
                gpus = int(form.request.partial and self._relieves(form, node, each.put[2][0], request.gpu_milli))
            found.append(Item(each.moves, (*hosts, gpus), (each,)))
        for group in self._groups(node, shared):
            for together in self._freeing(form, node, group):
                found.append(together)
                if together.again and any(short > 0 for short in lack[:-1]):  # gone for good they free CPU too
                    found.append(self._item(together.leavers))
        return sorted(found, key=lambda item: (item.moves, -item.freed[-1], -item.freed[0]))

    def _groups(self, node: int, shared: Mapping[int, Sequence[Leaver]]) -> Iterator[Sequence[Leaver]]:
        """Yield replicas by their GPU, those of pools that are shared by equal parts by their pool."""
        pools: dict[int, list[Leaver]] = {}
        for gpu, group in shared.items():
            if self._field.crowds.parted[node] and not self._field.cuts.held(node, gpu):
                pools.setdefault(pool_of(self._problem.nodes[node], gpu), []).extend(group)
            else:
                yield group
        yield from pools.values()

    def _freeing(self, form: Shape, node: int, group: Sequence[Leaver]) -> Iterator[Item]:
        """Yield who of a GPU or a pool has to leave together to make it idle, or, for a part, to make room there."""
        gpu = group[0].put[2][0]
        tenants = self._field.cuts.held(node, gpu)
        if not tenants and self._field.crowds.parted[node]:
            yield from self._clients(form, node, group)
        elif not tenants:
            if together := self._together(form, node, gpu, group):
                yield self._item(together)
        elif form.request.may_use_mig:
            own = [Tenant(each.profile, each.instance) for each in group]
            for gone, again in self._reliefs.of(node, gpu, form, own):
                if all(i in again for i in gone if group[i].shape == form.index):  # else it would take its own place
                    yield self._item([group[i] for i in gone], frozenset(k for k, i in enumerate(gone) if i in again))
        elif len(group) == tenants and not self._field.cuts.closed[node, gpu]:
            yield self._item(group)

    def _clients(self, form: Shape, node: int, group: Sequence[Leaver]) -> Iterator[Item]:
        """Yield which clients of a pool have to leave: some of a GPU that stays as it is set, else all."""
        crowds, pool = self._field.crowds, pool_of(self._problem.nodes[node], group[0].put[2][0])
        most = crowds.most_with(form, node, group[0].put[2][0]) if form.request.share is not None else 0
        if most:
            for gpu in sorted({each.put[2][0] for each in group}):
                own = sorted((each for each in group if each.put[2] == (gpu,)), key=lambda each: each.moves)
                short = crowds.clients(node, gpu) + 1 - most
                if 0 < short <= len(own):
                    yield self._item(own[:short])
        elif len(group) == crowds.clients_of(node, pool):
            again = crowds.again(form, node, [(each.shape, each.put[2][0]) for each in group])
            yield self._item(group, again, 1 if form.request.partial else crowds.freed(node, pool))

    def _item(self, leavers: Sequence[Leaver], again: frozenset[int] = frozenset(), gpus: int = 1) -> Item:
        """Return some who leave together, and free what those take who go for good, and GPUs."""
        gone = [self._leavers.asked(each.shape) for i, each in enumerate(leavers) if i not in again]
        hosts = [sum(amounts) for amounts in zip(*gone, strict=True)][:-1] or [0] * len(self._leavers.names)
        return Item(sum(each.moves for each in leavers), (*hosts, gpus), tuple(leavers), again)

    def _together(self, form: Shape, node: int, gpu: int, group: Sequence[Leaver]) -> Sequence[Leaver]:
        """Return which shares of a GPU make it idle, or, for a share, make room on it; none where one alone does."""
        made, left = self._problem.nodes[node], int(self._field.gpus[node, gpu])
        milli = {id(each): self._problem.request(each.shape, made).gpu_milli for each in group}
        if form.request.share is None:
            return group if left + sum(milli.values()) == MILLI else ()
        largest = sorted(group, key=lambda each: (each.moves, -milli[id(each)]))
        freed = accumulate(milli[id(each)] for each in largest)
        enough = next((n for n, more in enumerate(freed, 1) if self._relieves(form, node, gpu, more)), 0)
        return largest[:enough] if enough > 1 else ()


def _share(item: Item, lack: Sequence[int]) -> float:
    """Return how much of what is lacking an item frees, for each of its moves."""
    return item.part_of(lack) / max(item.moves, _FREE)


def _chosen(items: Sequence[Item], lack: tuple[int, ...], budget: int) -> Iterator[tuple[Item, ...]]:
    """Yield sets of items that free what is lacking within a budget of moves, small sets first."""
    free = any(not item.moves for item in items)
    for size in range(budget + 1 + (_ANEW if free else 0)):
        yield from _of_size(items, lack, budget, size)


def _of_size(items: Sequence[Item], lack: tuple[int, ...], budget: int, size: int) -> Iterator[tuple[Item, ...]]:
    wanting = [d for d, amount in enumerate(lack) if amount > 0]
    if not wanting or not size:
        if not wanting and not size:
            yield ()
        return
    if any(size * max((item.freed[d] for item in items), default=0) < lack[d] for d in wanting):
        return
    last: object = None
    for position, item in enumerate(items):
        same = item.freed, item.moves, tuple(each.shape for each in item.leavers)
        if item.moves > budget or same == last or not any(item.freed[d] for d in wanting):
            continue
        last = same
        left = item.left_of(lack)
        for more in _of_size(items[position + 1 :], left, budget - item.moves, size - 1):
            yield (item, *more)
