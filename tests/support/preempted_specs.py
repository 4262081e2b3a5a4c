"""Random small clusters that are nearly full of work that may give way, and work of higher priority that waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from tests.support.specs import CARD, make_spec, node, place, policy, workload

from dovetail.placement import Place
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.separate import Separate
from dovetail.rules.spread import Spread
from dovetail.spec import Node, Policy, Spec, Topology, Workload, WorkloadSelector

_Ran = tuple[Workload, dict[str, Place]]


def preempted(rng: Random) -> Spec:
    """Return such a Spec."""
    nodes = [
        node(
            f"n{index}",
            rng.choice((2, 4, 4)),
            cpu=rng.choice((20_000, 40_000)),
            accelerator=rng.choice((CARD, CARD, CARD, "L4")),
            domains={"rack": "rs"[index % 2]},
        )
        for index in range(rng.randint(3, 6))
    ]
    ganged = rng.sample(nodes, 2) if len(nodes) > 3 and rng.random() < 0.6 else []
    ran = [each for host in nodes if host not in ganged for each in _on(host, rng)]
    if ganged:
        ran.append(_gang(ganged, rng))
    work = [own for own, _ in ran] + [_new(f"new{index}", rng) for index in range(rng.randint(1, 3))]
    where = {replica: spot for _, places in ran for replica, spot in places.items()}
    return make_spec(nodes, work, list(_policies(rng)), running=where)


def _more(rng: Random) -> dict[str, Any]:
    return {
        "priority": rng.choice((100, 300, 500)),
        "preemptible": rng.random() < 0.7,
        "movable": rng.random() < 0.8,
        "tenant": rng.choice("xy"),
        "checkpoint_every": rng.choice((None, 600_000, 3_600_000)),
    }


def _on(host: Node, rng: Random) -> Iterator[_Ran]:
    """Yield what runs on a node: shares of some of its GPUs, jobs on others."""
    gpu = 0
    while gpu < host.gpus:
        name = f"{host.name}-{gpu}"
        if rng.random() < 0.1:
            gpu += 1
        elif rng.random() < 0.25:
            size = rng.choice((200, 300, 500))
            count = rng.randint(1, 1000 // size)
            least = rng.choice((1, 1, count))
            own = workload(name, count + rng.choice((0, 0, 1)), share=size, cpu=500, min_replicas=least, **_more(rng))
            yield own, {f"{name}#{ordinal}": place(host.name, gpu) for ordinal in range(count)}
            gpu += 1
        else:
            size = min(rng.choice((1, 1, 2, 4)), host.gpus - gpu)
            own = workload(name, 1, gpus=size, cpu=rng.choice((1000, 4000)), **_more(rng))
            yield own, {f"{name}#0": place(host.name, *range(gpu, gpu + size))}
            gpu += size


def _gang(hosts: list[Node], rng: Random) -> _Ran:
    """Return a gang on all of some nodes; one of three is elastic, and on two nodes as on one."""
    size = min(host.gpus for host in hosts)
    more = {**_more(rng), "movable": rng.random() < 0.5}
    own = workload("gang", len(hosts), type="gang", gpus=size, **more)
    if rng.random() < 0.3:
        own = _elastic(own, len(hosts) + 1, 1)
    return own, {f"gang#{i}": place(host.name, *range(size)) for i, host in enumerate(hosts)}


def _elastic(gang: Workload, most: int, least: int) -> Workload:
    only = gang.roles[0]
    return replace(gang, roles=(replace(only, replicas=most, least=least),), min_replicas=least)


def _new(name: str, rng: Random) -> Workload:
    more: dict[str, Any] = {"priority": rng.choice((300, 500, 900, 900)), "tenant": rng.choice("xy")}
    kind = rng.choice(("gang", "gang", "job", "job", "share", "service"))
    if kind == "gang":
        topology = Topology(within="rack") if rng.random() < 0.4 else None
        gpus, cpu = rng.choice((1, 2, 2, 4)), rng.choice((1000, 8000))
        gang = workload(name, rng.randint(2, 3), type="gang", gpus=gpus, cpu=cpu, topology=topology, **more)
        return _elastic(gang, gang.replicas + 1, 2) if rng.random() < 0.3 else gang
    if kind == "share":
        return workload(name, rng.randint(1, 3), share=rng.choice((300, 600, 900)), **more)
    if kind == "service":
        return workload(name, 3, type="service", gpus=rng.choice((1, 2)), min_replicas=2, **more)
    accepted = rng.choice(((), (), (CARD,)))
    return workload(name, rng.randint(1, 3), gpus=rng.choice((1, 2, 2, 4)), accelerators=accepted, **more)


def _policies(rng: Random) -> Iterator[Policy]:
    if rng.random() < 0.25:
        yield policy("apart", Separate(by="tenant", at=rng.choice(("gpu", "node"))))
    if rng.random() < 0.2:
        yield policy("calm", Move(max_moves=rng.randint(0, 4)))
    if rng.random() < 0.25:
        few = Spread(over="rack", max_per_domain=2)
        yield policy("few", few, workloads=WorkloadSelector(names=("new0",)))
    if rng.random() < 0.3:
        yield policy("less", Quota((("gpus", rng.randint(3, 9) * 1000),), "tenant"))
