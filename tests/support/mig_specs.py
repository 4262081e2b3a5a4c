"""Tiny random Specs with MIG: A30 and A100 GPUs, green field and brown field, for brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from dovetail.catalogue import load
from dovetail.mig import Geometry, layouts
from dovetail.spec import (
    Accelerator,
    Cluster,
    Current,
    Layout,
    Node,
    PresentReplica,
    ReplicaId,
    Request,
    Role,
    Share,
    Spec,
    Workload,
)
from dovetail.spec.cluster import Positions, Unit
from dovetail.spec.workload import ShareMode

PRODUCTS = ("A30-24GB", "A100-80GB")


def card(name: str) -> Accelerator:
    """Return an accelerator of the catalogue."""
    entry = load()[name]
    return Accelerator(entry.id, entry.memory_mib, mig=entry.mig)


def mig_request(product: str, profile: str, cpu: int = 0) -> Request:
    """Return a request for a profile, with what it counts for on a product."""
    geometry = card(product).mig
    assert geometry is not None
    one = geometry.by_name[profile]
    return Request(mig=profile, mig_milli=max(one.milli, 1000 * one.size // geometry.axis), cpu=cpu)


def tiny_mig(seed: int) -> Spec:
    """Return a Spec of one or two nodes with few GPUs and few replicas that ask for parts of them."""
    draw = Random(seed)
    product = draw.choice(PRODUCTS)
    cards = {product: card(product)}
    geometry = cards[product].mig
    assert geometry is not None
    unit: Unit | None = draw.choice([None, "gpu", "node", "instance"])
    nodes = tuple(_node(draw, f"n{i}", product) for i in range(draw.choice([1, 1, 2])))
    present = _present(draw, geometry, nodes) if draw.random() < 0.6 else {}
    workloads, running = _workloads(draw, geometry, product, unit, nodes, present)
    cluster = Cluster(
        "tiny",
        ("node",),
        nodes,
        reconfiguration=unit,
        positions=draw.choice(["enforced", "enforced", "toolChosen"]),
    )
    return Spec(
        "tiny",
        cluster,
        cards,
        tuple(sorted(workloads, key=lambda w: w.id)),
        current=Current(tuple(sorted(running, key=lambda each: each.replica)), gpus=present),
    )


def _node(draw: Random, name: str, product: str) -> Node:
    return Node(
        name,
        "g",
        cpu=draw.choice([4, 100]),
        memory=1000,
        gpus=draw.choice([1, 2]),
        accelerator=product,
        mechanism=draw.choice(["devicePlugin", "fraction"]),
        price=draw.choice([0, 5]),
        gpu_price=draw.choice([0, 3]),
    )


def _present(draw: Random, geometry: Geometry, nodes: tuple[Node, ...]) -> dict[str, Layout]:
    options = [layout for layout in layouts(geometry) if all("+" not in one.profile for one in layout)]
    found = {}
    for node in nodes:
        for index in range(node.gpus):
            if draw.random() < 0.7:
                found[f"{node.name}/{index}"] = draw.choice(options)
    return found


def _workloads(
    draw: Random,
    geometry: Geometry,
    product: str,
    unit: str | None,
    nodes: tuple[Node, ...],
    present: dict[str, Layout],
) -> tuple[list[Workload], list[PresentReplica]]:
    running: list[PresentReplica] = []
    workloads: list[Workload] = []
    taken = [(gpu, instance) for gpu, layout in present.items() for instance in layout if draw.random() < 0.5][:3]
    for position, (gpu, instance) in enumerate(taken):
        node, _, index = gpu.rpartition("/")
        own = f"run-{position}"
        running.append(PresentReplica(ReplicaId(own, "", 0), node, (int(index),), str(instance)))
        request = mig_request(product, instance.profile)
        workloads.append(_workload(draw, own, request, 1))
    for position in range(draw.choice([1, 2, 2])):
        request = draw.choice(list(_requests(draw, geometry, product, unit)))
        workloads.append(_workload(draw, f"new-{position}", request, draw.choice([1, 1, 2])))
    return workloads, running


def _requests(draw: Random, geometry: Geometry, product: str, unit: str | None) -> Iterator[Request]:
    names = [profile.name for profile in geometry.profiles]
    for _ in range(3):
        yield mig_request(product, draw.choice(names), cpu=draw.choice([0, 2]))
    yield Request(gpus=1)
    modes: tuple[ShareMode, ...] = draw.choice([("mig",), ("fraction", "mig") if unit else ("fraction",)])
    memory = draw.choice([None, 3000, 9000, 30000])
    yield Request(share=Share(draw.choice([100, 250, 400]), memory, draw.choice([0, 500]), modes))


def _workload(draw: Random, name: str, request: Request, replicas: int) -> Workload:
    role = Role("", replicas, request, request.gpu_milli)
    return Workload(
        name,
        "",
        name,
        "job",
        (role,),
        priority=draw.choice([0, 0, 1]),
        min_replicas=draw.choice([0, 0, replicas]),
        movable=draw.random() < 0.8,
        preemptible=draw.random() < 0.3,
        restart=60_000,
    )


def full_mig(seed: int) -> Spec:
    """Return a Spec of a few nodes nearly full of instances, and work that needs larger ones or whole GPUs."""
    draw = Random(f"full {seed}")
    product = draw.choice(PRODUCTS)
    cards = {product: card(product)}
    geometry = cards[product].mig
    assert geometry is not None
    options = [own for own in layouts(geometry) if own and all("+" not in one.profile for one in own)]
    nodes = tuple(
        replace(_node(draw, f"n{i}", product), cpu=draw.choice([6, 12, 100])) for i in range(draw.choice((2, 3)))
    )
    present, running = dict[str, Layout](), list[PresentReplica]()
    counts, requests = Counter[str](), dict[str, Request]()
    for node in nodes:
        left = node.cpu
        for gpu in range(node.gpus):
            places: tuple[str, ...] = ("",)
            if draw.random() < 0.85:
                layout = present[f"{node.name}/{gpu}"] = draw.choice(options)
                places = tuple(str(one) for one in layout if draw.random() < 0.75)
            for instance in places[:left]:
                profile = instance.partition("@")[0]
                name = f"{draw.choice('ab')}-{profile.replace('.', '-')}" if profile else "whole"
                requests[name] = mig_request(product, profile, cpu=1) if profile else Request(gpus=1, cpu=1)
                running.append(PresentReplica(ReplicaId(name, "", counts[name]), node.name, (gpu,), instance))
                counts[name] += 1
            left -= len(places[:left])
    workloads = [_workload(draw, name, requests[name], n + draw.choice((0, 0, 1))) for name, n in counts.items()]
    for position in range(draw.choice((1, 2))):
        profile = draw.choice([one.name for one in geometry.profiles if "+" not in one.name])
        asked = draw.choice((Request(gpus=draw.choice((1, 2)), cpu=1), *(mig_request(product, profile, cpu=1),) * 2))
        workloads.append(_workload(draw, f"new-{position}", asked, draw.choice((1, 2))))
    unit: Unit | None = draw.choice((None, "gpu", "node", "instance"))
    positions: Positions = draw.choice(("enforced", "toolChosen"))
    return Spec(
        "full",
        Cluster("full", ("node",), nodes, reconfiguration=unit, positions=positions),
        cards,
        tuple(sorted((replace(w, min_replicas=0) for w in workloads), key=lambda w: w.id)),
        current=Current(tuple(sorted(running, key=lambda each: each.replica)), gpus=present),
    )
