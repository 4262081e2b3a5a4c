"""A fleet whose GPUs are cut into MIG instances, some of them idle, and new work that asks for larger ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from benchmarks.synthetic.full import GPUS, hosts, project, workload

CORES = 128  # of a node
WHOLE = 0.2  # of the nodes, with a job of eight GPUs each
IDLE = 0.1  # of the instances
NODES_PER_SERVICE = 4
PROFILES = {"1g.10gb": 6, "1g.20gb": 2, "2g.20gb": 5, "3g.40gb": 5, "4g.40gb": 3, "7g.80gb": 1}  # with weights
LAYOUTS: Mapping[tuple[str, ...], int] = {  # with weights
    tuple(f"1g.10gb@{start}" for start in range(7)): 7,
    ("3g.40gb@0", "3g.40gb@4"): 3,
    ("4g.40gb@0", "3g.40gb@4"): 3,
    ("2g.20gb@0", "2g.20gb@2", "3g.40gb@4"): 4,
    ("2g.20gb@0", "2g.20gb@2", "2g.20gb@4", "1g.10gb@6"): 4,
    ("1g.20gb@0", "1g.20gb@2", "1g.20gb@4", "1g.20gb@6"): 2,
    ("3g.40gb@0", "2g.20gb@4", "1g.10gb@6"): 3,
    ("7g.80gb@0",): 1,
}
JOBS = 20
NEW = {  # what a new replica asks for, and nodes per replica
    "new-7g": ("mig: 7g.80gb", 20),
    "new-4g": ("mig: 4g.40gb", 10),
    "new-3g": ("mig: 3g.40gb", 5),
    "new-whole": ("gpus: 2", 20),
}


def instances(gpus: int, seed: int) -> Mapping[str, str]:
    """Return the files of such a project, by name."""
    rng = Random(f"instances {seed}")
    nodes = max(1, gpus // GPUS)
    services = _services(nodes, rng)
    counts, rows, layouts = Counter[str](), list[str](), list[str]()
    for node in range(nodes):
        if rng.random() < WHOLE:
            rows.append(_row(f"job-{node % JOBS:02d}", counts, f"{{node: host-{node:03d}, gpus: {[*range(GPUS)]}}}"))
            continue
        for gpu in range(GPUS):
            layout = rng.choices(tuple(LAYOUTS), tuple(LAYOUTS.values()))[0]
            layouts.append(f"    host-{node:03d}/{gpu}: {{mode: mig, instances: [{', '.join(layout)}]}}\n")
            for instance in (one for one in layout if rng.random() >= IDLE):
                place = f"{{node: host-{node:03d}, gpus: [{gpu}], instance: {instance}}}"
                rows.append(_row(rng.choice(services[instance.partition("@")[0]]), counts, place))
    work = [*_running(services, counts, rng), *_new(nodes)]
    today = f"  placements:\n{''.join(rows)}  gpus:\n{''.join(layouts)}"
    return project("instances", hosts("instances", nodes, CORES), work, today)


def _services(nodes: int, rng: Random) -> Mapping[str, Sequence[str]]:
    """Return the names of services by the profile that they ask for, of each profile one at the least."""
    found = defaultdict[str, list[str]](list)
    more = rng.choices(
        tuple(PROFILES), tuple(PROFILES.values()), k=max(0, nodes // NODES_PER_SERVICE - len(PROFILES))
    )
    for number, profile in enumerate((*PROFILES, *more)):
        found[profile].append(f"svc-{number:04d}")
    return found


def _row(name: str, counts: Counter[str], place: str) -> str:
    counts[name] += 1
    return f"    {name}#{counts[name] - 1}: {place}\n"


def _running(services: Mapping[str, Sequence[str]], counts: Counter[str], rng: Random) -> Iterator[str]:
    for profile, names in services.items():
        for name in (name for name in names if counts[name]):
            yield workload(
                name, "service", rng.choice((500, 900)), counts[name], f"mig: {profile}, cpu: 1, memory: 4Gi"
            )
    for name in (name for number in range(JOBS) if counts[name := f"job-{number:02d}"]):
        yield workload(name, "job", 500, counts[name], f"gpus: {GPUS}, cpu: 32, memory: 4Gi")


def _new(nodes: int) -> Iterator[str]:
    for name, (asked, each) in NEW.items():
        yield workload(name, "job", 900, max(1, nodes // each), f"{asked}, cpu: 2, memory: 4Gi")
