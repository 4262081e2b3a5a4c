"""A fleet that is full of batch work, most of it preemptible, and a surge of work of the highest band."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from random import Random

from benchmarks.synthetic.full import GPUS, hosts, project, workload

CORES = 128  # of a node
RACK = 16  # nodes
GANGS = 0.3  # of the nodes, under gangs of so many nodes:
SIZES = (2, 2, 4, 4, 8, 16)
IDLE = 0.02  # of the GPUs of others
SERVICES, PER_SERVICE = 0.25, 12  # of the replicas of others, with the highest band, and nodes per service
TAKEN = (1, 1, 2, 2, 4, 8)  # GPUs of a replica
GIVES_WAY, KEEPS_CHECKPOINTS = 0.8, 0.5  # of the jobs; of the gangs as many give way
BANDS, HIGH = (100, 100, 300, 500), 900
SURGE = 0.1  # of the capacity is asked for, by gangs of so many nodes, jobs where there is one:
NEW_SIZES = (1, 1, 2, 4, 8)
SMALL = 25  # nodes per new replica of two GPUs


def batch(gpus: int, seed: int) -> Mapping[str, str]:
    """Return the files of such a project, by name."""
    rng = Random(f"batch {seed}")
    nodes = max(2, gpus // GPUS)
    made = _Made(rng)
    first = made.gangs(nodes)
    for node in range(first, nodes):
        made.fill(node)
    work = [*made.work, *made.services(), *_new(nodes, rng)]
    today = f"  placements:\n{''.join(made.rows)}  running:\n{''.join(made.elapsed)}"
    return project("batch", hosts("batch", nodes, CORES), work, today)


class _Made:
    """What runs, as far as it is made: Workloads, places, and since when."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.work: list[str] = []
        self.rows: list[str] = []
        self.elapsed: list[str] = []
        self._served: dict[tuple[int, int], list[str]] = defaultdict(list)

    def gangs(self, nodes: int) -> int:
        """Put gangs on the first nodes, each within a rack; return the first node that is left."""
        node = 0
        while node < nodes * GANGS:
            size = min(self._rng.choice(SIZES), max(1, nodes // RACK))
            if node // RACK != (node + size - 1) // RACK:
                node = (node // RACK + 1) * RACK
            if node + size > nodes:
                break
            checkpoints = f"  checkpointEvery: {self._rng.choice(('30m', '1h', '4h'))}\n  restart: 5m\n"
            name = self._run("gang", size, GPUS, checkpoints + "  topology: {within: rack}\n")
            self.rows += [_row(name, i, node + i, [*range(GPUS)]) for i in range(size)]
            node += size
        return node

    def fill(self, node: int) -> None:
        """Fill a node with replicas of jobs and services."""
        free = list(range(GPUS))
        while free:
            if self._rng.random() < IDLE:
                del free[0]
                continue
            taken = free[: self._rng.choice(TAKEN)]
            del free[: len(taken)]
            if self._rng.random() < SERVICES:
                self._served[node // PER_SERVICE, len(taken)].append(f"{{node: host-{node:03d}, gpus: {taken}}}")
            else:
                checkpoints = "  checkpointEvery: 1h\n" if self._rng.random() < KEEPS_CHECKPOINTS else ""
                self.rows.append(_row(self._run("job", 1, len(taken), checkpoints), 0, node, taken))

    def services(self) -> Iterator[str]:
        """Yield the services, whose places are entered."""
        for (block, size), places in self._served.items():
            name = f"service-{block:04d}-{size}"
            self.rows += [f"    {name}#{i}: {place}\n" for i, place in enumerate(places)]
            yield workload(name, "service", HIGH, len(places), _asked(size))

    def _run(self, kind: str, replicas: int, gpus: int, more: str) -> str:
        name = f"{kind}-{len(self.work):05d}"
        preemptible = "true" if self._rng.random() < GIVES_WAY else "false"
        text = workload(name, kind, self._rng.choice(BANDS), replicas, _asked(gpus))
        self.work.append(f"{text}  preemptible: {preemptible}\n{more}")
        self.elapsed.append(f"    {name}: {{elapsed: {self._rng.randint(1, 2000)}m}}\n")
        return name


def _row(name: str, index: int, node: int, gpus: list[int]) -> str:
    return f"    {name}#{index}: {{node: host-{node:03d}, gpus: {gpus}}}\n"


def _asked(gpus: int) -> str:
    return f"gpus: {gpus}, cpu: {8 * gpus}, memory: {64 * gpus}Gi"


def _new(nodes: int, rng: Random) -> Iterator[str]:
    left, number = int(nodes * SURGE), 0
    while left > 0:
        size = min(rng.choice(NEW_SIZES), left, max(1, nodes // RACK))
        kind, more = ("gang", "  topology: {within: rack}\n") if size > 1 else ("job", "")
        yield workload(f"new-{kind}-{number:04d}", kind, HIGH, size, _asked(GPUS)) + more
        left, number = left - size, number + 1
    yield workload("new-small", "job", HIGH, max(1, nodes // SMALL), _asked(2))
