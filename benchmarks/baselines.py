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
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

MILLI = 1000
MOST_CPU = 128_000  # milli-cores and milli-GPU by which the simulator of the FGD paper scales its best fit
MOST_GPU = 8_000
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

    def objection(self, kind: int, node: int, gpu: int | None) -> Ints | None:
        """Return the nodes that a rule keeps a pod (one for part of a GPU: on GPU `gpu`) from; None if no rule does.

        Empty where it is that node or GPU alone; else nodes of a domain, which may open again.
        """

    def add(self, pod: Pod, node: int, gpu: int | None) -> None:
        """Count a pod in."""


class Fleet:
    """What is free on every node; a GPU that a node does not have, or that is down, shows -1."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.cpu: Ints = np.array([node.cpu for node in nodes], dtype=np.int64)
        self.memory: Ints = np.array([node.memory for node in nodes], dtype=np.int64)
        self.gpus: Ints = np.full((len(nodes), max((node.gpus for node in nodes), default=0)), -1, dtype=np.int64)
        for index, node in enumerate(nodes):
            self.gpus[index, : node.gpus] = MILLI
            self.gpus[index, list(node.failed)] = -1
        self.placed: list[tuple[Pod, int, tuple[int, ...]]] = []
        self.untried = 0  # pods that time ran out for

    def untouched(self, node: int, wanted: int) -> tuple[int, ...]:
        """Return the first untouched GPUs of a node."""
        return tuple(int(gpu) for gpu in np.flatnonzero(self.gpus[node] == MILLI)[:wanted])

    def put(self, pod: Pod, node: int, gpus: tuple[int, ...]) -> None:
        """Place a pod."""
        self.cpu[node] -= pod.cpu
        self.memory[node] -= pod.memory
        self.gpus[node, list(gpus)] -= pod.milli
        self.placed.append((pod, node, gpus))

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


class Desk:
    """Where pods of each kind fit, kept up as nodes fill: only what changed is looked at again.

    A kind is all that a policy or a rule may ask of a pod. `fit` tells per kind and node whether a pod fits and no
    rule is known to object; `blocked` the GPUs that rules keep a kind from, all of a node for whole GPUs and none.
    """

    def __init__(self, nodes: Sequence[Node], pods: Sequence[Pod], gate: Gate | None) -> None:
        self.fleet, self.gate = Fleet(nodes), gate
        numbers: dict[Hashable, int] = {}
        self.kinds = [numbers.setdefault(_kind_of(pod), len(numbers)) for pod in pods]
        found = dict(zip(self.kinds, pods, strict=True))
        self.sample = [found[number] for number in range(len(numbers))]
        self.cpu = np.array([pod.cpu for pod in self.sample], dtype=np.int64)
        self.memory = np.array([pod.memory for pod in self.sample], dtype=np.int64)
        self.milli = np.array([pod.milli for pod in self.sample], dtype=np.int64)
        self.gpus = np.array([pod.gpus for pod in self.sample], dtype=np.int64)
        models = np.array([node.model for node in nodes])
        every = np.ones(len(nodes), dtype=np.bool_)
        self.hosts = np.array(
            [
                (np.isin(models, sorted(pod.models)) if pod.gpus and pod.models else every)
                & (gate.hosts(pod.kind) if gate is not None else every)
                for pod in self.sample
            ]
        ).reshape(len(self.sample), len(nodes))
        width = max(1, self.fleet.gpus.shape[1])
        self.blocked = np.zeros((len(self.sample), len(nodes), width), dtype=np.bool_)
        self.opened: dict[int, Hashable] = {}
        self.away = np.zeros_like(self.hosts)  # nodes of domains that rules keep a kind from for now
        every_node = np.arange(len(nodes))
        self.fit = np.array([self._fits(kind, every_node) for kind in range(len(self.sample))]).reshape(
            self.hosts.shape
        )

    def room(self, kind: int, nodes: Ints) -> Ints:
        """Return what is free of the GPUs of some nodes, -1 for a GPU that a rule keeps a kind from."""
        gpus = self.fleet.gpus[nodes]
        return np.where(self.blocked[kind, nodes][:, : gpus.shape[1]], -1, gpus)

    def _fits(self, kind: int, nodes: Ints) -> NDArray[np.bool_]:
        """Return which of some nodes a pod of a kind fits on."""
        fleet = self.fleet
        fits = (fleet.cpu[nodes] >= self.cpu[kind]) & (fleet.memory[nodes] >= self.memory[kind])
        room = (self.room(kind, nodes) >= self.milli[kind]).sum(axis=1) >= self.gpus[kind]
        return np.asarray(self.hosts[kind, nodes] & fits & room & ~self.blocked[kind, nodes].all(axis=1))

    def refresh(self, node: int) -> None:
        """Look at one node again, for all kinds."""
        fleet, gpus = self.fleet, self.fleet.gpus[node]
        free = (gpus >= self.milli[:, None]) & ~self.blocked[:, node, : len(gpus)]
        fits = self.hosts[:, node] & (fleet.cpu[node] >= self.cpu) & (fleet.memory[node] >= self.memory)
        fits &= free.sum(axis=1) >= self.gpus
        self.fit[:, node] = fits & ~self.blocked[:, node].all(axis=1) & ~self.away[:, node]

    def block(self, kind: int, node: int, gpu: int | None, domain: Ints) -> None:
        """Remember that a rule keeps a kind from a node, one GPU of it, or for now from a domain."""
        if len(domain):
            self.away[kind, domain] = True
            self.fit[kind, domain] = False
            return
        self.blocked[kind, node, slice(None) if gpu is None else gpu] = True
        if gpu is None or not (self.room(kind, np.array([node])) >= self.milli[kind]).any():
            self.fit[kind, node] = False

    def reopen(self, kind: int) -> None:
        """Forget the domains that rules kept a kind from, where that may have changed."""
        if self.gate is None or (opened := self.gate.opened(self.sample[kind].kind)) == self.opened.get(kind):
            return
        self.opened[kind] = opened
        if len(nodes := np.flatnonzero(self.away[kind])):
            self.away[kind] = False
            self.fit[kind, nodes] = self._fits(kind, nodes)


def _kind_of(pod: Pod) -> Hashable:
    return pod.cpu, pod.memory, pod.gpus, pod.milli, pod.models, pod.kind


class Policy(Protocol):
    """A way to choose; it may keep figures per node, which `changed` has it look at again."""

    def changed(self, desk: Desk, node: int) -> None:
        """Note that what a node holds has changed."""

    def choose(self, desk: Desk, kind: int, fitting: Ints) -> tuple[int, int]:
        """Return one of the nodes that a kind fits on, and the GPU for a part of one."""


def run(
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    start: Callable[[Desk], Policy],
    gate: Gate | None,
    seconds: float | None,
) -> Fleet:
    """Place pods one by one where a policy says, dropping those that fit nowhere, until time is up."""
    ends = None if seconds is None else time.monotonic() + seconds
    desk = Desk(nodes, pods, gate)
    policy, waiting = start(desk), []
    for pod, kind in zip(pods, desk.kinds, strict=True):
        if ends is not None and time.monotonic() > ends:
            desk.fleet.untried += 1
        elif not _place(desk, policy, pod, kind):
            waiting.append((pod, kind))
    for pod, kind in waiting if gate is not None else ():
        if ends is None or time.monotonic() <= ends:
            _place(desk, policy, pod, kind)
    return desk.fleet


def _place(desk: Desk, policy: Policy, pod: Pod, kind: int) -> bool:
    """Place a pod where the policy says and no rule objects; tell whether there is such a place."""
    gate, fleet = desk.gate, desk.fleet
    desk.reopen(kind)
    if gate is not None and gate.bars(pod.kind):
        return False
    while len(fitting := np.flatnonzero(desk.fit[kind])):
        node, gpu = policy.choose(desk, kind, fitting)
        at = gpu if pod.is_share else None
        if gate is not None and (domain := gate.objection(pod.kind, node, at)) is not None:
            desk.block(kind, node, at, domain)
            continue
        fleet.put(pod, node, (gpu,) if pod.is_share else fleet.untouched(node, pod.gpus))
        if gate is not None:
            gate.add(pod, node, at)
        desk.refresh(node)
        policy.changed(desk, node)
        return True
    return False


def first_fit_beside(
    nodes: Sequence[Node],
    pods: Sequence[Pod],
    running: Mapping[str, tuple[int, tuple[int, ...]]],
    gate: Gate,
    seconds: float,
) -> Fleet:
    """First fit decreasing of what does not run yet; nothing that runs, by name with its node and GPUs, moves."""
    ends = time.monotonic() + seconds
    desk = Desk(nodes, pods, gate)
    for pod in pods:
        if pod.name in running:
            node, gpus = running[pod.name]
            desk.fleet.put(pod, node, gpus)
            gate.add(pod, node, gpus[0] if pod.is_share else None)
    for node in range(len(nodes)):
        desk.refresh(node)
    policy = FirstFit(desk)
    waiting = [(pod, kind) for pod, kind in zip(pods, desk.kinds, strict=True) if pod.name not in running]
    for pod, kind in sorted(waiting, key=lambda each: (-each[0].band, -each[0].total, -each[0].cpu)):
        if time.monotonic() > ends:
            desk.fleet.untried += 1
        else:
            _place(desk, policy, pod, kind)
    return desk.fleet


class FirstFit:
    """The first node, and on it the first GPU."""

    def __init__(self, desk: Desk) -> None:
        pass

    def changed(self, desk: Desk, node: int) -> None:
        """Keep nothing."""

    def choose(self, desk: Desk, kind: int, fitting: Ints) -> tuple[int, int]:
        """Return the first of all."""
        room = desk.room(kind, fitting[:1])[0]
        return int(fitting[0]), int(np.argmax(room >= desk.milli[kind])) if len(room) else 0


class BestFit:
    """The node with least left, and on it the fullest GPU."""

    def __init__(self, desk: Desk) -> None:
        # Over the common denominator, in integers: no tie is decided by rounding. That the pod itself takes something
        # from each node alike changes no order.
        self.left: Ints = desk.fleet.cpu * MOST_GPU + np.maximum(desk.fleet.gpus, 0).sum(axis=1) * MOST_CPU

    def changed(self, desk: Desk, node: int) -> None:
        """Count what the node has left."""
        free = int(np.maximum(desk.fleet.gpus[node], 0).sum())
        self.left[node] = int(desk.fleet.cpu[node]) * MOST_GPU + free * MOST_CPU

    def choose(self, desk: Desk, kind: int, fitting: Ints) -> tuple[int, int]:
        """Return the fullest of all."""
        node = int(fitting[np.argmin(self.left[fitting])])
        room = desk.room(kind, np.array([node]))[0] - desk.milli[kind]
        return node, int(np.argmin(np.where(room >= 0, room, MILLI + 1))) if len(room) else 0


class Gradient:
    """The most points for a fall of fragmentation, kept per kind and node."""

    def __init__(self, desk: Desk, measure: Fragmentation) -> None:
        self.measure = measure
        shape = desk.fit.shape
        self.points, self.gpu = np.full(shape, -1, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        self.stale = np.ones(shape, dtype=np.bool_)

    def changed(self, desk: Desk, node: int) -> None:
        """Give points anew when they are asked for."""
        self.stale[:, node] = True

    def choose(self, desk: Desk, kind: int, fitting: Ints) -> tuple[int, int]:
        """Return the node with most points, the first where several have, and its GPU."""
        stale = fitting[self.stale[kind, fitting]]
        if len(stale):
            self._score(desk, kind, stale)
            self.stale[kind, stale] = False
        node = int(fitting[np.argmax(self.points[kind, fitting])])
        gpu = int(self.gpu[kind, node])
        if desk.sample[kind].is_share and desk.blocked[kind, node, gpu]:
            self._score(desk, kind, np.array([node]))
            return self.choose(desk, kind, fitting)
        return node, gpu

    def _score(self, desk: Desk, kind: int, nodes: Ints) -> None:
        fleet, pod = desk.fleet, desk.sample[kind]
        if not pod.is_share:
            after = fleet.gpus[nodes].copy()
            untouched = after == MILLI
            after[untouched & (np.cumsum(untouched, axis=1) <= pod.gpus)] = 0
            self.points[kind, nodes] = _points(self.measure, fleet, pod, nodes, after)
            return
        rows, gpus = np.nonzero(desk.room(kind, nodes) >= pod.milli)
        after = fleet.gpus[nodes[rows]].copy()
        after[np.arange(len(rows)), gpus] -= pod.milli
        points = np.full(fleet.gpus[nodes].shape, -1, dtype=np.int64)
        points[rows, gpus] = _points(self.measure, fleet, pod, nodes[rows], after)
        self.gpu[kind, nodes] = np.argmax(points, axis=1)
        self.points[kind, nodes] = points.max(axis=1)


def first_fit_decreasing(
    nodes: Sequence[Node], pods: Sequence[Pod], gate: Gate | None = None, seconds: float | None = None
) -> Fleet:
    """First fit decreasing, offline: the classical packing heuristic.

    Pods are sorted by band, then by GPUs asked for in all, then by CPU, then by memory, largest first (equal ones
    stay in order of arrival), so those without GPU come last. Each goes to the first node in the order of the file
    that it fits on; a pod for part of a GPU takes the first GPU of that node with enough left.
    """
    ordered = sorted(pods, key=lambda p: (-p.band, -p.total, -p.cpu, -p.memory))
    return run(nodes, ordered, FirstFit, gate, seconds)


def best_fit(
    nodes: Sequence[Node], pods: Sequence[Pod], gate: Gate | None = None, seconds: float | None = None
) -> Fleet:
    """Best fit, online: pods in order of arrival, each on the node that it leaves least on.

    What a node has left after the pod is 0.5 CPU / 128 cores + 0.5 GPU / 8, as in the simulator of the FGD paper; the
    least wins, unrounded. A pod for part of a GPU takes the GPU with least left that still holds it.
    """
    return run(nodes, pods, BestFit, gate, seconds)


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
    return run(nodes, pods, lambda desk: Gradient(desk, measure), gate, seconds)


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
