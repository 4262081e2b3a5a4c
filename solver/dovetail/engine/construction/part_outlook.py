"""Where replicas that may be on MIG instances spoil least: on instances of today, then on GPUs that are cut already.

Of each the fullest come first: the rank of a GPU is the compute slices that are left on it. GPUs that would be cut
anew come after those that are not, GPUs that hold shares after those that are cut, and untouched ones last, on nodes
with few of them first, so that whole GPUs and whole nodes stay free and nothing is cut that nobody asked for (S5.4).
"""

from __future__ import annotations

import numpy as np

from dovetail.engine.construction.field import Field
from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.engine.construction.outlook import NOWHERE, Ranks
from dovetail.problem import Shape
from dovetail.spec.workload import MILLI

_CUT = 100
_CUT_ANEW = 200
_SHARED = 1_000
_UNTOUCHED = 10_000


class PartOutlook:
    """The rank of the best place for a form on every node, lower is better, `NOWHERE` where it does not fit."""

    def __init__(self, field: Field, shape: Shape) -> None:
        self._field = field
        self._shape = shape
        self._hosts = field.hosts(shape)
        self._keys = field.gates.keys(shape)
        self._seen = -1
        self._best = np.zeros(len(self._hosts), dtype=np.int16)
        self._makes = np.array(field.problem.makes.of, dtype=np.int64)
        self.ranks: Ranks = np.full(len(self._hosts), NOWHERE, dtype=np.int32)

    def refresh(self) -> None:
        """Rank the nodes again that changed since the last time."""
        rows = np.flatnonzero(self._hosts & (self._field.touched > self._seen))
        self._seen = self._field.turn
        uncut = self._uncut(rows)
        self._rank_uncut(rows[uncut])
        for node in rows[~uncut].tolist():
            self._again(node)

    def _uncut(self, nodes: Ints) -> Bools:
        """Tell for some nodes whether all that they offer a replica is a GPU that nothing is on."""
        field = self._field
        if self._shape.request.share is not None:  # who may share a GPU outside MIG has more to choose from
            return np.zeros(len(nodes), dtype=bool)
        return np.asarray(~(field.cuts.touched[nodes] | field.crowds.parted[nodes]))

    def _rank_uncut(self, nodes: Ints) -> None:
        """Rank nodes without cut GPUs, all at once: the first untouched GPU of each is as good as any."""
        self.ranks[nodes] = NOWHERE
        field = self._field
        nodes = nodes[field.fits_host(self._shape, nodes)]
        free = field.gpus[nodes] == MILLI
        allowed = field.gates.open_gpus(self._keys, nodes)
        free = free if allowed is None else free & allowed
        able = free.any(axis=1)
        for make in np.unique(self._makes[nodes]).tolist():  # nodes of one make are cut alike
            alike = self._makes[nodes] == make
            node = int(nodes[alike.argmax()])
            able &= ~alike | (field.cuts.profile(node, 0, self._shape, untouched=True) is not None)
        if able.any():
            nodes = nodes[able]
            self._best[nodes] = free[able].argmax(axis=1)
            self.ranks[nodes] = _UNTOUCHED + field.untouched[nodes]

    def _again(self, node: int) -> None:
        """Rank one node again."""
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
        if offer.today:
            return offer.free
        if offer.busy:
            return (_CUT if offer.anew else _CUT_ANEW) + offer.free
        if gpu in field.problem.layouts[node]:
            return _SHARED // 2
        return _UNTOUCHED + untouched
