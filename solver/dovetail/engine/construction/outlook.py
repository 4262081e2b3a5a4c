"""Where replicas of one form spoil least, kept up to date as nodes fill up.

Ranks are remembered per node; only nodes that changed since a form was last asked for are ranked again, all at once
where many changed, in plain arithmetic where one did.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Gradient, Ints
from dovetail.placement import amounts_of
from dovetail.placement.instances import share_memory
from dovetail.problem import Shape
from dovetail.spec import Request
from dovetail.spec.workload import MILLI

BUCKET = 40  # milli-GPU; the gradient is compared in steps of this size
FINE = 1  # the same where a tier asks for what idle GPU is good for
NOWHERE = 2**31 - 1
_STEP = 1024  # ranks of one step of the gradient: what would be left of a shared GPU, at most 999

Ranks = NDArray[np.int32]
Tables = tuple[list[int], list[int]]


class Spoilage:
    """The fragmentation of every node as it is, and of single nodes as they might be."""

    def __init__(self, field: Field, gradient: Gradient) -> None:
        self._field = field
        self.gradient = gradient
        asked = any(tier.asks_idle for tier in field.problem.tiers)
        self.unit = (FINE if asked else BUCKET) * gradient.total
        self._steps = gradient.lowest()
        self._models = gradient.model_of.tolist()
        self._tables: dict[tuple[int, int], Tables] = {}
        self._amount = gradient.amounts(gradient.model_of, field.cpu, field.gpus)
        field.stale.clear()

    def now(self, nodes: Ints) -> Ints:
        """Return the amounts of some nodes."""
        if self._field.stale:
            stale = np.array(sorted(self._field.stale), dtype=np.int64)
            models = self.gradient.model_of[stale]
            self._amount[stale] = self.gradient.amounts(models, self._field.cpu[stale], self._field.gpus[stale])
            self._field.stale.clear()
        return np.asarray(self._amount[nodes])

    def is_now(self, node: int, amount: int) -> None:
        """Note the amount of a node that somebody has just worked out."""
        self._amount[node] = amount
        self._field.stale.discard(node)

    def tables(self, node: int, cpu: int) -> Tables:
        """Return what idle GPUs of a node cost, and what untouched ones save, with some CPU free."""
        key = self._models[node], bisect_right(self._steps, cpu) - 1
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = self.gradient.wasted[key].tolist(), self.gradient.useful[key].tolist()
        return found

    @staticmethod
    def amount(tables: Tables, partial: list[int], untouched: int) -> int:
        """Return the amount of a node with some GPUs `partial` and others `untouched`."""
        wasted, useful = tables
        return untouched * wasted[MILLI] + sum([wasted[left] for left in partial]) - useful[untouched]


def form_of(field: Field, shape: Shape) -> Hashable:
    """Return what decides a shape's ranks; shapes with equal forms share an outlook."""
    return amounts_of(shape.request), field.hosts_key(shape), field.gates.keys(shape)


class Outlook:
    """The rank of the best place for a form on every node, lower is better, `NOWHERE` where it does not fit.

    Ranks compare first the step of the gradient, then what would be left of a shared GPU; ties go to the first node.
    """

    def __init__(self, field: Field, spoilage: Spoilage, shape: Shape) -> None:
        self._field = field
        self._spoilage = spoilage
        self._shape = shape
        self._hosts = field.hosts(shape)
        self._keys = field.gates.keys(shape)
        self._gpu = np.zeros(len(self._hosts) if shape.request.share else 0, dtype=np.int16)
        self._seen = -1
        self.ranks: Ranks = np.full(len(self._hosts), NOWHERE, dtype=np.int32)

    def refresh(self) -> None:
        """Rank the nodes again that changed since the last time."""
        rows = np.flatnonzero(self._hosts & (self._field.touched > self._seen))
        self._seen = self._field.turn
        if len(rows):
            self.ranks[rows] = NOWHERE
            rows = rows[self._field.fits_host(self._shape, rows)]
            (self._rank_share if self._shape.request.share else self._rank_whole)(rows)

    def _rank_whole(self, nodes: Ints) -> None:
        field, gradient = self._field, self._spoilage.gradient
        wanted = self._shape.request.gpus
        nodes = nodes[field.untouched[nodes] >= wanted]
        if field.blocks.any(self._shape.request.inside):
            nodes = nodes[field.whole_room(self._shape, nodes) > 0]
        models, step = gradient.model_of[nodes], gradient.steps_of(field.cpu[nodes] - self._shape.request.cpu)
        left = field.untouched[nodes] - wanted
        after = left * gradient.wasted[models, step, MILLI] - gradient.useful[models, step, left]
        partly = np.flatnonzero(field.partly[nodes])
        if len(partly):
            shared = field.gpus[nodes[partly]]
            shared = np.where(shared == MILLI, 0, np.maximum(shared, 0))
            after[partly] += gradient.wasted[models[partly, None], step[partly, None], shared].sum(axis=1)
        self.ranks[nodes] = (after - self._spoilage.now(nodes)) // self._spoilage.unit * _STEP

    def _rank_share(self, nodes: Ints) -> None:
        field, gradient = self._field, self._spoilage.gradient
        free, milli = field.gpus[nodes], field.share_milli(self._shape, nodes)
        fits = (free >= milli[:, None]) & (field.vram[nodes] >= field.share_memory(self._shape, nodes)[:, None])
        parted = np.flatnonzero(field.crowds.parted[nodes])
        if len(parted):
            fits[parted] = field.crowds.fit(self._shape, nodes[parted])
        allowed = field.gates.open_gpus(self._keys, nodes)
        fits = fits if allowed is None else fits & allowed
        some = fits.any(axis=1)
        nodes, free, fits = nodes[some], np.maximum(free[some], 0), fits[some]
        models, step = gradient.model_of[nodes], gradient.steps_of(field.cpu[nodes] - self._shape.request.cpu)
        milli = field.share_milli(self._shape, nodes)
        left = np.where(fits, np.maximum(free - milli[:, None], 0), 0)
        wasted = gradient.wasted[models[:, None], step[:, None], free]
        changed = gradient.wasted[models[:, None], step[:, None], left] - wasted
        untouched = field.untouched[nodes]
        useful = gradient.useful[models, step, untouched]
        broken = useful - gradient.useful[models, step, np.maximum(untouched - 1, 0)]
        changed += np.where(free == MILLI, broken[:, None], 0)
        base = wasted.sum(axis=1) - useful - self._spoilage.now(nodes)
        ranks = (base[:, None] + changed) // self._spoilage.unit * _STEP + left
        ranks = np.where(fits, ranks, NOWHERE)
        best = ranks.argmin(axis=1) if len(nodes) else np.zeros(0, dtype=np.int64)
        self._gpu[nodes], self.ranks[nodes] = best, ranks[np.arange(len(nodes)), best]

    def gpu(self, node: int) -> int | None:
        """Return the GPU of a node that a share would take, None for what takes no share."""
        return int(self._gpu[node]) if self._shape.request.share else None

    def put(self, shape: int, node: int, most: int) -> list[tuple[int, ...]]:
        """Add a replica of a shape of this form to a node, and more as long as none makes it worse; return GPUs.

        There are at most `most` of them.
        """
        field, wanted = self._field, self._shape.request.gpus
        if self._shape.request.share:
            if field.crowds.parted[node]:
                return self.put_on(shape, node, int(self._gpu[node]))
            gpus, rank, amount, self._gpu[node] = self._shares(node, most)
            for gpu, count in Counter(gpus).items():
                field.put(node, shape, (gpu,), count)
            found: list[tuple[int, ...]] = [(gpu,) for gpu in gpus]
        else:
            count, rank, amount = self._row(node, most)
            taken = field.whole_gpus(node, self._shape, count) if wanted else ()
            field.put(node, shape, taken, count)
            found = [taken[i * wanted : (i + 1) * wanted] for i in range(count)]
        self.ranks[node] = rank
        self._spoilage.is_now(node, amount)
        return found

    def put_on(self, shape: int, node: int, gpu: int) -> list[tuple[int, ...]]:
        """Add a share of a shape of this form on a GPU, whether or not it is the best; return it."""
        self._field.put(node, shape, (gpu,))
        self.again(node)
        return [(gpu,)]

    def again(self, node: int) -> int:
        """Rank one node again that changed, and return its rank."""
        if not self._shape.request.share:
            _, rank, amount = self._row(node, 0)
        elif self._field.crowds.parted[node]:
            found = self.places(node) if self._field.host_fits(self._shape, node) else []
            rank, self._gpu[node] = found[0] if found else (NOWHERE, 0)
            amount = None  # `places` has noted it
        else:
            _, rank, amount, self._gpu[node] = self._shares(node, 0)
        self.ranks[node] = rank
        if amount is not None:
            self._spoilage.is_now(node, amount)
        return rank

    def _row(self, node: int, most: int) -> tuple[int, int, int]:
        """Return how many replicas without shares, one after the other, do not make a node worse.

        There are at most `most` of them. The node's rank then, and its amount, come with it.
        """
        request, spoilage = self._shape.request, self._spoilage
        cpu, partial, untouched = self._state_of(node)
        fit = self._copies(node, cpu, untouched)
        amount = spoilage.amount(spoilage.tables(node, cpu), partial, untouched)
        count, last = 0, NOWHERE
        while count < fit:
            cpu, untouched = cpu - request.cpu, untouched - request.gpus
            after = spoilage.amount(spoilage.tables(node, cpu), partial, untouched)
            rank = (after - amount) // spoilage.unit * _STEP
            if count >= most or (count and rank > last):
                return count, rank, amount
            count, last, amount = count + 1, rank, after
        return count, NOWHERE, amount

    def _shares(self, node: int, most: int) -> tuple[list[int], int, int, int]:
        """Return the GPUs of shares, one after the other, as long as none makes a node worse, at most so many.

        The node's rank then, its amount, and the GPU that the next one would take come with it.
        """
        field, request, spoilage = self._field, self._on(node), self._spoilage
        cpu, partial, untouched = self._state_of(node)
        amount = spoilage.amount(spoilage.tables(node, cpu), partial, untouched)
        allowed = field.gates.open_gpus(self._keys, node)
        memory = share_memory(request, int(field.card[node]))
        free = [max(0, left) for left in field.gpus[node].tolist()]
        vram = field.vram[node].tolist()
        may = [gpu for gpu in range(len(free)) if allowed is None or allowed[gpu]]
        gpus: list[int] = []
        last = NOWHERE
        for _ in range(self._copies(node, cpu, untouched)):
            cpu -= request.cpu
            tables = spoilage.tables(node, cpu)
            able = [gpu for gpu in may if free[gpu] >= request.gpu_milli and vram[gpu] >= memory]
            rank, gpu, after = self._best(tables, free, able, untouched, amount, request.gpu_milli)
            if not able or len(gpus) >= most or (gpus and rank > last):
                return gpus, rank, amount, gpu
            gpus.append(gpu)
            untouched -= free[gpu] == MILLI
            free[gpu] -= request.gpu_milli
            vram[gpu] -= memory
            last, amount = rank, after
        return gpus, NOWHERE, amount, 0

    def _best(
        self, tables: Tables, free: list[int], able: list[int], untouched: int, amount: int, milli: int
    ) -> tuple[int, int, int]:
        """Return the rank of the best of some GPUs of a node for a share, that GPU, and the node's amount then.

        Parameters
        ----------
        tables, amount : those of the node with the share's CPU taken, and what it is before.
        milli : what the share takes.
        """
        wasted, useful = tables
        unit = self._spoilage.unit
        base = sum([wasted[left] for left in free]) - useful[untouched]
        broken = useful[untouched] - useful[untouched - 1] if untouched else 0
        best, seen = (NOWHERE, 0, amount), set[int]()
        for gpu in able:
            now = free[gpu]
            if now not in seen:
                seen.add(now)
                after = base + wasted[now - milli] - wasted[now] + (broken if now == MILLI and untouched else 0)
                rank = (after - amount) // unit * _STEP + now - milli
                best = min(best, (rank, gpu, after))
        return best

    def _copies(self, node: int, cpu: int, untouched: int) -> int:
        """Return how many replicas without shares fit on a node."""
        request, field = self._shape.request, self._field
        most = untouched // request.gpus if request.gpus else NOWHERE
        if request.cpu:
            most = min(most, cpu // request.cpu)
        if request.memory:
            most = min(most, int(field.memory[node]) // request.memory)
        for name, amount in request.resources.items():
            if amount:
                most = min(most, int(field.resources[name][node]) // amount)
        if request.gpus and field.blocks.any(request.inside):
            most = min(most, int(field.whole_room(self._shape, np.array([node]))[0]))
        return most

    def _on(self, node: int) -> Request:
        """Return what a replica asks of a node."""
        return self._shape.on(self._field.problem.nodes[node].accelerator)

    def _state_of(self, node: int) -> tuple[int, list[int], int]:
        """Return the free CPU of a node, what is left of its shared GPUs, and its untouched GPUs."""
        field = self._field
        row = [left for left in field.gpus[node].tolist() if 0 < left < MILLI] if field.partly[node] else []
        return int(field.cpu[node]), row, int(field.untouched[node])

    def places(self, node: int) -> list[tuple[int, int]]:
        """Return the GPUs of a node that take a share, best first, each after its rank."""
        field, request = self._field, self._on(node)
        milli = request.gpu_milli
        cpu, partial, untouched = self._state_of(node)
        before = self._spoilage.amount(self._spoilage.tables(node, cpu), partial, untouched)
        self._spoilage.is_now(node, before)
        tables = wasted, useful = self._spoilage.tables(node, cpu - request.cpu)
        base = self._spoilage.amount(tables, partial, untouched) - before
        broken = useful[untouched] - useful[untouched - 1] if untouched else 0
        memory = share_memory(request, int(field.card[node]))
        allowed = field.gates.open_gpus(self._keys, node)
        found = []
        for gpu, (free, vram) in enumerate(zip(field.gpus[node].tolist(), field.vram[node].tolist(), strict=True)):
            fits = free >= milli and vram >= memory
            if field.crowds.parted[node]:
                fits = free >= 0 and field.crowds.fits(node, self._shape, gpu)
            if fits and (allowed is None or allowed[gpu]):
                now, left = max(free, 0), max(free - milli, 0)
                change = wasted[left] - wasted[now] + (broken if free == MILLI and untouched else 0)
                found.append(((base + change) // self._spoilage.unit * _STEP + left, gpu))
        return sorted(found)
