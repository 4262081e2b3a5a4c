"""A fleet whose nodes are full of small shares, with no idle node, and new work that asks for whole and half ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

from benchmarks.synthetic.full import GPUS, hosts, project, workload
from benchmarks.synthetic.hardware import MILLI

CORES = 96  # of a node
WHOLE = 0.25  # of the nodes, with two jobs of four GPUs each
IDLE = 0.05  # of the GPUs of others
SERVICES = 10  # nodes per service
SIZES, CPUS = (100, 150, 200, 250, 300, 400), (500, 1000, 1500)  # of a replica, thousandths of a GPU, milli-cores
LEFT = (0, 50, 100, 200, 300, 500)  # thousandths of a GPU at the least, once it takes no more
DRAWS = 30  # of replicas for a GPU
JOBS = 20  # of four GPUs per replica
NEW_WHOLE, NEW_HALF = 100, 50  # nodes per new replica of a whole node, and of half a node


def shares(gpus: int, seed: int) -> Mapping[str, str]:
    """Return the files of such a project, by name."""
    rng = Random(f"shares {seed}")
    nodes = max(1, gpus // GPUS)
    services = {f"svc-{k:04d}": (rng.choice(SIZES), rng.choice(CPUS)) for k in range(max(1, nodes // SERVICES))}
    counts, rows = Counter[str](), list[str]()
    for node in range(nodes):
        for name, taken in _contents(services, node, rng):
            rows.append(f"    {name}#{counts[name]}: {{node: host-{node:03d}, gpus: {taken}}}\n")
            counts[name] += 1
    work = [*_running(services, counts, rng), *_new(nodes)]
    cluster = hosts("shares", nodes, CORES, "    sharing: {mechanism: fraction}\n")
    return project("shares", cluster, work, "  placements:\n" + "".join(rows))


def _contents(services: Mapping[str, tuple[int, int]], node: int, rng: Random) -> Iterator[tuple[str, list[int]]]:
    """Yield the replicas on a node, each with its GPUs."""
    if rng.random() < WHOLE:
        yield f"job-{node % JOBS:02d}", [0, 1, 2, 3]
        yield f"job-{(node + 7) % JOBS:02d}", [4, 5, 6, 7]
        return
    cores, names = CORES * MILLI, list(services)
    for gpu in range(GPUS):
        free, least = MILLI, rng.choice(LEFT)
        for name in rng.choices(names, k=DRAWS) if rng.random() >= IDLE else ():
            size, cpu = services[name]
            if free - size >= least and cores >= cpu:
                free, cores = free - size, cores - cpu
                yield name, [gpu]


def _running(services: Mapping[str, tuple[int, int]], counts: Counter[str], rng: Random) -> Iterator[str]:
    for name, (size, cpu) in services.items():
        asked = f"share: {{compute: {size / MILLI}}}, cpu: {cpu}m, memory: 1Gi"
        yield workload(name, "service", rng.choice((500, 900)), counts[name], asked)
    for number in range(JOBS):
        name = f"job-{number:02d}"
        yield workload(name, "job", 500, counts[name], "gpus: 4, cpu: 16, memory: 64Gi")


def _new(nodes: int) -> Iterator[str]:
    yield workload("new-whole", "job", 900, max(1, nodes // NEW_WHOLE), "gpus: 8, cpu: 48, memory: 128Gi")
    yield workload("new-half", "job", 900, max(1, nodes // NEW_HALF), "gpus: 4, cpu: 24, memory: 64Gi")
