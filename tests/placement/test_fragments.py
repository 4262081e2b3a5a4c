"""The fragmentation measure, beside its published definition written down once more."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from dovetail.catalogue import geometries
from dovetail.mig import Instance
from dovetail.placement import Room
from dovetail.placement.fragments import Fragments, Judge, expected_of
from dovetail.spec import Accelerator, Cluster, Expected, Node, Request, Role, Share, Spec, Workload

CARDS = {"A": Accelerator("A", 80_000), "B": Accelerator("B", 80_000)}
GEOMETRY = geometries()["A100-80GB"]
CUT = {"A100-80GB": Accelerator("A100-80GB", 81_920, mig=GEOMETRY)}


def node(gpus: int = 4, cpu: int = 8_000, accelerator: str = "A") -> Node:
    return Node("n", "g", cpu, 8_000, gpus, accelerator, mechanism="fraction")


def wants(
    *, gpus: int = 0, compute: int = 0, mig: str = "", cpu: int = 0, on: Sequence[str] = (), weight: int = 1
) -> Expected:
    share = Share(compute, memory=0) if compute else None
    return Expected(Request(cpu=cpu, gpus=gpus, share=share, mig=mig), tuple(on), weight)


def by_definition(room: Room, expected: Sequence[Expected]) -> int:
    """Return F times the weights, by the three cases of the publication."""
    total = 0
    for one in expected:
        g = one.request.share.compute if one.request.share else 1000
        fits = [r for r in room.compute if r >= g]
        every = sum(room.compute)
        allowed = not one.accelerators or room.node.accelerator in one.accelerators
        if not allowed or len(fits) < max(1, one.request.gpus) or room.cpu < one.request.cpu:
            total += one.weight * every
        else:
            total += one.weight * sum(r for r in room.compute if r < g)
    return total


@pytest.mark.parametrize("seed", range(60))
def test_the_measure_is_that_of_the_publication(seed: int) -> None:
    rng = Random(seed)
    room = Room(node(rng.randint(1, 8), accelerator=rng.choice("AB")), CARDS)
    for index in range(len(room.compute)):
        if rng.random() < 0.7:
            part = Request(share=Share(rng.choice([100, 250, 500, 900]), memory=0), cpu=rng.choice([0, 500, 1500]))
            if room.lacks(part, (index,)) is None:
                room.take(part, (index,))
    expected = [
        wants(
            compute=rng.choice([0, 100, 300, 750]) or 50, cpu=rng.choice([0, 1000, 7000]), weight=rng.randint(1, 5)
        ),
        wants(gpus=rng.randint(1, 4), cpu=rng.choice([0, 2000]), on=rng.choice(["", "A", "B"]), weight=2),
    ]
    found = Judge(tuple(expected), CARDS).of_room(room)
    assert found.amount == by_definition(room, expected)
    assert found.idle == sum(one.weight for one in expected) * sum(room.compute)


def of(room: Room, one: Expected, cards: dict[str, Accelerator] = CARDS) -> Fragments:
    return Judge((one,), cards).of_room(room)


def test_each_cause_is_told() -> None:
    room = Room(node(gpus=2, cpu=1_000), CARDS)
    room.take(Request(share=Share(400, memory=0)), (0,))
    assert of(room, wants(compute=500)) == Fragments(1600, 0, 0, 0)
    assert of(room, wants(compute=700)) == Fragments(1600, deficient=600)
    assert of(room, wants(gpus=2)) == Fragments(1600, deficient=600, stranded=1000)
    assert of(room, wants(compute=500, cpu=2_000)) == Fragments(1600, stranded=1600)
    assert of(room, wants(compute=500, on=["B"])) == Fragments(1600, stranded=1600)


def cut(*texts: Instance) -> Room:
    """Return the room of a node with one GPU whose instances are in use."""
    room = Room(Node("n", "g", 8_000, 8_000, 1, "A100-80GB"), CUT)
    for one in texts:
        room.take(Request(mig=one.profile), (0,), str(one))
    return room


def test_instances_in_use_block_by_count_or_by_position() -> None:
    free = 1000 - 2 * GEOMETRY.by_name["1g.10gb"].milli
    apart = cut(Instance("1g.10gb", 0), Instance("1g.10gb", 4))
    together = cut(Instance("1g.10gb", 5), Instance("1g.10gb", 6))
    wanted = wants(mig="3g.40gb")
    assert of(apart, wanted, CUT) == Fragments(free, blocked=free)
    assert of(together, wanted, CUT) == Fragments(free)
    assert of(together, wants(mig="7g.80gb"), CUT) == Fragments(free, deficient=free)
    assert of(together, wants(gpus=1), CUT) == Fragments(free, deficient=free)
    assert of(cut(), wants(mig="7g.80gb"), CUT) == Fragments(1000)


def spec(*workloads: Workload) -> Spec:
    return Spec("s", Cluster("c", ("node",), (node(),)), CARDS, workloads)


def test_by_default_the_projects_own_gpu_work_is_expected_by_replicas() -> None:
    def job(name: str, request: Request, replicas: int) -> Workload:
        return Workload(name, "", name, "job", roles=(Role("", replicas, request, 1),))

    found = expected_of(
        spec(
            job("a", Request(gpus=1, memory=100), 3),
            job("b", Request(gpus=1, memory=500), 4),
            job("c", Request(cpu=100), 9),
            job("d", Request(gpus=2), 1),
        )
    )
    assert sorted((one.request.gpus, one.weight) for one in found) == [(1, 7), (2, 1)]


def test_nodes_that_take_nothing_new_do_not_count() -> None:
    from dataclasses import replace

    from dovetail.placement import View

    base = spec()
    judge = Judge((wants(gpus=8),), CARDS)
    assert judge.of_view(View(base, {})).amount == 4000
    shut = replace(base, cluster=Cluster("c", ("node",), (replace(node(), cordoned=True),)))
    assert judge.of_view(View(shut, {})) == Fragments()
