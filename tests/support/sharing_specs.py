"""Tiny random Specs about GPUs that are shared by equal parts: whole, MPS, time-slicing, on few nodes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.support.specs import CARDS, make_spec, node, request, role, workload

from dovetail.placement import Place, Room, obstacle
from dovetail.spec import EqualParts, Node, Objective, Setting, Share, Spec, Workload
from dovetail.spec.cluster import SharedMode
from dovetail.spec.objective import DEFAULT_TIERS

_BARRED: tuple[tuple[SharedMode, ...], ...] = ((), (), (), ("time-slice",), ("mps",), ("mps", "whole"), ("whole",))


def tiny_sharing(seed: int) -> Spec:
    """Return the tiny Spec of a seed."""
    rng = Random(f"sharing {seed}")
    nodes = [_node(rng, f"n{index}") for index in range(rng.choice((1, 1, 1, 2)))]
    work = [_work(rng, f"{rng.choice(('red', 'blue'))}/w{index}") for index in range(rng.choice((2, 2, 3, 3)))]
    running = _running(rng, nodes, work) if rng.random() < 0.6 else {}
    objective = Objective() if rng.random() < 0.7 else Objective(tiers=(*DEFAULT_TIERS[:-2], "cost"))
    elapsed = {w.id: 3_600_000 for w in work if rng.random() < 0.4}
    spec = make_spec(nodes, work, objective=objective, running=running, elapsed=elapsed)
    return replace(spec, current=replace(spec.current, settings=_told(rng, spec))) if running else spec


def _node(rng: Random, name: str) -> Node:
    sharing = EqualParts(
        mps=rng.choice((48, 48, 3, 2, 0)),
        time_slicing=rng.choice((1000, 1000, 4, 2, 0)),
        parts=rng.choice((None, None, None, None, 2, 3)),
        oversubscription=rng.choice((1000, 1000, 1000, 1500, 2000)),
    )
    return node(
        name,
        rng.choice((1, 2, 2, 3)),
        cpu=rng.choice((4000, 16_000)),
        mechanism=rng.choice(("devicePlugin",) * 6 + ("dra", "dra", "fraction")),
        sharing=sharing,
        accelerator=rng.choice(tuple(CARDS)),
        price=rng.choice((0, 1_000_000)),
        gpu_price=rng.choice((0, 500_000)),
        failed_gpus=frozenset({0}) if rng.random() < 0.05 else frozenset(),
    )


def _work(rng: Random, name: str) -> Workload:
    if rng.random() < 0.25:
        asked = request(rng.choice((1, 1, 2)), cpu=500)
    else:
        memory = rng.choice((None, None, None, 5_000, 12_000, 25_000))
        compute = rng.choice((100, 200, 250, 300, 330, 500, 600))
        asked = replace(request(cpu=500), share=Share(compute, memory, barred=rng.choice(_BARRED)))
    kind = rng.choice(("job", "job", "service", "gang"))
    own = role("", rng.choice((1, 1, 2, 2, 3)), asked)
    return workload(
        name,
        type=kind,
        roles=[own],
        priority=rng.choice((0, 0, 0, 100)),
        preemptible=rng.random() < 0.2,
        movable=rng.random() < 0.8,
        restart=rng.choice((0, 60_000)),
    )


def _running(rng: Random, nodes: list[Node], work: list[Workload]) -> dict[str, Place]:
    rooms = {n.name: Room(n, CARDS) for n in nodes}
    rows = {}
    for w in rng.sample(work, rng.randint(1, len(work))):
        for replica in w.replica_ids():
            for n in rng.sample(nodes, len(nodes)):
                asked, healthy = w.roles[0].request, list(n.healthy_gpus())
                if len(healthy) < asked.gpu_count or obstacle(w, w.roles[0], n, CARDS) is not None:
                    continue
                gpus = tuple(sorted(rng.sample(healthy, asked.gpu_count)))
                if rooms[n.name].lacks(asked, gpus) is None:
                    rooms[n.name].take(asked, gpus)
                    rows[str(replica)] = Place(n.name, gpus)
                    break
    return rows


def _told(rng: Random, spec: Spec) -> dict[str, Setting]:
    """Return how shared GPUs are set today, now and then with more clients than there are, or otherwise."""
    found: dict[str, Setting] = {}
    for n in spec.cluster.nodes:
        if n.gpus and n.mechanism != "fraction" and rng.random() < 0.6:
            settings = [Setting(rng.choice(("mps", "time-slice")), rng.choice((2, 2, 3, 4))) for _ in range(n.gpus)]
            alike = n.mechanism == "devicePlugin"
            told = range(n.gpus) if alike or rng.random() < 0.5 else range(1)
            found |= {f"{n.name}/{gpu}": settings[0 if alike else gpu] for gpu in told}
    return found
