"""A running account of what stands by for failures, for constructions: GPUs only, by sizes of requests.

For each size k among the requests that have to survive, what is lost in units of k, of requests of k and more, needs
as many places of k idle GPUs on one node elsewhere. Where sizes divide each other that is all that whole GPUs ask;
otherwise, and for CPU, memory, shares and MIG instances, the account is too optimistic, and whoever measures the
result will see it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from dovetail.rules.chances import Chances
from dovetail.rules.guards import Plain
from dovetail.rules.recovery import Failure, Stakes
from dovetail.spec import Node, Role, Workload
from dovetail.spec.workload import MILLI


class StandbyGuard(Plain):
    """Blocks what would leave a failure with more to restart than there is room for.

    `spare` tells per size and failure how many places of that size stand by beyond those needed, in parts of one.
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
        total = {k: sum(free // k for free in self._free.values()) for k in self._sizes}
        self.spare = {k: [MILLI * total[k]] * len(failures) for k in self._sizes}
        for name, free in self._free.items():
            for k in self._sizes:
                for position in self._cases[name]:
                    self.spare[k][position] -= MILLI * (free // k)

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
        taken = self._taken(role, node, gpu, 1)
        own = set(self._cases[node.name])
        for k in self._sizes:
            less, more = self._less(node, taken, k), self._more(workload, role, k)
            if not less and not more:
                continue
            for position, spare in enumerate(self.spare[k]):
                if spare < (more if position in own else less):
                    return True
        return False

    def add(self, workload: Workload, role: Role, node: Node, gpu: int | None, count: int) -> None:
        """Count replicas in."""
        if workload.id in self._stakes.evictable:
            return
        taken = self._taken(role, node, gpu, count)
        own = set(self._cases[node.name])
        for k in self._sizes:
            less, more = self._less(node, taken, k), count * self._more(workload, role, k)
            if less or more:
                self.spare[k] = [s - (more if p in own else less) for p, s in enumerate(self.spare[k])]
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

    def _more(self, workload: Workload, role: Role, size: int) -> int:
        """Return what one more replica in a domain needs elsewhere, in thousandths of places of a size."""
        request = role.request
        if workload.id not in self._stakes.ids or request.mig or request.gpu_count < size:
            return 0
        return request.gpu_milli // size
