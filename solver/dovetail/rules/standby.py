"""A running account of what stands by for failures, for constructions: GPUs only, by sizes of requests.

For each size k among the requests that have to survive, what is lost in units of k, of requests of k and more, needs
as many places of k idle GPUs on one node elsewhere. Where sizes divide each other that is all that whole GPUs ask;
otherwise, and for CPU, memory, shares and MIG instances, the account is too optimistic, and whoever measures the
result will see it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from dovetail.rules.chances import Chances
from dovetail.rules.guards import Plain
from dovetail.rules.recovery import Failure, Stakes
from dovetail.spec import Node, Role, Workload
from dovetail.spec.workload import MILLI


class StandbyGuard(Plain):
    """Blocks what would leave a failure with more to restart than there is room for.

    `_spare` tells per size how many places of that size stand by beyond those needed, in parts of one, whatever
    fails; `_more` by how many there are more in each failure. A replica changes the latter of its own failures alone.
    `_least` are heaps of these, with old ones among them.
    """

    def __init__(self, stakes: Stakes, failures: Sequence[Failure], nodes: Sequence[Node], chances: Chances) -> None:
        self._stakes, self._chances = stakes, chances
        self._cases: defaultdict[str, list[int]] = defaultdict(list)
        for position, failure in enumerate(failures):
            for name in failure.nodes:
                self._cases[name].append(position)
        requests = [role.request for w in stakes.matched for role in w.roles if not role.request.mig]
        sizes = {request.gpu_count for request in requests if request.gpu_count}
        self._sizes = sorted(sizes)
        self._free = {node.name: len(node.healthy_gpus()) for node in nodes}
        self._shared: Counter[tuple[str, int]] = Counter()
        self._spare = {k: MILLI * sum(free // k for free in self._free.values()) for k in self._sizes}
        self._more = {k: [0] * len(failures) for k in self._sizes}
        for name, free in self._free.items():
            for k in self._sizes:
                for position in self._cases[name]:
                    self._more[k][position] -= MILLI * (free // k)
        self._least = {k: [(more, position) for position, more in enumerate(self._more[k])] for k in self._sizes}
        for heap in self._least.values():
            heapify(heap)

    def bars(self, workload: Workload, role: Role) -> bool:
        """Keep out who has to survive and could restart nowhere."""
        return workload.id in self._stakes.ids and self._chances.none(workload, role)

    def opened(self, workload: Workload) -> int:
        """Return nothing that changes: what is counted out is asked about anew."""
        return 0

    def blocks(self, workload: Workload, role: Role, node: Node, gpu: int | None) -> bool:
        """Block where any failure would have too little standing by."""
        if workload.id in self._stakes.evictable:
            return False
        if self.bars(workload, role):
            return True
        taken, own = self._taken(role, node, gpu, 1), self._cases[node.name]
        for k in self._sizes:
            less, needed = self._less(node, taken, k), self._needed(workload, role, k)
            if (less or needed) and self._lacks(k, own, less, needed):
                return True
        return False

    def _lacks(self, size: int, own: Sequence[int], less: int, needed: int) -> bool:
        """Tell whether a failure would have too little: one of those of a replica, or any other."""
        spare, more, heap = self._spare[size], self._more[size], self._least[size]
        if any(spare + more[position] < needed for position in own):
            return True
        while heap and heap[0][0] != more[heap[0][1]]:  # it has changed since
            heappop(heap)
        if not heap or spare + heap[0][0] >= less:
            return False
        return any(spare + each < less for position, each in enumerate(more) if position not in own)

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas in."""
        if workload.id in self._stakes.evictable:
            return
        taken, own = self._taken(role, node, gpu, count), self._cases[node.name]
        for k in self._sizes:
            less, needed = self._less(node, taken, k), count * self._needed(workload, role, k)
            self._spare[k] -= less
            for position in own if less != needed else ():
                self._more[k][position] += less - needed
                heappush(self._least[k], (self._more[k][position], position))
        self._free[node.name] -= taken
        if gpu is not None:
            self._shared[node.name, gpu] += count

    def _taken(self, role: Role, node: Node, gpu: int | None, count: int) -> int:
        """Return how many GPUs become busy as a whole, negative where they become idle."""
        if gpu is None:
            return count * role.request.gpus
        before = self._shared[node.name, gpu]
        return (before + count > 0) - (before > 0)

    def _less(self, node: Node, taken: int, size: int) -> int:
        free = self._free[node.name]
        return MILLI * (free // size - (free - taken) // size)

    def _needed(self, workload: Workload, role: Role, size: int) -> int:
        """Return what one more replica in a domain needs elsewhere, in thousandths of places of a size."""
        request = role.request
        if workload.id not in self._stakes.ids or request.mig or request.gpu_count < size:
            return 0
        return request.gpu_milli // size
