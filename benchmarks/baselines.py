"""The schedulers that plans are measured against, each a plain reading of its published definition.

All of them place pod after pod and never take anything back. What they share: a pod goes only where its CPU, memory,
GPUs and accepted models fit; a pod for part of a GPU takes one GPU with that much left; a pod for whole GPUs takes
untouched ones, lowest index first; a pod that fits nowhere is dropped; where a policy leaves a tie, the first node in
the order of the nodes wins, then the lowest GPU index. Where there are rules (`Gate`), a place that a rule blocks is
passed over and the policy asked again; pods that found no place are tried once more at the end, in order.
"""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MILLI = 1000
MOST_CPU = 128_000  # milli-cores and milli-GPU by which the simulator of the FGD paper scales its best fit
MOST_GPU = 8_000
PATIENCE = 8  # refusals by rules after which all fitting nodes are asked about at once
POPULAR = 0.95  # share of the pods that the popular classes of FGD cover

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Node:
    """A row of nodes.csv: CPU in milli-cores, memory in MiB, GPUs of one model, `failed` those that are down."""

    name: str
    cpu: int
    memory: int
    gpus: int
    model: str
    failed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pod:
    """A row of an arrived list: `milli` is per GPU, `models` empty where any will do.

    `kind` is what a `Gate` knows it by: pods of one kind are alike. `band` comes first, higher first.
    """

    name: str
    cpu: int
    memory: int
    gpus: int
    milli: int
    models: frozenset[str]
    kind: int = -1
    band: int = 0

    @property
    def is_share(self) -> bool:
        return self.gpus == 1 and self.milli < MILLI

    @property
    def total(self) -> int:
        """The milli-GPU of the whole pod."""
        return self.gpus * self.milli


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scheduler placed: milli-GPU, pods without GPU, and pods in all."""

    milli: int
    cpu_only: int
    pods: int

    @property
    def gpus(self) -> float:
        return self.milli / MILLI


def read_nodes(path: Path) -> list[Node]:
    """Read nodes.csv, in its order."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            Node(r["sn"], int(r["cpu_milli"]), int(r["memory_mib"]), int(r["gpu"]), r["model"])
            for r in csv.DictReader(stream)
        ]


def read_pods(path: Path) -> list[Pod]:
    """Read a list of pods, in the order of their arrival."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            Pod(
                r["name"],
                int(r["cpu_milli"]),
                int(r["memory_mib"]),
                int(r["num_gpu"]),
                int(r["gpu_milli"]),
                frozenset(filter(None, r["gpu_spec"].split("|"))),
            )
            for r in csv.DictReader(stream)
        ]


class Gate(Protocol):
    """The rules of a Spec; what they block stays blocked as nodes fill, unless `opened` changes."""

    def hosts(self, kind: int) -> NDArray[np.bool_]:
        """Return which nodes may ever take a pod of a kind."""

    def bars(self, kind: int) -> bool:
        """Tell whether a pod of a kind would be blocked wherever it went."""

    def opened(self, kind: int) -> Hashable:
        """Return what changes whenever places may have opened for a kind."""

    def blocks(self, kind: int, node: int, gpu: int | None) -> bool:
        """Tell whether a rule keeps a pod (one for part of a GPU: on GPU `gpu`) from a node."""

    def add(self, pod: Pod, node: int, gpu: int | None) -> None:
        """Count a pod in."""


class Fleet:
    """What is free on every node; a GPU that a node does not have, or that is down, shows -1."""

    def __init__(self, nodes: Sequence[Node], gate: Gate | None = None) -> None:
        self.cpu: Ints = np.array([node.cpu for node in nodes], dtype=np.int64)
        self.memory: Ints = np.array([node.memory for node in nodes], dtype=np.int64)
        self.models = np.array([node.model for node in nodes])
        self.gpus: Ints = np.full((len(nodes), max((node.gpus for node in nodes), default=0)), -1, dtype=np.int64)
        for index, node in enumerate(nodes):
            self.gpus[index, : node.gpus] = MILLI
            self.gpus[index, list(node.failed)] = -1
        self.placed: list[tuple[Pod, int, tuple[int, ...]]] = []
        self.gate = gate
        self.blocked: dict[int, NDArray[np.bool_]] = {}
        self.opened: dict[int, Hashable] = {}
        self.hopeless: set[int] = set()
        self.untried = 0  # pods that time ran out for

    def fitting(self, pod: Pod) -> Ints:
        """Return the nodes that a pod fits on, in order."""
        mask = (self.cpu >= pod.cpu) & (self.memory >= pod.memory)
        if self.gate is not None:
            mask &= self.gate.hosts(pod.kind)
        if pod.gpus:
            room = self.gpus >= pod.milli
            if pod.kind in self.blocked:
                room &= ~self.blocked[pod.kind]
            mask &= room.sum(axis=1) >= pod.gpus
            if pod.models:
                mask &= np.isin(self.models, sorted(pod.models))
        elif pod.kind in self.blocked:
            mask &= ~self.blocked[pod.kind][:, 0]
        return np.flatnonzero(mask)

    def room(self, pod: Pod, nodes: Ints) -> Ints:
        """Return what is free of the GPUs of some nodes, -1 for a GPU that a rule keeps a pod from."""
        free = self.gpus[nodes]
        return np.where(self.blocked[pod.kind][nodes], -1, free) if pod.kind in self.blocked else free

    def take(self, pod: Pod, choose: Choice) -> bool:
        """Place a pod where `choose` says and no rule objects; tell whether there is such a place."""
        if self.gate is None:
            return self._put_first(pod, choose)
        if (opened := self.gate.opened(pod.kind)) != self.opened.get(pod.kind):
            self.blocked.pop(pod.kind, None)
            self.hopeless.discard(pod.kind)
            self.opened[pod.kind] = opened
        if pod.kind in self.hopeless or self.gate.bars(pod.kind):
            return False
        found = self._put_first(pod, choose)
        if not found:
            self.hopeless.add(pod.kind)
        return found

    def _put_first(self, pod: Pod, choose: Choice) -> bool:
        refused = 0
        while len(fitting := self.fitting(pod)):
            node, gpus = choose(self, pod, fitting)
            gpu = gpus[0] if pod.is_share else None
            if self.gate is None or not self.gate.blocks(pod.kind, node, gpu):
                self.put(pod, node, gpus)
                return True
            refused += 1
            self._block(pod, fitting.tolist() if refused % PATIENCE == 0 else [node])
        return False

    def _block(self, pod: Pod, nodes: Iterable[int]) -> None:
        """Remember which GPUs of nodes, or nodes as a whole, the rules keep pods of a kind from."""
        gate, width = self.gate, max(1, self.gpus.shape[1])
        if gate is None:
            return
        mask = self.blocked.setdefault(pod.kind, np.zeros((len(self.cpu), width), dtype=np.bool_))
        for node in nodes:
            if not pod.is_share:
                mask[node, :] = gate.blocks(pod.kind, node, None)
                continue
            for gpu in np.flatnonzero(self.gpus[node] >= pod.milli).tolist():
                mask[node, gpu] = gate.blocks(pod.kind, node, gpu)

    def untouched(self, node: int, wanted: int) -> tuple[int, ...]:
        """Return the first untouched GPUs of a node."""
        return tuple(int(gpu) for gpu in np.flatnonzero(self.gpus[node] == MILLI)[:wanted])

    def put(self, pod: Pod, node: int, gpus: tuple[int, ...]) -> None:
        """Place a pod."""
        self.cpu[node] -= pod.cpu
        self.memory[node] -= pod.memory
        self.gpus[node, list(gpus)] -= pod.milli
        self.placed.append((pod, node, gpus))
        if self.gate is not None:
            self.gate.add(pod, node, gpus[0] if pod.is_share else None)

    def check(self, nodes: Sequence[Node]) -> None:
        """Raise where what was placed does not fit, counted anew from the list of placements."""
        cpu, memory, gpus = Counter[int](), Counter[int](), Counter[tuple[int, int]]()
        for pod, at, indices in self.placed:
            cpu[at] += pod.cpu
            memory[at] += pod.memory
            for gpu in indices:
                gpus[at, gpu] += pod.milli
            if len(indices) != pod.gpus or (pod.gpus and pod.models and nodes[at].model not in pod.models):
                raise AssertionError(f"{pod.name} cannot be on {nodes[at].name}")
        for index, node in enumerate(nodes):
            if cpu[index] > node.cpu or memory[index] > node.memory:
                raise AssertionError(f"{node.name} holds too much")
        if any(load > MILLI or gpu >= nodes[at].gpus for (at, gpu), load in gpus.items()):
            raise AssertionError("a GPU holds too much")

    def outcome(self) -> Outcome:
        """Count what was placed."""
        pods = [pod for pod, _, _ in self.placed]
        return Outcome(sum(pod.total for pod in pods), sum(not pod.gpus for pod in pods), len(pods))


Choice = Callable[[Fleet, Pod, Ints], tuple[int, tuple[int, ...]]]


def run(
    nodes: Sequence[Node], pods: Iterable[Pod], choose: Choice, gate: Gate | None = None, seconds: float | None = None
) -> Fleet:
    """Place pods one by one where `choose` says, dropping those that fit nowhere, until time is up."""
    fleet, waiting = Fleet(nodes, gate), []
    ends = None if seconds is None else time.monotonic() + seconds
    for pod in pods:
        if ends is not None and time.monotonic() > ends:
            fleet.untried += 1
        elif not fleet.take(pod, choose):
            waiting.append(pod)
    for pod in waiting if gate is not None else ():
        if ends is None or time.monotonic() <= ends:
            fleet.take(pod, choose)
    return fleet


def first_fit_decreasing(
    nodes: Sequence[Node], pods: Sequence[Pod], gate: Gate | None = None, seconds: float | None = None
) -> Fleet:
    """First fit decreasing, offline: the classical packing heuristic.

    Pods are sorted by band, then by GPUs asked for in all, then by CPU, then by memory, largest first (equal ones
    stay in order of arrival), so those without GPU come last. Each goes to the first node in the order of the file
    that it fits on; a pod for part of a GPU takes the first GPU of that node with enough left.
    """

    def choose(fleet: Fleet, pod: Pod, fitting: Ints) -> tuple[int, tuple[int, ...]]:
        node = int(fitting[0])
        if pod.is_share:
            return node, (int(np.flatnonzero(fleet.room(pod, fitting[:1])[0] >= pod.milli)[0]),)
        return node, fleet.untouched(node, pod.gpus)

    return run(nodes, sorted(pods, key=lambda p: (-p.band, -p.total, -p.cpu, -p.memory)), choose, gate, seconds)


def best_fit(
    nodes: Sequence[Node], pods: Sequence[Pod], gate: Gate | None = None, seconds: float | None = None
) -> Fleet:
    """Best fit, online: pods in order of arrival, each on the node that it leaves least on.

    What a node has left after the pod is 0.5 CPU / 128 cores + 0.5 GPU / 8, as in the simulator of the FGD paper; the
    least wins, unrounded. A pod for part of a GPU takes the GPU with least left that still holds it.
    """

    def choose(fleet: Fleet, pod: Pod, fitting: Ints) -> tuple[int, tuple[int, ...]]:
        gpus = np.maximum(fleet.gpus[fitting], 0).sum(axis=1) - pod.total
        # Over the common denominator, in integers: no tie is decided by rounding.
        left = (fleet.cpu[fitting] - pod.cpu) * MOST_GPU + gpus * MOST_CPU
        node = int(fitting[np.argmin(left)])
        if not pod.is_share:
            return node, fleet.untouched(node, pod.gpus)
        room = fleet.room(pod, np.array([node]))[0] - pod.milli
        return node, (int(np.argmin(np.where(room >= 0, room, MILLI + 1))),)

    return run(nodes, pods, choose, gate, seconds)


def fgd(nodes: Sequence[Node], pods: Sequence[Pod], gate: Gate | None = None, seconds: float | None = None) -> Fleet:
    """Fragmentation gradient descent, online: pods in order of arrival, each where fragmentation grows least.

    Source: "Beware of Fragmentation", USENIX ATC 2023, with the score of its simulator: by how much the pod would
    lower the fragmentation of a node, put through a sigmoid per GPU and cut to whole points out of 100, which makes
    a bucket of 0.04 GPU and more; the most points win. That tolerance and the tie-break are part of the policy: ties
    go to the first node in the order of the file, and on it to the first GPU, which fills nodes one after the other
    (with random ties FGD is worse than best fit). The popular classes are the distinct requests of the arrived pods,
    the most frequent first, until they make up 95 %; those without GPU count as in the paper.
    """
    measure = Fragmentation(nodes, pods)

    def choose(fleet: Fleet, pod: Pod, fitting: Ints) -> tuple[int, tuple[int, ...]]:
        if not pod.is_share:
            after = fleet.gpus[fitting].copy()
            untouched = after == MILLI
            after[untouched & (np.cumsum(untouched, axis=1) <= pod.gpus)] = 0
            node = int(fitting[np.argmax(_points(measure, fleet, pod, fitting, after))])
            return node, fleet.untouched(node, pod.gpus)
        rows, gpus = np.nonzero(fleet.room(pod, fitting) >= pod.milli)
        after = fleet.gpus[fitting[rows]].copy()
        after[np.arange(len(rows)), gpus] -= pod.milli
        best = np.argmax(_points(measure, fleet, pod, fitting[rows], after))
        return int(fitting[rows[best]]), (int(gpus[best]),)

    return run(nodes, pods, choose, gate, seconds)


def _points(measure: Fragmentation, fleet: Fleet, pod: Pod, nodes: Ints, after: Ints) -> Ints:
    """Return the simulator's score: int(100 * sigmoid(fall of fragmentation in GPUs))."""
    before = measure.of(nodes, fleet.cpu[nodes], fleet.gpus[nodes])
    fall = (before - measure.of(nodes, fleet.cpu[nodes] - pod.cpu, after)) / MILLI
    # A hair against what summing floats in another order does to whole points.
    return np.asarray(np.floor(100.0 / (1.0 + np.exp(-fall)) + 1e-9), dtype=np.int64)


class Fragmentation:
    """The amount F_n(M) of the FGD paper for many nodes at once, in its closed form.

    F_n(M) = R - sum_j r_j T[t, C, r_j] - 1000 f U[t, C, f]: R is a node's idle milli-GPU, r_j that of GPU j, f the
    number of its untouched GPUs, C its free CPU, t its model; T is the popularity of the classes for one GPU that fit
    r_j and C, U of those for several. Classes without GPU are popular too and fit nowhere, as in the paper.
    """

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod]) -> None:
        models = sorted({node.model for node in nodes})
        self.model_of = np.array([models.index(node.model) for node in nodes], dtype=np.int64)
        popular = popular_classes(pods)
        self.steps = np.array(sorted({0, *(cpu for cpu, *_ in popular)}), dtype=np.int64)
        self.one = np.zeros((len(models), len(self.steps), MILLI + 1))
        self.many = np.zeros((len(models), len(self.steps), max((node.gpus for node in nodes), default=0) + 1))
        for (cpu, milli, gpus, accepted), weight in popular.items():
            on = [index for index, model in enumerate(models) if not accepted or model in accepted]
            step = int(np.searchsorted(self.steps, cpu))
            if gpus == 1:
                self.one[on, step:, milli:] += weight
            elif gpus:
                self.many[on, step:, gpus:] += weight

    def of(self, nodes: Ints, cpu: Ints, gpus: Ints) -> Floats:
        """Return the fragmentation in milli-GPU of nodes with that much free."""
        model = self.model_of[nodes]
        step = np.searchsorted(self.steps, cpu, side="right") - 1
        free = np.maximum(gpus, 0)
        untouched = (gpus == MILLI).sum(axis=1)
        usable = (free * self.one[model[:, None], step[:, None], free]).sum(axis=1)
        usable += MILLI * untouched * self.many[model, step, untouched]
        return np.asarray(free.sum(axis=1) - usable, dtype=np.float64)


def popular_classes(pods: Iterable[Pod]) -> dict[tuple[int, int, int, frozenset[str]], float]:
    """Return the popularity of the most frequent requests (CPU, milli, GPUs, models) until they cover 95 %."""
    counts = Counter((pod.cpu, pod.milli, pod.gpus, pod.models) for pod in pods)
    wanted = POPULAR * counts.total()
    chosen: dict[tuple[int, int, int, frozenset[str]], int] = {}
    for request, count in sorted(counts.items(), key=lambda item: (-item[1], item[0][:3], sorted(item[0][3]))):
        if sum(chosen.values()) >= wanted:
            break
        chosen[request] = count
    total = sum(chosen.values())
    return {request: count / total for request, count in chosen.items()}
