"""Amounts of a case in units that documents can say: exact, and as small as the requests allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gang import names, tokens
from benchmarks.gang.arrears import Arrears, StandIn, there
from benchmarks.gang.case import Case, Gang, Running

CPU, GPUS = "cpu_m", "gpu"
MOST_GPUS = 256


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a node group has."""

    cpu: int
    gpus: int
    resources: Mapping[str, int] = field(default_factory=dict)


class Amounts:
    """What nodes have and pods ask for; what runs and is declared has its use given back to its node first.

    GPUs are GPUs, unless a node has more than documents can say, or not all pods ask for them: what is admitted is
    counted apart with and without GPUs, and all pods, and the tokens of jobs, have to count alike. Beside pods that
    may move or go they are not either: each would be on GPUs of its own, where only their number is told.
    """

    def __init__(self, case: Case, gangs: Sequence[Gang], running: Sequence[Running], arrears: Arrears) -> None:
        self._case, self._gangs, self._arrears = case, gangs, arrears
        self._shrinking = {gang.name: f"held-{n}" for n, gang in enumerate(gangs) if gang.shrinks}
        wide = [gang for gang in gangs if not gang.shrinks]
        parties: list[Gang | Running] = [*wide, *running]
        self._there = [(there(each), each.per_pod) for each in parties]
        asking = [per for _, per in self._there]
        self._unit = {name: math.gcd(*(per.get(name, 0) for per in asking)) for per in asking for name in per}
        self._total = {node.name: self._of(node.name) for node in case.nodes}
        mixed = bool(case.jobs or running) or len({bool(per.get(GPUS)) for per in asking}) > 1
        many = any(total.get(GPUS, 0) > MOST_GPUS for total in self._total.values())
        self.whole_gpus = GPUS in self._unit and not (mixed or many)
        plain = [name for name in self._unit if name != CPU and not (name == GPUS and self.whole_gpus)]
        own = {*self._shrinking.values(), *(name for node in self._total for name in arrears.of_node(node))}
        taken = ["cpu", "memory", "gpus", "nothing", tokens.RESOURCE, *own]
        self._name = names.labels(sorted(plain), "resource", taken)

    def of_node(self, node: str) -> Capacity:
        """Return what a node has, in the units of requests."""
        total = self._total[node]
        scaled = {safe: total.get(name, 0) // self._unit[name] for name, safe in self._name.items()}
        resources = {name: amount for name, amount in scaled.items() if amount > 0}
        gpus = total.get(GPUS, 0) if self.whole_gpus else 0
        for gang in self._gangs:
            if gang.shrinks and gang.previous.get(node):
                resources[self._shrinking[gang.name]] = gang.previous[node]
        more = {**self._arrears.of_node(node), "nothing": 10**6}
        return Capacity(max(0, total.get(CPU, 0)), max(0, gpus), {**resources, **more})

    def request_of(self, pods: Gang | Running) -> dict[str, Any]:
        """Return what a pod asks for: one of a gang that shrinks has what it needs where it was, and only there."""
        if isinstance(pods, Gang) and pods.shrinks:
            return {"resources": {self._shrinking[pods.name]: 1}}
        return self._request(pods.per_pod, self._arrears.ways(pods))

    def request_of_stand_in(self, each: StandIn) -> dict[str, Any]:
        """Return what a stand-in asks for; of what comes in larger units it takes whole ones."""
        rounded = {name: -(-amount // self._unit[name]) * self._unit[name] for name, amount in each.takes.items()}
        return self._request(rounded, each.ways)

    def _request(self, per_pod: Mapping[str, int], ways: Mapping[str, int]) -> dict[str, Any]:
        """Return what a replica asks for; pods that ask for nothing take a share of what there is plenty of."""
        found: dict[str, Any] = {}
        if per_pod.get(CPU):
            found["cpu"] = f"{per_pod[CPU]}m"
        if self.gpus(per_pod):
            found["gpus"] = self.gpus(per_pod)
        asked = {safe: per_pod[name] // self._unit[name] for name, safe in self._name.items() if per_pod.get(name)}
        if asked or ways:
            found["resources"] = {**asked, **ways}
        return found or {"resources": {"nothing": 1}}

    def gpus(self, per_pod: Mapping[str, int]) -> int:
        """Return how many GPUs a replica asks for as GPUs."""
        return per_pod.get(GPUS, 0) if self.whole_gpus else 0

    def limit(self, resource: str, most: int) -> dict[str, Any] | None:
        """Return a quota's limit, None where nobody asks for the resource."""
        if resource not in self._unit:
            return None
        if resource == CPU:
            return {"cpu": f"{most}m"}
        if resource == GPUS and self.whole_gpus:
            return {"gpus": most}
        return {"resources": {self._name[resource]: most // self._unit[resource]}}

    def _of(self, node: str) -> dict[str, int]:
        """Return what a node has free and what is there; nobody leaves a node because it is overdrawn (`Arrears`)."""
        total = {name: max(0, amount) for name, amount in self._case.by_name[node].free.items()}
        for on, per_pod in self._there:
            if on.get(node):
                for name, amount in per_pod.items():
                    total[name] = total.get(name, 0) + on[node] * amount
        return total
