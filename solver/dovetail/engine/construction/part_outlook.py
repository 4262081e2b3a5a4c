"""Where replicas that may be on MIG instances spoil least: on instances of today, then on GPUs that are cut already.

Of each the fullest come first: the rank of a GPU is the compute slices that are left on it. GPUs that would be cut
anew come after those that are not, GPUs that hold shares after those that are cut, and untouched ones last, on nodes
with few of them first, so that whole GPUs and whole nodes stay free and nothing is cut that nobody asked for (S5.4).
"""

from __future__ import annotations

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Ints
from dovetail.engine.construction.instances import Offer
from dovetail.engine.construction.outlook import NOWHERE, Ranks
from dovetail.problem import Shape
from dovetail.spec.workload import MILLI

_CUT = 100
_CUT_ANEW = 200
_SHARED = 1_000
_UNTOUCHED = 10_000
_FRESH = -1


class PartOutlook:
    """The rank of the best place for a form on every node, lower is better, `NOWHERE` where it does not fit."""

    def __init__(self, field: Field, shape: Shape) -> None:
        self._field = field
        self._shape = shape
        self._hosts = field.hosts(shape)
        self._cut_alone = shape.request.share is None or not _outside(field, shape)
        self._keys = field.gates.keys(shape)
        self._seen = -1
        self._best = np.zeros(len(self._hosts), dtype=np.int16)
        self._values = np.zeros(0, dtype=np.int32)  # by how a GPU is cut: its rank, `_FRESH` where nothing is on it
        self.ranks: Ranks = np.full(len(self._hosts), NOWHERE, dtype=np.int32)

    def refresh(self) -> None:
        """Rank the nodes again that changed since the last time."""
        rows = np.flatnonzero(self._hosts & (self._field.touched > self._seen))
        self._seen = self._field.turn
        if self._cut_alone:
            self._rank_instances(rows)
        else:  # who may share a GPU outside MIG has more to choose from
            for node in rows.tolist():
                self._again(node)

    def _rank_instances(self, nodes: Ints) -> None:
        """Rank nodes for what may be on instances alone, all at once."""
        self.ranks[nodes] = NOWHERE
        field = self._field
        nodes = nodes[field.fits_host(self._shape, nodes)]
        numbers, idle = field.cuts.numbers(nodes), field.gpus[nodes] == MILLI
        if not numbers.size:
            return
        self._look_at(int(numbers.max()))
        ranks = np.append(self._values, np.int32(NOWHERE))[numbers]  # the last for what cannot be cut
        ranks = np.where(ranks == _FRESH, _UNTOUCHED + field.untouched[nodes][:, None], ranks)
        ranks[~(idle | field.cuts.open(nodes))] = NOWHERE
        allowed = field.gates.open_gpus(self._keys, nodes)
        if allowed is not None:
            ranks[~allowed] = NOWHERE
        best = ranks.argmin(axis=1)
        self._best[nodes], self.ranks[nodes] = best, ranks[np.arange(len(nodes)), best]

    def _look_at(self, most: int) -> None:
        """Learn the ranks of GPUs by how they are cut, up to a number that such have."""
        offers = (self._field.cuts.offer_of(number, self._shape) for number in range(len(self._values), most + 1))
        more = [NOWHERE if offer is None else _rank_of(offer) for offer in offers]
        self._values = np.concatenate([self._values, np.array(more, dtype=np.int32)])

    def _again(self, node: int) -> None:
        """Rank one node again."""
        if self._cut_alone:
            self._rank_instances(np.array([node]))
            return
        found = self.places(node) if self._field.host_fits(self._shape, node) else []
        rank, gpu = found[0] if found else (NOWHERE, 0)
        self.ranks[node], self._best[node] = rank, gpu

    def gpu(self, node: int) -> int | None:
        """Return the best GPU of a node."""
        return int(self._best[node])

    def put(self, shape: int, node: int, most: int) -> list[tuple[int, ...]]:
        """Add a replica to the best GPU of a node, and more as long as none makes it worse there; return GPUs.

        There are at most `most` of them.
        """
        field, gpu, rank = self._field, int(self._best[node]), int(self.ranks[node])
        found: list[tuple[int, ...]] = []
        while len(found) < most:
            field.put(node, shape, (gpu,))
            found.append((gpu,))
            after = self._rank(node, gpu, int(field.gpus[node, gpu]), int(field.untouched[node]))
            if after is None or after > rank or not field.host_fits(self._shape, node):
                break
            rank = after
        self._again(node)
        return found

    def put_on(self, shape: int, node: int, gpu: int) -> list[tuple[int, ...]]:
        """Add a replica on a GPU, whether or not it is the best; return it."""
        self._field.put(node, shape, (gpu,))
        self._again(node)
        return [(gpu,)]

    def places(self, node: int) -> list[tuple[int, int]]:
        """Return the GPUs of a node that take a replica, best first, each after its rank."""
        field = self._field
        untouched = int(field.untouched[node])
        allowed = field.gates.open_gpus(self._keys, node)
        fresh: tuple[int, int] | None = None
        found = []
        for gpu, left in enumerate(field.gpus[node].tolist()):
            if left < 0 or (allowed is not None and not allowed[gpu]):
                continue
            plain = left == MILLI and gpu not in field.problem.layouts[node]
            if plain and fresh is not None:  # as good as the first untouched one
                if fresh[1]:
                    found.append((fresh[1], gpu))
                continue
            rank = self._rank(node, gpu, left, untouched)
            if plain:
                fresh = gpu, rank or 0
            if rank is not None:
                found.append((rank, gpu))
        return sorted(found)

    def _rank(self, node: int, gpu: int, left: int, untouched: int) -> int | None:
        field = self._field
        if field.share_fits(node, self._shape, gpu):
            return _UNTOUCHED + untouched if left == MILLI else _SHARED + left // 10
        offer = field.cuts.offer(node, gpu, self._shape, untouched=left == MILLI)
        if offer is None:
            return None
        rank = _rank_of(offer)
        return _UNTOUCHED + untouched if rank == _FRESH else rank


def _outside(field: Field, shape: Shape) -> bool:
    """Tell whether a share may be outside MIG on any node."""
    problem = field.problem
    hosts = (problem.makes.members[make][0] for make in problem.makes_for(shape))
    return any("" in problem.modes(shape.index, node) for node in hosts)


def _rank_of(offer: Offer) -> int:
    """Return the rank of a GPU that has an instance, `_FRESH` for one on which nothing is, or was."""
    if offer.today:
        return offer.free
    if offer.busy:
        return (_CUT if offer.anew else _CUT_ANEW) + offer.free
    return _SHARED // 2 if offer.was_cut else _FRESH
