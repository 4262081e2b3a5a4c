"""Who runs today of services that ask for a rate alone, and is not needed for it any more (S5.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from dovetail.placement.hosts import host_at, slices
from dovetail.placement.place import Places, by_workload
from dovetail.spec import ReplicaId, Slo, Spec, Workload

_Gpus = tuple[str, tuple[int, ...]]  # of a node
_Who = Mapping[str, Mapping[int, set[str]]]  # ids of workloads, by node and index of a GPU


def not_needed(spec: Spec, places: Places, lost: Places) -> frozenset[ReplicaId]:
    """Return who runs, or ran, beyond what services need that ask for a rate and not for replicas.

    The others serve all of the rate, and are as many as there must be. All of a service on a GPU goes at once where
    nothing else is there, on nodes with the fewest GPUs of others first, and of these where it serves least for each
    slice; then single replicas, who serve least for each slice first. Whose place is gone is needed only where those
    who run serve too little.

    Parameters
    ----------
    places : of replicas whose place still stands.
    lost : of those whose place is gone.
    """
    asking = [
        (workload, workload.slo) for workload in spec.workloads if workload.slo is not None and workload.asks_rate
    ]
    running = by_workload(places) if asking else {}
    services = (_Service(spec, w, slo, running[w.id]) for w, slo in asking if w.id in running)
    ample = [service for service in services if service.spare >= 0]
    if not ample:
        return frozenset()
    who, hit = _who(places), by_workload(lost)
    return frozenset(r for service in ample for r in (*hit.get(service.id, ()), *service.surplus(who)))


def _who(places: Places) -> _Who:
    """Return which workloads are on which GPUs."""
    found: defaultdict[str, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for replica, place in places.items():
        for gpu in place.gpus:
            found[place.node][gpu].add(replica.workload)
    return found


class _Service:
    """One service, and who of it runs.

    Parameters
    ----------
    running : at least one replica of it, with a place that stands.

    `spare` is what is served beyond the rate, below 0 where more replicas are needed whatever they serve.
    """

    def __init__(self, spec: Spec, workload: Workload, slo: Slo, running: Places) -> None:
        self.id, self._running, self._spec = workload.id, running, spec
        self._request = workload.roles[0].request
        self._hosts = {replica: host_at(spec, place) for replica, place in running.items()}
        self._rates = {replica: slo.rates.get(host, 0) for replica, host in self._hosts.items()}
        self._more = len(running) - max(workload.min_replicas, slo.floors.replicas)
        self.spare = sum(self._rates.values()) - slo.rate if self._more >= 0 else -1

    def surplus(self, who: _Who) -> Iterator[ReplicaId]:
        """Yield who runs and is not needed, given which workloads are on which GPUs."""
        spare, more, gone = self.spare, self._more, set[ReplicaId]()
        together = self._alone(who)
        single = [(replica,) for replica in sorted(self._running, key=lambda each: (self._worth((each,)), each))]
        for group in (*together, *single):
            rate = sum(self._rates[replica] for replica in group)
            if rate <= spare and len(group) <= more and gone.isdisjoint(group):
                spare, more = spare - rate, more - len(group)
                gone.update(group)
                yield from group

    def _alone(self, who: _Who) -> list[Sequence[ReplicaId]]:
        """Return those who have GPUs for themselves, all on the same ones together, in the order that they may go."""
        found: defaultdict[_Gpus, list[ReplicaId]] = defaultdict(list)
        for replica, place in sorted(self._running.items()):
            if all(who[place.node][gpu] == {self.id} for gpu in place.gpus):
                found[place.node, place.gpus].append(replica)
        others = {node: sum(ids != {self.id} for ids in who[node].values()) for node, _ in found}
        order = sorted(found, key=lambda gpus: (others[gpus[0]], self._worth(found[gpus]), gpus))
        return [found[gpus] for gpus in order]

    def _worth(self, replicas: Sequence[ReplicaId]) -> Fraction:
        """Return what replicas serve for each slice that they take."""
        taken = sum(slices(self._spec, self._request, self._hosts[replica]) for replica in replicas)
        return Fraction(sum(self._rates[replica] for replica in replicas), taken or 1)
