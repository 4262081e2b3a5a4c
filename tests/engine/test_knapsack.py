"""Pricing of one node with whole GPUs: what fills it to the last core is found, and little is lost elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import pytest
from tests.support.specs import make_spec, node, workload

from dovetail.engine.contents.knapsack import Knapsack
from dovetail.engine.contents.patterns import counts_of
from dovetail.engine.contents.width import NARROW, WIDE, Width
from dovetail.problem import compile_problem
from dovetail.proof.kinds import kinds_of
from dovetail.rules import context_of
from dovetail.spec import Node

ALMOST = 1e-6


class Item(NamedTuple):
    """What a replica asks for, in GPUs, cores and GiB, what it earns, and how many there are."""

    gpus: int
    cores: int
    worth: float
    gib: int = 8
    replicas: int = 6


def machine(gpus: int, cores: int, gib: int = 768) -> Node:
    return node("n", gpus, cpu=1000 * cores, memory=1024 * gib)


def priced(there: Node, items: Sequence[Item], width: Width = WIDE) -> tuple[float, dict[int, int]]:
    """Return what the best content found for a node earns, and how many of each item it has."""
    work = [
        workload(f"w{i:02}", item.replicas, gpus=item.gpus, cpu=1000 * item.cores, memory=1024 * item.gib)
        for i, item in enumerate(items)
    ]
    problem = compile_problem(context_of(make_spec([there], work)))
    (kind,) = kinds_of(problem, {})
    item_of = {shape.index: int(shape.workload.id[1:]) for shape in problem.shapes}
    prices = {s: items[i].worth for s, i in item_of.items()}
    value, pattern = Knapsack(problem, kind, kind.sides[0]).price(prices, width=width)[0]
    return value, {item_of[s]: count for s, count in counts_of(pattern).items()}


def best(gpus: int, cores: int, gib: int, items: Sequence[Item]) -> float:
    """Return the most that a node may earn, by trying all."""
    if not items:
        return 0.0
    item, *others = items
    most = min(item.replicas, gpus // item.gpus, cores // item.cores, gib // item.gib)
    return max(
        n * item.worth + best(gpus - n * item.gpus, cores - n * item.cores, gib - n * item.gib, others)
        for n in range(most + 1)
    )


def test_three_thirds_of_a_node_are_found_beside_what_earns_more_of_a_gpu() -> None:
    items = [Item(1, 36, 12.0), Item(1, 32, 10.0), Item(1, 64, 4.0)]
    assert priced(machine(4, 96), items) == (30.0, {1: 3})


@pytest.mark.parametrize("place", range(4))
def test_two_halves_of_a_node_are_found_beside_items_of_one_gpu(place: int) -> None:
    items = [Item(1, 36, 7.0), Item(1, 12, 5.0), Item(1, 4, 4.0)]
    items.insert(place, Item(2, 96, 20.0))
    assert priced(machine(4, 192), items) == (40.0, {place: 2})


def some(rng: Random) -> tuple[tuple[int, int, int], list[Item]]:
    """Return a node and items as fleets have them: cores in parts of nodes, worth by GPUs and a little by cores."""
    gpus, cores = rng.choice(((2, 96), (4, 96), (4, 192), (8, 96), (8, 192)))
    items = {}  # one of each that asks for the same
    for _ in range(rng.randint(5, 12)):
        size, taken = rng.choice((1, 1, 1, 2, 2, 4)), rng.choice((4, 8, 11, 12, 16, 24, 32, 32, 48, 64, 96))
        worth = size * rng.uniform(0.5, 1.5) + taken / cores * gpus * rng.uniform(0.2, 1.0)
        gib, replicas = rng.choice((16, 32, 64, 128, 256)), rng.randint(1, 6)
        items[size, taken, gib] = Item(size, taken, round(worth, 3), gib, replicas)
    return (gpus, cores, 768), list(items.values())


def test_on_random_nodes_most_is_the_best_and_all_is_close() -> None:
    shares = []
    for seed in range(60):
        room, items = some(Random(seed))
        found, most = priced(machine(*room), items)[0], best(*room, items)
        assert found <= most + ALMOST
        shares.append(found / most)
    assert min(shares) >= 0.97
    assert sum(share > 1 - ALMOST for share in shares) >= 55


def test_of_items_that_are_there_once_most_nodes_get_the_best_even_where_little_is_tried() -> None:
    shares = []
    for seed in range(20):
        rng = Random(seed)
        sizes = {(rng.choice((1, 1, 1, 2)), rng.randint(8, 24)) for _ in range(14)}
        items = [Item(size, cores, round(rng.uniform(8.0, 12.0), 3), 64, 1) for size, cores in sorted(sizes)]
        found, most = priced(machine(8, 128), items, NARROW)[0], best(8, 128, 768, items)
        assert found <= most + ALMOST
        shares.append(found / most)
    assert min(shares) >= 0.99
    assert sum(share > 1 - ALMOST for share in shares) >= 19


def test_shares_that_are_there_once_fill_gpu_after_gpu() -> None:
    lost = []
    for seed in range(10):
        rng = Random(seed)
        parts = [part for _ in range(8) for part in split(rng)]
        work = [workload(f"w{i:02}", share=part, cpu=1000, memory=1024) for i, part in enumerate(parts)]
        problem = compile_problem(context_of(make_spec([node("n", 8)], work)))
        (kind,) = kinds_of(problem, {})
        prices = {shape.index: float(shape.request.gpu_milli) for shape in problem.shapes}
        value, pattern = Knapsack(problem, kind, kind.sides[0]).price(prices, width=NARROW)[0]
        assert all(count <= problem.shapes[s].demand for s, count in counts_of(pattern).items())
        lost.append(1 - value / 8000)
    assert max(lost) <= 0.05


def split(rng: Random) -> tuple[int, int, int]:
    """Return three shares that fill a GPU."""
    one = rng.randrange(100, 500)
    two = rng.randrange(100, 900 - one)
    return one, two, 1000 - one - two
