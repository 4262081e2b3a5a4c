"""Clients of GPUs that are shared by equal parts, in a construction: who is where, and who else may come (S3.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from dovetail.engine.construction.fragmentation import Bools, Ints
from dovetail.model.state import Fill, State
from dovetail.placement.clients import NODE_POOL, Crowd, equal_parts, pool_of, pools
from dovetail.problem import Problem, Shape
from dovetail.spec.workload import MILLI

Shares = Iterable[tuple[int, int, int, int]]  # node, GPU, shape, count


class Crowds:
    """The clients on all nodes.

    Parameters
    ----------
    gpus : free milli-GPU per node and GPU, as the field has it.

    `parted` tells which nodes share GPUs by equal parts.
    """

    def __init__(self, problem: Problem, gpus: Ints) -> None:
        self._problem = problem
        self._gpus = gpus
        self.parted: Bools = np.array([bool(node.gpus) and equal_parts(node) for node in problem.nodes], dtype=bool)
        self._pooled: Bools = np.array([node.mechanism == "devicePlugin" for node in problem.nodes], dtype=bool)
        self._of: dict[int, Crowd] = {}
        self._staying: Counter[tuple[int, int]] = Counter()  # clients in place, by node and pool
        self._clients: Ints = np.zeros_like(gpus)  # of each GPU
        self._limits: dict[int, dict[int, list[int]]] = {}  # by node and shape, see `_most_with`; for a while

    def adopt(self, state: State, shares: Shares) -> None:
        """Enter all that a state holds; where anybody stays, GPUs are set as they are today."""
        for index, fill in state.fills.items():
            if self.parted[index] and fill.slots:
                self._of[index] = self._crowd(index, fill)
        for index, gpu, shape, count in shares:
            if index in self._of:
                self.enter(index, shape, (gpu,), count)

    def _crowd(self, index: int, fill: Fill) -> Crowd:
        """Return a node's crowd that knows who has GPUs as a whole, and what is not to be set anew."""
        node, shapes = self._problem.nodes[index], self._problem.shapes
        for place, count in fill.kept.items():
            if count and shapes[place.shape].request.share and not place.instance:
                self._staying[index, pool_of(node, place.gpus[0])] += count
        today = self._problem.settings[index]
        found = Crowd(node, {pool: s for pool, s in today.items() if self._staying[index, pool]})
        if pool_of(node, 0) == NODE_POOL:
            found.add_whole(0, sum(n * shapes[slot.shape].request.gpus for slot, n in fill.slots.items()))
        return found

    def nodes(self) -> list[int]:
        """Return the nodes on which anybody is or was."""
        return list(self._of)

    def enter(self, index: int, shape: int, gpus: tuple[int, ...], count: int) -> None:
        """Enter clients of a GPU, or who has GPUs as a whole, or take them off."""
        node = self._problem.nodes[index]
        crowd = self._of.setdefault(index, Crowd(node))
        self._limits.pop(index, None)
        terms = self._problem.terms(shape, node)
        if terms is not None:
            crowd.add(terms, gpus[0], count)
            self._clients[index, gpus[0]] += count
        for gpu in gpus if terms is None else ():
            crowd.add_whole(gpu, 1 if count > 0 else -1)

    def let_go(self, index: int, gpu: int) -> None:
        """Count on a client's staying on a GPU no more: without any, GPUs may be set anew."""
        pool = pool_of(self._problem.nodes[index], gpu)
        self._staying[index, pool] -= 1
        if not self._staying[index, pool]:
            self._of[index].tell(pool, None)
            self._limits.pop(index, None)

    def stay(self, index: int, gpu: int) -> None:
        """Count on a client's staying on a GPU that is set as today."""
        pool = pool_of(self._problem.nodes[index], gpu)
        if not self._staying[index, pool]:
            self._of[index].tell(pool, self._problem.settings[index].get(pool))
            self._limits.pop(index, None)
        self._staying[index, pool] += 1

    def lets_whole(self, index: int, gpu: int) -> bool:
        """Tell whether clients let a replica have a GPU, on which nobody is, as a whole."""
        crowd = self._of.get(index)
        return crowd is None or crowd.admits_whole(gpu)

    def untouched(self, index: int) -> int:
        """Return how many GPUs of a node replicas may have as a whole."""
        free = np.flatnonzero(self._gpus[index] == MILLI).tolist()
        return sum(self.lets_whole(index, gpu) for gpu in free)

    def clients(self, index: int, gpu: int) -> int:
        """Return how many clients a GPU has."""
        return int(self._clients[index, gpu])

    def clients_of(self, index: int, pool: int) -> int:
        """Return how many clients the GPUs of a pool have."""
        return int(self._clients[index, self._gpus_of(index, pool)].sum())

    def freed(self, index: int, pool: int) -> int:
        """Return how many GPUs more replicas could have as a whole without the clients of a pool."""
        own = self._gpus_of(index, pool)
        shared = sum(bool(self._clients[index, gpu]) for gpu in own)
        idle = (gpu for gpu in own if self._gpus[index, gpu] == MILLI)
        return shared + sum(not self.lets_whole(index, gpu) for gpu in idle)

    def again(self, shape: Shape, index: int, clients: Sequence[tuple[int, int]]) -> frozenset[int]:
        """Return which clients, by position, could be on their GPUs again beside one more, were these set anew.

        Parameters
        ----------
        clients : all those of a pool, each by its shape and GPU.
        """
        node, found = self._problem.nodes[index], set[int]()
        trial, terms = Crowd(node), self._problem.terms(shape.index, node)
        if terms is None:
            return frozenset()
        fewest = Counter(gpu for _, gpu in clients).most_common()[-1][0]
        trial.add(terms, fewest, 1)
        for position, (own, gpu) in enumerate(clients):
            asked = self._problem.terms(own, node)
            if asked is not None and trial.admits(asked, gpu):
                trial.add(asked, gpu, 1)
                found.add(position)
        return frozenset(found)

    def _gpus_of(self, index: int, pool: int) -> list[int]:
        node = self._problem.nodes[index]
        return [gpu for gpu in node.healthy_gpus() if pool_of(node, gpu) == pool]

    def most_with(self, shape: Shape, index: int, gpu: int) -> int:
        """Return the most clients that a GPU could have with one more, 0 where none may come."""
        return self._most_with(shape, index)[gpu]

    def fits(self, index: int, shape: Shape, gpu: int) -> bool:
        """Tell whether a GPU could have one more client."""
        return bool(self.fit(shape, np.array([index]))[0, gpu])

    def fit(self, shape: Shape, nodes: Ints) -> Bools:
        """Tell for some nodes that share by equal parts, GPU by GPU, whether there could be one more client."""
        clients = self._clients[nodes]
        fullest = np.where(self._pooled[nodes], clients.max(axis=1, initial=0), 0)
        most = np.array([self._most_with(shape, index) for index in nodes.tolist()], dtype=np.int64)
        open_to = (self._gpus[nodes] == MILLI) | (clients > 0)
        return np.asarray(open_to & (np.maximum(fullest[:, None], clients + 1) <= most.reshape(clients.shape[0], -1)))

    def _most_with(self, shape: Shape, index: int) -> list[int]:
        """Return the most clients that GPUs of a node could have with one more, 0 for none; GPU by GPU."""
        known = self._limits.setdefault(index, {})
        if shape.index not in known:
            node, width = self._problem.nodes[index], self._gpus.shape[1]
            terms = self._problem.terms(shape.index, node)
            crowd = self._of.get(index) or Crowd(node)
            limits = {} if terms is None else {pool: crowd.most_with(terms, pool) for pool in pools(node)}
            known[shape.index] = [limits.get(pool_of(node, gpu), 0) for gpu in range(width)]
        return known[shape.index]
