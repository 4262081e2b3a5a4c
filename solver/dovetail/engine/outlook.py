"""Where a shape would spoil least, kept up to date as nodes fill up.

Scores are remembered per node; only the nodes that changed since a shape was last asked for are scored again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.engine.field import Field
from dovetail.engine.fragmentation import Bools, Floats, Gradient, Ints
from dovetail.problem import Shape
from dovetail.spec.workload import MILLI

BUCKET = 40.0  # milli-GPU; the gradient is compared in steps of this size, ties go to the first node


class Outlook:
    """The nodes that may host a shape, each with the score of its best place (lower is better).

    Ties go to the shared GPU with least left, then to the first node.
    """

    def __init__(self, field: Field, gradient: Gradient, shape: Shape) -> None:
        self._field = field
        self._gradient = gradient
        self._shape = shape
        self._nodes = np.flatnonzero(field.hosts[shape.index])
        self._local = np.full(len(field.problem.nodes), -1, dtype=np.int64)
        self._local[self._nodes] = np.arange(len(self._nodes))
        self._score = np.full(len(self._nodes), np.inf)
        self._left = np.zeros(len(self._nodes), dtype=np.int64)
        self._gpu = np.full(len(self._nodes), -1, dtype=np.int64)
        self._seen = len(field.touched)
        self._rescore(np.arange(len(self._nodes)))

    def places(self, accepted: Bools | None) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield node and GPUs for one replica, best first; `accepted` limits the nodes, by index."""
        self._refresh()
        score = self._score if accepted is None else np.where(accepted[self._nodes], self._score, np.inf)
        if not self._field.guards:
            found = self._first(score)
            if found is not None:
                yield found
            return
        for position in np.lexsort((self._left, score)):
            if np.isinf(score[position]):
                return
            yield from self._places_on(int(self._nodes[position]))

    def _first(self, score: Floats) -> tuple[int, tuple[int, ...]] | None:
        if not len(score) or np.isinf(least := score.min()):
            return None
        ties = np.flatnonzero(score == least)
        position = ties[np.argmin(self._left[ties])]
        node = int(self._nodes[position])
        return node, (int(self._gpu[position]),) if self._shape.request.share else self._whole(node)

    def _places_on(self, node: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield the places of one node, best first; rules may bar some of its GPUs."""
        if not self._shape.request.share:
            yield node, self._whole(node)
            return
        _, gpus, score, left = self._share_scores(np.array([node]))
        for position in np.lexsort((gpus, left, score)):
            yield node, (int(gpus[position]),)

    def _whole(self, node: int) -> tuple[int, ...]:
        free = np.flatnonzero(self._field.gpus[node] == MILLI)[: self._shape.request.gpus]
        return tuple(int(gpu) for gpu in free)

    def _refresh(self) -> None:
        changed = self._field.touched[self._seen :]
        self._seen = len(self._field.touched)
        if changed:
            rows = self._local[np.unique(np.array(changed, dtype=np.int64))]
            self._rescore(rows[rows >= 0])

    def _rescore(self, rows: Ints) -> None:
        nodes = self._nodes[rows]
        self._score[rows] = np.inf
        fits = self._field.fits_host(self._shape, nodes)
        rows, nodes = rows[fits], nodes[fits]
        if self._shape.request.share:
            self._rescore_share(rows, nodes)
        else:
            self._rescore_whole(rows, nodes)

    def _rescore_whole(self, rows: Ints, nodes: Ints) -> None:
        wanted = self._shape.request.gpus
        after = self._field.gpus[nodes].copy()
        if wanted:
            untouched = after == MILLI
            rank = np.cumsum(untouched, axis=1)
            enough = untouched.sum(axis=1) >= wanted  # there may be no GPU column at all
            after[untouched & (rank <= wanted)] = 0
            rows, nodes, after = rows[enough], nodes[enough], after[enough]
        self._score[rows] = self._increase(nodes, after)

    def _rescore_share(self, rows: Ints, nodes: Ints) -> None:
        which, gpus, score, left = self._share_scores(nodes)
        order = np.lexsort((gpus, left, score, which))
        _, first = np.unique(which[order], return_index=True)
        best = order[first]
        target = rows[which[best]]
        self._score[target], self._left[target], self._gpu[target] = score[best], left[best], gpus[best]

    def _share_scores(self, nodes: Ints) -> tuple[Ints, Ints, Floats, Ints]:
        """Return, for every GPU of some nodes that has room, its row, its index, its score and what would be left."""
        milli = self._shape.request.gpu_milli
        vram = self._field.share_memory(self._shape, nodes)
        rows, gpus = np.nonzero((self._field.gpus[nodes] >= milli) & (self._field.vram[nodes] >= vram[:, None]))
        after = self._field.gpus[nodes[rows]].copy()
        after[np.arange(len(rows)), gpus] -= milli
        return rows, gpus, self._increase(nodes[rows], after), after[np.arange(len(rows)), gpus]

    def _increase(self, nodes: Ints, after: Ints) -> Floats:
        """Return, in buckets, by how much placements raise the fragmentation of their nodes."""
        if not after.shape[1] or not len(nodes):
            return np.zeros(len(nodes))
        field, models = self._field, self._gradient.model_of[nodes]
        before = self._gradient.amount(models, field.cpu[nodes], field.gpus[nodes])
        then = self._gradient.amount(models, field.cpu[nodes] - self._shape.request.cpu, after)
        return np.asarray(np.floor((then - before) / BUCKET))
