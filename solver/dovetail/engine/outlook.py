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
        self._closed = np.zeros(len(self._nodes), dtype=bool)
        self._spent = False
        self._opened = field.opened(shape.index)
        self._seen = len(field.touched)
        self._rescore(np.arange(len(self._nodes)))

    def best(self, accepted: Bools | None) -> tuple[int, tuple[int, ...]] | None:
        """Return node and GPUs where a replica spoils least and no hard rule bars it, None if there are none.

        `accepted` limits the nodes, by index. Nodes that rules block are remembered, and so is that there was no
        place at all: capacity only shrinks, until something is undone or a rule opens places again.
        """
        index = self._shape.index
        if self._field.barred(index):
            return None
        if (opened := self._field.opened(index)) != self._opened:
            self._opened = opened
            self.reopen()
        if self._spent:
            return None
        self._refresh()
        score = np.where(self._closed, np.inf, self._score) if self._field.guards else self._score
        if accepted is not None:
            score = np.where(accepted[self._nodes], score, np.inf)
        for position in self._ranked(score):
            gpus = self._open_gpus(position)
            if gpus is not None:
                return int(self._nodes[position]), gpus
            self._closed[position] = True
        self._spent = accepted is None
        return None

    def reopen(self) -> None:
        """Forget which places were blocked: something was undone."""
        self._closed[:] = False
        self._spent = False

    def _ranked(self, score: Floats) -> Iterator[int]:
        """Yield positions by score; the whole order is worked out only where the first one will not do."""
        if not len(score) or np.isinf(least := score.min()):
            return
        ties = np.flatnonzero(score == least)
        yield int(ties[np.argmin(self._left[ties])])
        for position in np.lexsort((self._left, score))[1:]:
            if np.isinf(score[position]):
                return
            yield int(position)

    def _open_gpus(self, position: int) -> tuple[int, ...] | None:
        """Return the best GPUs of a node that no hard rule bars, None where it bars all."""
        node, index = int(self._nodes[position]), self._shape.index
        if not self._shape.request.share:
            return None if self._field.blocked(node, index, None) else self._whole(node)
        best = int(self._gpu[position])
        if not self._field.blocked(node, index, best):
            return (best,)
        if self._field.by_gpu:
            _, gpus, score, left = self._share_scores(np.array([node]))
            for other in gpus[np.lexsort((gpus, left, score))]:
                if not self._field.blocked(node, index, int(other)):
                    return (int(other),)
        return None

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
