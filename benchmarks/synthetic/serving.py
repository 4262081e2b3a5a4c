"""An inference fleet: services ask for rates on MIG instances and whole GPUs, batches for deadlines; and jobs.

Equal arguments give equal bytes. The load is what is asked for, in GPUs, over what there is; a service counts for the
H100s that would serve its rate, about. Nothing runs yet. Single services, batches and jobs grow with the square root
of the fleet, so that larger fleets have more of them, and larger ones.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from benchmarks.synthetic.deadlines import AS_OF
from benchmarks.synthetic.documents import head

DAYS = 10  # from that day to all deadlines
NODE = 8  # GPUs of a node
RACK = 16  # nodes of a rack
FAST, SLOW, PLAIN = "H100-80GB", "A100-80GB", "L40S-48GB"
GROUPS = (("h100", FAST, 5, 25.0), ("a100", SLOW, 3, 13.0), ("l40s", PLAIN, 2, 8.0))  # tenths of the nodes, price/h
ON_INSTANCES, ON_WHOLE, TO_DEADLINES = (
    0.45,
    0.65,
    0.85,
)  # of the load, where each kind of work ends; jobs are the rest
PROFILES = {"1g.10gb": 1, "2g.20gb": 2, "3g.40gb": 3}  # with compute slices,
SLICES = 7  # of which a GPU has so many
HALF, BATCH_SPEED = 0.5, 0.45  # what an A100 does of what an H100 does, for services and for batches
BOTH, NOT_SMALLEST = 0.6, 0.4  # of the services on instances run on A100s too, and not on the smallest of H100s
BASE = 20, 200  # requests per second that an H100 serves, of services on instances a seventh of one
UNIT = 1000  # GPUs, from which on single services grow with the fleet
HIGH, MIDDLE, LOW = 900, 500, 100
CHANGED, BY = 0.2, 0.3  # of the services, those whose rate is another a day later, by so much at the most
_RATE = re.compile(r"^    rate: (\d+)$", re.MULTILINE)
_SEPARATOR = "---\n"


def serving(gpus: int, seed: int, load: float = 1.0) -> Mapping[str, str]:
    """Return the files of such a project, by name."""
    return {
        "dovetail.yaml": head("Project", "serving") + "  documents: [cluster.yaml, workloads.yaml]\n",
        "cluster.yaml": _cluster(gpus // NODE),
        "workloads.yaml": _SEPARATOR.join(_work(gpus, Random(f"serve {seed}"), load)),
    }


def a_day_later(texts: Mapping[str, str], seed: int, placement: str) -> Mapping[str, str]:
    """Return the files of such a project with other rates of some services; a Placement document says what runs."""
    rng = Random(f"a day later {seed}")
    work = [_at_another_rate(each, rng) for each in texts["workloads.yaml"].split(_SEPARATOR)]
    project = texts["dovetail.yaml"].replace("workloads.yaml]", "workloads.yaml, today.yaml]")
    return {
        **texts,
        "dovetail.yaml": project,
        "workloads.yaml": _SEPARATOR.join(work),
        "today.yaml": placement,
    }


def _at_another_rate(document: str, rng: Random) -> str:
    if not (found := _RATE.search(document)) or rng.random() >= CHANGED:
        return document
    return f"{document[: found.start(1)]}{int(int(found[1]) * rng.uniform(1 - BY, 1 + BY))}{document[found.end(1) :]}"


def _cluster(nodes: int) -> str:
    counts = [nodes * tenths // 10 for _, _, tenths, _ in GROUPS[:-1]]
    groups = zip(GROUPS, [*counts, nodes - sum(counts)], strict=True)
    return (
        head("Cluster", "serving")
        + ("  reconfiguration: gpu\n  positions: toolChosen\n  levels: [{name: rack}, {name: node}]\n  nodeGroups:\n")
        + "".join(
            f"  - name: {name}\n    count: {count}\n    accelerator: {accelerator}\n    gpus: {NODE}\n"
            f"    cpu: 128\n    memory: 1024Gi\n    domains: {{rack: {{size: {RACK}}}}}\n    pricePerHour: {price}\n"
            for (name, accelerator, _, price), count in groups
        )
    )


_Made = tuple[float, str]  # the GPUs that a workload asks for, and its document


def _work(gpus: int, rng: Random, load: float) -> Iterator[str]:
    """Yield the workloads, kind by kind up to each one's end of the load."""
    wanted, scale = gpus * load, max(1, gpus / UNIT) ** 0.5
    kinds: Sequence[tuple[float, Callable[[Random, float, int], _Made]]] = (
        (ON_INSTANCES, _on_instances),
        (ON_WHOLE, _on_whole),
        (TO_DEADLINES, _batch),
        (1, _job),
    )
    asked, number = 0.0, 0
    for end, make in kinds:
        while asked < wanted * end:
            more, text = make(rng, scale, number)
            asked, number = asked + more, number + 1
            yield text


def _on_instances(rng: Random, scale: float, number: int) -> _Made:
    gpus, base = rng.uniform(0.3, 6) * scale, rng.randint(*BASE)
    hosts = [(f"{FAST}/{profile}", slices / SLICES) for profile, slices in PROFILES.items()]
    if rng.random() < BOTH:
        hosts += [(f"{SLOW}/{profile}", HALF * slices / SLICES) for profile, slices in PROFILES.items()]
    if rng.random() < NOT_SMALLEST:
        hosts = hosts[1:]
    rates = {host: max(1, int(base * SLICES * part * rng.uniform(0.85, 1.2))) for host, part in hosts}
    priority, cores = rng.choice((HIGH, HIGH, MIDDLE)), rng.choice((1, 2, 3))
    asked = f"share: {{compute: 0.05, memory: 4Gi}}, cpu: {cores}, memory: 8Gi"
    slo = _slo(int(base * SLICES * gpus), "50ms", rates)
    return gpus, _workload(f"svc-{number:04d}", "service", priority, asked, f"  isolation: fault\n{slo}")


def _on_whole(rng: Random, scale: float, number: int) -> _Made:
    gpus, base, size = rng.uniform(2, 20) * scale, rng.randint(*BASE), rng.choice((1, 1, 2, 4))
    rates = {FAST: base * size, SLOW: int(base * size * HALF)}
    priority = rng.choice((HIGH, MIDDLE))
    slo = _slo(int(base * gpus), "500ms", rates)
    return gpus, _workload(f"llm-{number:04d}", "service", priority, _whole(size), slo)


def _batch(rng: Random, scale: float, number: int) -> _Made:
    size, replicas = _sized(rng, scale, (1, 2, 4, 8))
    hours = int(size * replicas * rng.uniform(0.4, 1.0) * 24 * DAYS)
    more = (
        f"  replicas: {replicas}\n"
        f"  accelerators: [{FAST}, {{name: {SLOW}, throughput: {BATCH_SPEED}}}]\n"
        f"  slo: {{work: {hours}h, deadline: {AS_OF + dt.timedelta(DAYS)}}}\n"
    )
    return size * replicas, _workload(f"train-{number:04d}", "job", MIDDLE, _whole(size), more)


def _job(rng: Random, scale: float, number: int) -> _Made:
    size, replicas = _sized(rng, scale, (1, 2, 4))
    return size * replicas, _workload(f"job-{number:04d}", "job", LOW, _whole(size), f"  replicas: {replicas}\n")


def _sized(rng: Random, scale: float, sizes: Sequence[int]) -> tuple[int, int]:
    """Return the GPUs of a replica, and how many replicas there are."""
    gpus, size = rng.uniform(1, 24) * scale, rng.choice(sizes)
    return size, max(1, round(gpus / size))


def _whole(gpus: int) -> str:
    return f"gpus: {gpus}, cpu: {8 * gpus}, memory: {64 * gpus}Gi"


def _slo(rate: int, p99: str, rates: Mapping[str, int]) -> str:
    listed = "".join(f"    - {{on: {host}, rate: {each}}}\n" for host, each in rates.items())
    return f"  slo:\n    rate: {rate}\n    p99: {p99}\n    performance:\n{listed}"


def _workload(name: str, kind: str, priority: int, asked: str, more: str) -> str:
    return head("Workload", name) + f"  type: {kind}\n  priority: {priority}\n  request: {{{asked}}}\n{more}"
