"""Cheap pricing of one empty node: near-optimal contents of single GPUs, joined under CPU, memory and the rest.

CPU and memory are priced by multipliers that make the Lagrangian bound of the node least; what a GPU may then earn is
an exact one-dimensional knapsack. Contents of one GPU that is shared or cut are listed as far as they come close to
that, and joined, the best of those that take about as much of the host; items of whole GPUs are added one by one
(`beam`). What comes out is legal as far as amounts go, but not proved best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dovetail.engine.contents.beam import Beam
from dovetail.engine.contents.dominance import Dominance
from dovetail.engine.contents.gpu_contents import Contents, Floats, Ints, Shares, earnings, spread
from dovetail.engine.contents.idling import Idling, Leaving
from dovetail.engine.contents.instance_contents import Instances
from dovetail.engine.contents.items import CardItems, items_of
from dovetail.engine.contents.multipliers import PRICED, descend, with_whole
from dovetail.engine.contents.patterns import Keys, Pattern, pattern_of
from dovetail.engine.contents.width import WIDE, Width
from dovetail.model.state import NO_GPU, Fill, Slot
from dovetail.placement.instances import share_memory
from dovetail.problem import Problem
from dovetail.proof.kinds import Kind, capacities, room_for
from dovetail.proof.sides import Side
from dovetail.rules.quota import requested_of
from dovetail.spec.workload import MILLI

Priced = list[tuple[float, Pattern]]  # what patterns earn at some prices, best first

_RETURNED = 8
_TURNS = 3  # times as many replicas of each size as a node has room for take part


class Knapsack:
    """One empty node of a kind, priced for changing prices of shapes.

    Parameters
    ----------
    side : what may be on it.
    keys : what of a shape is priced by itself.
    units : by key, as how many replicas one counts, where that is more than one.
    """

    def __init__(
        self,
        problem: Problem,
        kind: Kind,
        side: Side,
        keys: Keys = MappingProxyType({}),
        units: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        items = list(items_of(side, keys))
        shapes, modes = [s for s, _ in items], [own for _, own in items]
        self.gpus = len(kind.node.healthy_gpus())
        forms = [problem.shapes[s] for s in shapes]
        self.shapes = np.array(shapes, dtype=np.int64)
        self.keys = [keys.get((s, own[0]), s) if own else s for s, own in items]
        self.units = np.array([units.get(key, 1) for key in self.keys], dtype=np.int64)
        self.apart = frozenset(shape for shape, _ in keys)
        self.millis = {s: form.request.gpu_milli for s, form in zip(shapes, forms, strict=True)}
        names = list(capacities(kind))
        self.room = np.array(list(capacities(kind).values()), dtype=np.int64)
        amounts = [[requested_of(form.request, name) for name in names] for form in forms]
        self.host = np.array(amounts, dtype=np.int64).reshape(len(forms), len(names))
        self.cards = [CardItems(card, items) for card in side.cards]
        self.shared = np.array(["" in own for own in modes], dtype=bool)
        profiles = [tuple(mode for mode in own if mode) for own in modes]
        self.instances = Instances(kind.geometry, profiles)
        self.idling = Idling.of(problem, kind)
        self.whole = np.array([f.request.gpus for f in forms], dtype=np.int64)
        self.card = kind.card
        asked = [form.on(kind.node.accelerator) for form in forms]
        self.vram = np.array([share_memory(request, self.card) for request in asked], dtype=np.int64)
        self.limit = np.array([room_for(kind, form) for form in forms], dtype=np.int64)
        self._dominance = self._compared(profiles)
        # Contents are told apart by sums of these, which wrap around: equal sums of others are next to impossible.
        self.codes = np.random.default_rng(1).integers(-(2**62), 2**62, len(forms), dtype=np.int64)
        self.multipliers = np.zeros(PRICED)

    def _compared(self, profiles: Sequence[tuple[str, ...]]) -> Dominance:
        """Return how items compare: by what they take of the host and of GPUs, if they may be in the same places."""
        cards = [zip(card.loads > 0, card.there, strict=True) for card in self.cards]
        places = zip(self.whole > 0, profiles, *cards, strict=True)
        sizes = [self.whole, self.vram, *(card.loads for card in self.cards)]
        each = [1, MILLI * self.card, *(card.size for card in self.cards)]
        room = np.concatenate([self.room, self.gpus * np.array(each, dtype=np.int64)])
        return Dominance(places, np.concatenate([self.host, np.stack(sizes, axis=1)], axis=1), room)

    @property
    def work(self) -> float:
        """What one wide call of `price` costs, in units of work."""
        return 0.004 + 0.0003 * self.gpus

    def price(
        self,
        prices: Mapping[int, float],
        left: Mapping[int, int] | None = None,
        width: Width = WIDE,
        per_use: float = 0.0,
    ) -> list[tuple[float, Pattern]]:
        """Return contents that earn much at some prices, best first, each with what it earns.

        Parameters
        ----------
        left : the most replicas per shape that a node may hold, where less than all that are asked for.
        per_use : what each unit of use costs that is lost by what they leave idle (`Idling`).
        """
        worth = np.array([prices.get(key, 0.0) for key in self.keys])
        limit = self.limit
        if left is not None:
            limit = np.minimum(limit, [left.get(int(s), 0) for s in self.shapes] // self.units)
        rows = np.flatnonzero((worth > 1e-9) & (limit > 0))
        if not len(rows):
            return []
        rows = rows[self._dominance.undominated(rows, worth[rows], limit[rows])]
        leaving = None if self.idling is None or not per_use else Leaving(self.idling, per_use)
        search = _Search(self, rows, worth[rows], limit[rows], width, left, leaving)
        self.multipliers = search.multipliers
        return search.run()


class _Search:
    """One call of pricing: the items that pay, and what is known of GPUs so far."""

    def __init__(
        self,
        node: Knapsack,
        rows: Ints,
        worth: Floats,
        limit: Ints,
        width: Width,
        left: Mapping[int, int] | None,
        leaving: Leaving | None,
    ) -> None:
        self.leaving = leaving
        self.node, self.rows, self.worth, self.limit, self.width = node, rows, worth, limit, width
        self.host, self.shared, self.whole = node.host[rows], node.shared[rows], node.whole[rows]
        self.milli = np.array([node.millis[s] for s in node.shapes[rows].tolist()], dtype=np.int64)
        self.sizes = sorted({int(k) for k in self.whole if k})
        self.cut = node.instances.at(rows)
        self.alone = np.flatnonzero(~self.shared & (self.whole == 0) & ~self.cut.any())
        self.shares = self._shares(limit)
        self.codes = node.codes[rows]
        self.together = list(self._together(left)) if left is not None and node.apart else []
        self._told: dict[int, Sequence[tuple[tuple[int, str], int]]] = {-1: ()}
        self.multipliers = self._descend()
        self.reduced = worth - earnings(self.host[:, :PRICED], self.multipliers)

    def _together(self, left: Mapping[int, int]) -> Iterator[tuple[Ints, Ints, int]]:
        """Yield the items of each shape that has several, their units, and how many of these there may be."""
        shapes = self.node.shapes[self.rows]
        for shape in sorted(self.node.apart.intersection(shapes.tolist())):
            items = np.flatnonzero(shapes == shape)
            if len(items) > 1:
                yield items, self.node.units[self.rows[items]], left.get(shape, 0)

    def _shares(self, left: Ints) -> list[Shares]:
        """Return the shares that may meet on a GPU, of so many of each item, for each way that it may be shared."""
        found = []
        for card in self.node.cards if self.node.gpus else ():
            loads = card.loads[self.rows]
            items = np.flatnonzero((left > 0) & (loads > 0))
            items = items[np.argsort(-loads[items], kind="stable")]
            if len(items):
                found.append(Shares(items, loads[items], left[items], card.size))
        return found

    def run(self) -> Priced:
        """Return the best contents of the node."""
        beam = Beam(list(self._starts()), self.node.room, self.node.gpus, self.width.beam)
        each = 0.0 if self.leaving is None else self.leaving.each
        for item, most in self._turns():
            gpus = int(self.whole[item])
            beam.add(item, gpus, most, float(self.reduced[item]) - each * gpus, self.host[item])
        return self._finish(beam.contents(4 * self.width.beam, self.host))

    def _starts(self) -> Iterator[Contents]:
        """Yield what GPUs that are shared or cut may hold, by their number, each of them something; first of none.

        One GPU is joined after the other: of items that are there once, contents that are best by themselves have
        the same few.
        """
        nothing = np.zeros((1, len(self.rows)), dtype=np.int64)
        found = self._contents(nothing, np.zeros((1, 0), dtype=np.int64))
        yield found
        one = self._pool() if self.node.gpus else found.take(np.arange(0))
        for _ in range(self.node.gpus if len(one.value) else 0):
            pairs = found.joined(one, self.node.room, self.limit, self.together, self.width.joined)
            _, first = np.unique(pairs.counts @ self.codes, return_index=True)
            if not len(first):
                break
            load = self._load(pairs.host[first])
            found = pairs.take(first[spread(pairs.value[first], load, self.width.joined)])
            yield found

    def _turns(self) -> list[tuple[int, int]]:
        """Return the items of whole GPUs that pay most, with how many there may be, in the order of their turns."""
        turns = []
        for size in self.sizes:
            items = np.flatnonzero(self.whole == size)
            most, room = 0, _TURNS * (self.node.gpus // size + 1)
            for item in items[np.argsort(-self.reduced[items], kind="stable")].tolist():
                if most < room:
                    turns.append((item, int(self.limit[item])))
                    most += min(turns[-1][1], self.node.gpus // size)
        return sorted(turns, key=lambda turn: (-self.reduced[turn[0]] / self.whole[turn[0]], turn[0]))

    def _contents(self, counts: Ints, gpus: Ints) -> Contents:
        return Contents(self._value(counts), counts @ self.host, counts, gpus)

    def _value(self, counts: Ints) -> Floats:
        """Return what contents of one GPU, or of several as a whole, earn, less what use they leave."""
        value = earnings(counts, self.reduced)
        return value if self.leaving is None else value - self.leaving.lost(counts @ self.milli)

    def _bound(self, multipliers: Floats) -> Floats:
        """Return the Lagrangian bound of the node, for rows of multipliers."""
        reduced = np.repeat(self.worth[None, :], len(multipliers), axis=0)
        total = np.zeros(len(multipliers))
        for axis in range(PRICED):
            reduced -= multipliers[:, axis, None] * self.host[:, axis]
            total += multipliers[:, axis] * self.node.room[axis]
        if len(self.alone):
            total += (np.maximum(reduced[:, self.alone], 0.0) * self.limit[self.alone]).sum(axis=1)
        return np.asarray(total + self._most(reduced))

    def _most(self, reduced: Floats) -> Floats:
        """Return the most that the node's GPUs earn, ignoring limits of what is on GPUs in part."""
        each, gpus = self.leaving.each if self.leaving else 0.0, self.node.gpus
        tables = [shares.table(reduced)[-1] - each for shares in self.shares]
        best = np.maximum.reduce([np.zeros(len(reduced)), self.cut.most(reduced), *tables])
        found = best[:, None] * np.arange(gpus + 1)
        gain = reduced - each * self.whole
        return np.asarray(with_whole(found, gain, self.sizes, self.whole, self.limit)[:, -1])

    def _descend(self) -> Floats:
        """Return multipliers of CPU and memory near the least bound, from where the last call ended."""
        node = self.node
        before = node.multipliers if node.multipliers.any() else None
        return descend(self._bound, self.worth, node.gpus, node.room, before)[0]

    # Contents of GPUs.

    def _pool(self) -> Contents:
        """Return what one GPU may hold if it is shared or cut.

        What is best is followed by what is best of the items that are left once as many GPUs as can hold that, and so
        on, until all GPUs hold something.
        """
        limit = {1: self.width.pool, 2: 2 * self.width.joined}.get(self.node.gpus, self.width.joined)
        found = [np.zeros((1, len(self.rows)), dtype=np.int64)]
        left, gpus = self.limit.copy(), self.node.gpus
        while gpus > 0 and len(best := self._best(left, limit if len(found) == 1 else 1)):
            found.append(best)
            top = best[0]
            times = min(gpus, int((left[top > 0] // top[top > 0]).min()))
            left, gpus = left - times * top, gpus - times
        merged = np.concatenate(found)
        _, first = np.unique(merged @ self.codes, return_index=True)
        self.pool = merged[np.sort(first)]  # the first one is empty
        return self._contents(self.pool[1:], np.arange(1, len(self.pool))[:, None])

    def _best(self, left: Ints, limit: int) -> Ints:
        """Return the best contents of a GPU, of so many of each item, that fit the host: none that earns nothing.

        Among several may be what earns less than it pays for CPU and memory: what fills a node to the last core is
        best there, whatever the multipliers say.
        """
        layers = [layer for each in self._shares(left) for layer in self._shared(each, left, limit)]
        for card in self.node.cards if self.node.gpus else ():
            layers.append(self.cut.contents(self.reduced, left, card.there[self.rows] & (left > 0)))
        counts = np.concatenate([np.zeros((0, len(self.rows)), dtype=np.int64), *layers])
        host = counts @ self.host
        fits = (host <= self.node.room).all(axis=1) & counts.any(axis=1)
        for items, units, most in self.together:
            fits &= counts[:, items] @ units <= most
        counts, host = counts[fits], host[fits]
        return counts[spread(self._value(counts), self._load(host), limit)]

    def _shared(self, shares: Shares, left: Ints, limit: int) -> Iterator[Ints]:
        """Yield contents of a shared GPU that earn almost the most, in layers, or the best if one is asked for."""
        items = shares.items
        rest = None if self.leaving is None else self.leaving.rest(shares.size)
        vram, room = self.node.vram[self.rows][items], MILLI * self.node.card
        if limit > 1:
            layers = shares.layers(self.reduced, left, (vram, room), self.width.pool, rest)
        else:
            best = shares.best(self.reduced, rest)
            layers = iter([best[None]] if best @ vram <= room else [])
        for good in layers:
            layer = np.zeros((len(good), len(self.rows)), dtype=np.int64)
            layer[:, items] = good
            yield layer

    def _load(self, host: Ints) -> Floats:
        """Return for rows of amounts how much of the host they take, by what is short the most."""
        return np.asarray((host / np.maximum(1, self.node.room)).max(axis=1))

    # Whole nodes.

    def _finish(self, found: Contents) -> Priced:
        """Add what needs no GPU, and return the best contents of the node."""
        spare = self.node.room - found.host
        earned = found.value + earnings(found.host[:, :PRICED], self.multipliers)
        if self.leaving is not None:
            earned = earned - self.leaving.uneven[(found.gpus == 0).sum(axis=1)]
        if len(self.alone):  # CPU that is left over earns about its price where work without GPU can take it
            all_alone = float(earnings(self.limit[self.alone], self.worth[self.alone]))
            earned = earned + np.minimum(spare[:, 0] * self.multipliers[0], all_alone)
        order = sorted(self.alone.tolist(), key=lambda i: -self.worth[i] / max(1e-9, self._size(i)))
        best: dict[Pattern, float] = {}
        for row in np.argsort(-earned, kind="stable")[: 3 * _RETURNED].tolist():
            if len(best) == _RETURNED:
                break
            counts, room = found.counts[row].copy(), spare[row].copy()
            for item in order:
                taken = self.host[item] > 0
                most = int(min(self.limit[item], *(room[taken] // self.host[item][taken]).tolist(), 10**9))
                counts[item] = most
                room -= most * self.host[item]
            for own in (counts,) if self.leaving is None else (counts, found.counts[row]):
                best.setdefault(pattern := self._pattern(own, found.gpus[row]), self._earned(own, pattern))
        ranked = sorted(best.items(), key=lambda each: (-each[1], each[0]))
        return [(value, pattern) for pattern, value in ranked]

    def _earned(self, counts: Ints, pattern: Pattern) -> float:
        earned = float(earnings(counts, self.worth))
        return earned if self.leaving is None else earned - self.leaving.of(pattern)

    def _size(self, item: int) -> float:
        return float((self.host[item, :PRICED] / np.maximum(1, self.node.room[:PRICED])).max())

    def _pattern(self, counts: Ints, gpus: Ints) -> Pattern:
        """Return counts of a node as a pattern; shares go where the contents of single GPUs put them."""
        fill = Fill()
        shape = self.node.shapes[self.rows].tolist()
        for item in np.flatnonzero(~self.shared & ~self.cut.any() & (counts > 0)).tolist():
            fill.slots[Slot(shape[item], NO_GPU)] = int(counts[item])
        for gpu, content in enumerate(gpus.tolist()):
            for (item, profile), count in self._on_gpu(content):
                fill.slots[Slot(shape[item], gpu, profile)] = count
        return pattern_of(self.node.millis, fill)

    def _on_gpu(self, content: int) -> Sequence[tuple[tuple[int, str], int]]:
        """Return how many of which items a shared GPU of a content of the pool holds, and on which profile if cut."""
        if content not in self._told:
            counts = self.pool[content]
            shares = np.flatnonzero(counts * self.shared).tolist()
            cut = self.cut.told(counts)
            told = {(item, ""): int(counts[item]) for item in shares} if cut is None else cut
            self._told[content] = tuple(told.items())
        return self._told[content]
