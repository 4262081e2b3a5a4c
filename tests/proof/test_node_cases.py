"""Cases of what one node holds: no bound that they give is below what a node can earn, whatever the prices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import pytest
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine.contents.node_search import NodeSide
from dovetail.problem import Problem, compile_problem
from dovetail.proof.certificate import Fork, Forks, Multipliers
from dovetail.proof.kinds import kinds_of
from dovetail.proof.node import Packing
from dovetail.proof.node_cases import told_apart
from dovetail.proof.sides import Side
from dovetail.proof.tree import Unproved
from dovetail.rules import context_of
from dovetail.rules.separate import Separate
from dovetail.spec import Node, WorkloadSelector

UNIT = 1000


class Item(NamedTuple):
    """What a replica asks for: GPUs or thousandths of one, cores and GiB; how many there are, and of which tenant."""

    gpus: int
    milli: int
    cores: int
    gib: int
    replicas: int
    tenant: str = "red"


def problem_of(there: Node, items: Sequence[Item]) -> Problem:
    """Return a Problem of one node, where tenants share no GPU."""
    work = [
        workload(
            f"w{number:02}",
            item.replicas,
            tenant=item.tenant,
            cpu=1000 * item.cores,
            memory=1024 * item.gib,
            **({"share": (item.milli, 64)} if item.milli else {"gpus": item.gpus}),
        )
        for number, item in enumerate(items)
    ]
    apart = policy("apart", Separate(by="tenant", at="gpu"), workloads=WorkloadSelector())
    return compile_problem(context_of(make_spec([there], work, [apart])))


def machine(rng: Random) -> tuple[Node, list[Item]]:
    gpus, cores, gib = rng.randint(1, 3), rng.randint(6, 20), rng.randint(20, 60)
    items = [
        Item(
            *rng.choice([(1, 0), (2, 0), (0, 250), (0, 400), (0, 600), (0, 0)]),
            rng.randint(1, 9),
            rng.randint(1, 25),
            rng.randint(1, 3),
            rng.choice(("red", "blue")),
        )
        for _ in range(rng.randint(1, 4))
    ]
    items.append(Item(0, 100, 1, 1, 1))  # that there is something to hold
    return node("n", gpus, cpu=1000 * cores, memory=1024 * gib), items


def packable(shares: Sequence[tuple[int, str]], gpus: int, loads: tuple[tuple[int, str], ...] = ()) -> bool:
    """Tell whether shares fit so many GPUs, each for one tenant, by trying all."""
    if not shares:
        return len(loads) <= gpus
    (milli, tenant), *others = shares
    for number, (load, owner) in enumerate(loads):
        with_it = (*loads[:number], (load + milli, owner), *loads[number + 1 :])
        if owner == tenant and load + milli <= 1000 and packable(others, gpus, with_it):
            return True
    return len(loads) < gpus and packable(others, gpus, (*loads, (milli, tenant)))


def best(there: Node, items: Sequence[Item], worth: Sequence[int], held: tuple[int, ...] = ()) -> int:
    """Return the most that the node may earn, by trying all."""
    if len(held) == len(items):
        shares = [(i.milli, i.tenant) for i, n in zip(items, held, strict=True) if i.milli for _ in range(n)]
        left = there.gpus - sum(i.gpus * n for i, n in zip(items, held, strict=True))
        fits = left >= 0 and packable(sorted(shares, reverse=True), left)
        return sum(w * n for w, n in zip(worth, held, strict=True)) if fits else 0
    item = items[len(held)]
    used = [sum(getattr(i, name) * n for i, n in zip(items, held, strict=False)) for name in ("cores", "gib")]
    room = [there.cpu // 1000 - used[0], there.memory // 1024 - used[1]]
    most = min(item.replicas, room[0] // item.cores, room[1] // item.gib)
    return max(best(there, items, worth, (*held, n)) for n in range(most + 1))


class Bench(NamedTuple):
    """One node with what it may hold, and what each replica is worth, by shape and by item."""

    packing: Packing
    side: Side
    problem: Problem
    worth: Mapping[int, int]
    earns: int


def bench(rng: Random) -> Bench:
    there, items = machine(rng)
    problem = problem_of(there, items)
    (kind,) = kinds_of(problem, {})
    by_item = [rng.randint(0, 30) * UNIT for _ in items]
    worth = {shape.index: by_item[int(shape.workload.id[1:])] for shape in problem.shapes}
    return Bench(Packing(problem, kind), kind.sides[0], problem, worth, best(there, items, by_item))


def forks(rng: Random, shapes: Sequence[int], depth: int) -> Forks:
    """Return some tree of cases with some prices."""
    if not depth or rng.random() < 0.2:
        leaf: Multipliers = {rng.randrange(12): rng.randint(0, 3) for _ in range(rng.randint(0, 3))}
        return (leaf,)
    halves = forks(rng, shapes, depth - 1) + forks(rng, shapes, depth - 1)
    return (Fork(rng.choice(shapes), rng.randint(0, 2)), *halves)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_the_cases_and_prices_no_node_earns_more(seed: int) -> None:
    rng = Random(seed)
    found = bench(rng)
    tree = forks(rng, sorted(found.worth), 4)
    assert told_apart(found.packing, found.side, tree, found.worth, 0) >= found.earns


@pytest.mark.parametrize("seed", range(100, 160))
def test_a_search_proves_what_a_node_earns(seed: int) -> None:
    """What it tells in fractions is proved in integers, and is worth what it has found."""
    found = bench(Random(seed))
    side = NodeSide(found.packing, found.side)
    worth = [found.worth[s] / UNIT for s in side.shapes.tolist()]
    outcome = side.search(np.array(worth), 0.0, 0.0, 10_000)
    tree = tuple(
        each if isinstance(each, Fork) else {d: round(price * UNIT * 1000) for d, price in each.items()}
        for each in outcome.forks
    )
    scaled = {s: 1000 * value for s, value in found.worth.items()}
    shown = told_apart(found.packing, found.side, tree, scaled, 0) / (1000 * UNIT)
    assert shown >= found.earns / UNIT
    assert shown <= outcome.most + 1e-3
    assert outcome.most <= max([0.0, *(earned for earned, _ in outcome.contents)]) + 1e-6


@pytest.mark.parametrize(
    ("tree", "match"),
    [
        ((), "end early"),
        ((Fork(0, 0), {}), "end early"),
        (({}, {}), "beyond their end"),
        ((Fork(0, 0), {}, {}, {}), "beyond their end"),
    ],
)
def test_cases_that_are_no_whole_tree_prove_nothing(tree: Forks, match: str) -> None:
    found = bench(Random(1))
    with pytest.raises(Unproved, match=match):
        told_apart(found.packing, found.side, tree, found.worth, 0)


def test_a_case_that_no_node_can_be_earns_nothing() -> None:
    found = bench(Random(2))
    never: Forks = (Fork(0, 50), {}, {})
    assert told_apart(found.packing, found.side, never, found.worth, 0) == told_apart(
        found.packing, found.side, ({},), found.worth, 0
    )
    assert told_apart(found.packing, found.side, (Fork(999, 0), {}, {}), found.worth, 0) >= found.earns
