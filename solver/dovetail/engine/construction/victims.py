"""Who gives way to work of a higher band, and what that costs: sets of preemptible replicas, the cheapest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from dovetail.engine.construction.covers import Covers, Item
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.leavers import Leaver, Leavers, fewest, may_leave, running_at
from dovetail.engine.construction.prices import Price, Prices, Toll
from dovetail.problem import Problem, Shape
from dovetail.spec import Workload
from dovetail.spec.workload import MILLI

_KEPT = 3  # sets of victims that free as many GPUs, of which the next may make another the cheapest
_PARTS = 1000  # of what is lacking
NEVER: Final = np.iinfo(np.int64).max


def gives_way(problem: Problem, workload: Workload, band: float) -> bool:
    """Tell whether what runs of a workload may go without a place for work of a band."""
    whole = not workload.holds and (workload.joint or not workload.ranked)
    return workload.preemptible and whole and problem.spec.band_of(workload) < band


TollOf = Callable[[Leaver], Toll | None]
_Rows = tuple[Ints, Ints, Ints, Ints]


class Eviction(NamedTuple):
    """Who leaves a node for a replica, and what that costs."""

    price: Price
    node: int
    leavers: tuple[Leaver, ...]


class Victims:
    """Who gives way to a band in a field.

    Parameters
    ----------
    pinned : workloads that may not move.

    `names` are the workloads that give way, `leavers` they and who may go on elsewhere.
    """

    def __init__(self, field: Field, band: int, pinned: frozenset[str]) -> None:
        self._field, self._problem = field, field.problem
        running = (field.problem.shapes[shape].workload for shape in field.problem.running)
        self.names = frozenset(w.id for w in running if w.id not in pinned and gives_way(field.problem, w, band))
        self.prices = Prices(field.problem, band)
        self._band, self._pinned = band, pinned
        self.leavers = Leavers(field, pinned, self.names)
        self._covers = Covers(field, self.leavers)

    def gives_way(self, leaver: Leaver) -> bool:
        """Tell whether a replica may go without a place: one of lower bands that is preemptible, or new to the plan.

        What came anew of a workload that runs may be somebody who made way before, and must have a place.
        """
        workload = self._problem.shapes[leaver.shape].workload
        if leaver.place is not None or self._problem.running[leaver.shape]:
            return workload.id in self.names and (leaver.place is not None or not workload.joint)
        return not workload.joint and self._problem.spec.band_of(workload) < self._band

    def lowest(self, leaver: Leaver) -> bool:
        """Tell whether nobody who gives way is of a lower band than a replica."""
        return self._problem.spec.band_of(self._problem.shapes[leaver.shape].workload) <= self._lowest

    @cached_property
    def _lowest(self) -> int:
        spec = self._problem.spec
        return min((spec.band_of(spec.by_id[name]) for name in self.names), default=self._band)

    def may_move(self, leaver: Leaver) -> bool:
        """Tell whether a replica may go on elsewhere, by itself."""
        return may_leave(self._problem.shapes[leaver.shape].workload, self._pinned)

    def together(self, leaver: Leaver) -> Sequence[Leaver]:
        """Return who goes with a replica that goes without a place: all that run of what counts together only."""
        workload = self._problem.shapes[leaver.shape].workload
        if not workload.joint or leaver.place is None:
            return (leaver,)
        fills, found = self._field.fills, list[Leaver]()
        for node in self._nodes_of[workload.id]:
            for place, count in fills[node].kept.items() if node in fills else ():
                if self._problem.shapes[place.shape].workload.id == workload.id:
                    found += [running_at(node, place)] * count
        return found

    def losing(self, leaver: Leaver) -> Sequence[Leaver]:
        """Return who goes without a place with a replica: of what has more than it goes on with one step."""
        together = self.together(leaver)
        least = fewest(self._problem.shapes[leaver.shape].workload) if len(together) > 1 else None
        return together[: least[1]] if least is not None and len(together) - least[1] >= least[0] else together

    @cached_property
    def _nodes_of(self) -> Mapping[str, Sequence[int]]:
        """By workload that gives way, the nodes that it runs on today, from which it may be away for a while."""
        found = defaultdict[str, list[int]](list)
        for node, places in sorted(self._problem.present.items()):
            names = {self._problem.shapes[place.shape].workload.id for place in places}
            for name in names & self.names:
                found[name].append(node)
        return found

    def cheapest(self, form: Shape, node: int, toll_of: TollOf, gpus: int = 0) -> Eviction | None:
        """Return who leaves a node for a replica at the least cost, None where there is no room without them either.

        Parameters
        ----------
        toll_of : tells what it costs that a replica leaves, None where it may not.
        gpus : how many have to be freed whatever is idle.
        """
        look = self._covers.look(form, node)
        lack = (*look.lack[:-1], max(look.lack[-1], gpus))
        barring = [toll_of(each) for each in look.barring]
        if any(toll is None for toll in barring):
            return None
        items = [each for item in self._merged(look.items) if (each := self._priced(item, toll_of)) is not None]
        chosen = _Covering(items, lack, self.prices).chosen()
        if chosen is None:
            return None
        tolls = [toll for toll in barring if toll] + [toll for each in chosen for toll in each.tolls]
        going = (leaver for each in chosen for leaver in each.item.going())
        return Eviction(self.prices.total(tolls), node, (*look.barring, *going))

    def _merged(self, items: Iterable[Item]) -> list[Item]:
        """Return items with those of a node that go together made one."""
        found, joint = list[Item](), dict[str, Item]()
        for item in items:
            workload = self._problem.shapes[item.leavers[0].shape].workload
            if len(item.leavers) > 1 or not workload.joint:
                found.append(item)
            elif (other := joint.get(workload.id)) is None:
                joint[workload.id] = item
            else:
                freed = tuple(a + b for a, b in zip(other.freed, item.freed, strict=True))
                joint[workload.id] = Item(other.moves + item.moves, freed, other.leavers + item.leavers)
        return [*found, *joint.values()]

    def _priced(self, item: Item, toll_of: TollOf) -> _Priced | None:
        """Return an item with what it costs, None where one of it may not leave; what goes together counts once."""
        tolls, counted = list[Toll](), set[str]()
        for each in item.going():
            workload, toll = self._problem.shapes[each.shape].workload, toll_of(each)
            if toll is None:
                return None
            tolls += [toll] if workload.id not in counted else []
            counted |= {workload.id} if workload.joint else set()
        return _Priced(tuple(tolls), item)

    def by_price(self) -> list[Leaver]:
        """Return who runs and gives way, those first who cost least for each GPU; of what goes together one."""
        found: dict[object, tuple[Price, int, Leaver]] = {}
        for node in sorted(self._field.fills):
            for leaver in self.leavers.of(node):
                workload = self._problem.shapes[leaver.shape].workload
                if leaver.place is not None and workload.id in self.names:
                    key = workload.id if workload.joint else len(found)
                    if key not in found:
                        found[key] = self._unit(leaver), len(found), leaver
        return [leaver for *_, leaver in sorted(found.values(), key=lambda each: each[:2])]

    def dearest(self, need: int, *, alone: bool, shapes: Collection[int] | None = None) -> Ints:
        """Return per node about how dear the dearest is who leaves it to free so many GPUs, `NEVER` for too few.

        Parameters
        ----------
        alone : who counts together only is as dear as who must go on.
        shapes : of which all of it has to be, whatever is idle; None for any.
        """
        nodes, milli, ranks, of = self._alone if alone else self._all
        idle = self._field.untouched
        if shapes is not None:
            own = np.isin(of, sorted(shapes))
            nodes, milli, ranks, idle = nodes[own], milli[own], ranks[own], np.zeros_like(idle)
        found = np.where(idle >= need, 0, NEVER)
        if len(nodes):
            starts = np.flatnonzero(np.r_[True, nodes[1:] != nodes[:-1]])
            freed = np.cumsum(milli)
            before = np.repeat((freed - milli)[starts], np.diff(np.r_[starts, len(nodes)]))
            enough = freed - before >= (need - idle[nodes]) * MILLI
            least = np.minimum.reduceat(np.where(enough, ranks, NEVER), starts)
            found[nodes[starts]] = np.minimum(found[nodes[starts]], least)
        return found

    @cached_property
    def _alone(self) -> _Rows:
        return self._rows(alone=True)

    @cached_property
    def _all(self) -> _Rows:
        return self._rows(alone=False)

    def _rows(self, *, alone: bool) -> _Rows:
        """Return node, milli-GPU, rank of the price per GPU, and shape of all who may leave, who must go on last."""
        most, shapes = self.prices.most, self._problem.shapes
        rows = [
            (node, shapes[of].request.gpu_milli, most if alone and shapes[of].workload.joint else price, of)
            for node, of, price in self._units
        ]
        order = {price: rank for rank, price in enumerate(sorted({price for _, _, price, _ in rows}))}
        table = np.array([(node, milli, order[price], shape) for node, milli, price, shape in rows], dtype=np.int64)
        nodes, gpus, ranks, kinds = table.reshape(-1, 4).T
        by = np.lexsort((ranks, nodes))
        return nodes[by], gpus[by], ranks[by], kinds[by]

    @cached_property
    def _units(self) -> list[tuple[int, int, Price]]:
        """Node, shape and price per GPU of all who may leave; those who go together have the price of the first."""
        found, joint = list[tuple[int, int, Price]](), dict[str, Price]()
        for node in sorted(self._field.fills):
            for leaver in self.leavers.of(node):
                workload = self._problem.shapes[leaver.shape].workload
                price = joint.get(workload.id)
                if price is None:
                    price = self._unit(leaver)
                    if workload.joint:
                        joint[workload.id] = price
                found.append((node, leaver.shape, price))
        return found

    def _unit(self, leaver: Leaver) -> Price:
        """Return what it costs for each thousandth of a GPU that a replica goes, the most if it must go on."""
        if not self.gives_way(leaver):
            return self.prices.most
        own = self.losing(leaver)
        milli = sum(self._problem.shapes[each.shape].request.gpu_milli for each in own)
        return self.prices.total([self.prices.evicted(own)]) // max(1, milli)


class _Priced(NamedTuple):
    tolls: tuple[Toll, ...]
    item: Item


class _Covering:
    """Looks for the cheapest of some items that free what is lacking."""

    def __init__(self, items: Sequence[_Priced], lack: tuple[int, ...], prices: Prices) -> None:
        self._items, self._lack, self._prices = items, lack, prices

    def chosen(self) -> list[_Priced] | None:
        """Return the cheapest as to GPUs, and whoever else frees most for its price; None where all are too few."""
        gone = self._for_gpus()
        if gone is None:
            return None
        left = self._lack
        for each in gone:
            left = each.item.left_of(left)
        rest = [each for each in self._items if each not in gone]
        while any(short > 0 for short in left):
            rest = [each for each in rest if each.item.part_of(left) and not _overlaps(each.item, gone)]
            if not rest:
                return None
            parts = [max(1, round(_PARTS * each.item.part_of(left))) for each in rest]
            dear = [_PARTS * self._cost([*gone, each]) // part for each, part in zip(rest, parts, strict=True)]
            gone.append(rest[dear.index(min(dear))])
            left = gone[-1].item.left_of(left)
        for each in sorted(gone, key=lambda each: -self._cost([each])):
            if all(short + more <= 0 for short, more in zip(left, each.item.freed, strict=True)):
                gone.remove(each)
                left = tuple(short + more for short, more in zip(left, each.item.freed, strict=True))
        return gone

    def _cost(self, chosen: Iterable[_Priced]) -> Price:
        return self._prices.total(toll for each in chosen for toll in each.tolls)

    def _for_gpus(self) -> list[_Priced] | None:
        """Return the cheapest items that free the GPUs, by dynamic programming over how many are free."""
        need = max(0, self._lack[-1])
        best: dict[int, list[tuple[Price, tuple[_Priced, ...]]]] = {0: [(0, ())]}
        for each in (each for each in self._items if need and each.item.freed[-1] > 0):
            for free, known in sorted(best.items(), reverse=True):
                more = [(*chosen, each) for _, chosen in known if free < need and not _overlaps(each.item, chosen)]
                reached = best.setdefault(min(need, free + each.item.freed[-1]), []) if more else []
                reached += [(self._cost(chosen), chosen) for chosen in more]
                reached.sort(key=lambda priced: priced[0])
                del reached[_KEPT:]
        return list(best[need][0][1]) if need in best else None


def _overlaps(item: Item, chosen: Iterable[_Priced]) -> bool:
    own = set(map(id, item.leavers))
    return any(id(leaver) in own for each in chosen for leaver in each.item.leavers)
