"""Classes of CPU, memory and resources: what fits a node fits its classes, and what fills it fills one of them."""

from __future__ import annotations

from itertools import pairwise, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle.brute import brute
from tests.support.bounds import bound_by_kinds
from tests.support.specs import make_spec, node, request, role, workload

from dovetail.engine import solve
from dovetail.problem import compile_problem
from dovetail.proof.kinds import dimensions, kinds_of
from dovetail.rules import context_of
from dovetail.spec import Spec

CLASSES = {k: k * (k + 1) for k in range(1, 9)}

Content = tuple[int, list[int]]  # a capacity, and amounts that fit it together


@st.composite
def contents(draw: st.DrawFn) -> Content:
    """Return a capacity and some of the pieces that it is cut into, at equal parts of it or anywhere."""
    parts = draw(st.integers(1, 12))
    size = draw(st.integers(1, 50))
    points = st.integers(0, parts * size) | st.integers(0, parts).map(lambda i: i * size)
    cuts = sorted({0, parts * size, *draw(st.lists(points, max_size=10))})
    pieces = [more - less for less, more in pairwise(cuts)]
    return parts * size, [piece for piece in pieces if draw(st.integers(0, 3))]


def taken(cpu: Content, memory: Content, disk: Content) -> list[tuple[int, int]]:
    """Return each dimension's capacity, and how much of it replicas take that together have these amounts."""
    there = node("n", 0, cpu=cpu[0], memory=memory[0], resources={"disk": disk[0]})
    amounts = zip_longest(cpu[1], memory[1], disk[1], fillvalue=0)
    work = [
        workload(f"w{i}", cpu=c, memory=m, resources={"disk": d} if d else {}) for i, (c, m, d) in enumerate(amounts)
    ]
    problem = compile_problem(context_of(make_spec([there], work)))
    return [
        (capacity, sum(amount * problem.shapes[s].demand for s, amount in each.items()))
        for kind in kinds_of(problem, {})
        for capacity, each, _ in dimensions(problem, kind)
    ]


@given(contents(), contents(), contents())
def test_what_fits_a_node_fits_all_of_its_classes(cpu: Content, memory: Content, disk: Content) -> None:
    for capacity, total in taken(cpu, memory, disk):
        assert total <= capacity


@given(contents())
def test_a_capacity_is_followed_by_its_classes(cpu: Content) -> None:
    capacity, amounts = cpu
    found = taken(cpu, (1, []), (1, []))
    told = [capacity] + [k * (k + 1) for k in CLASSES if any((k + 1) * amount >= capacity for amount in amounts)]
    assert [each for each, _ in found] == (told if amounts else [])
    assert not amounts or found[0] == (capacity, sum(amounts))


@pytest.mark.parametrize("k", CLASSES)
@given(st.integers(1, 10_000), st.data())
def test_parts_of_a_node_that_fill_it_fill_their_class(k: int, size: int, data: st.DataObject) -> None:
    parts: list[int] = []
    while sum(parts) < k + 1:
        parts.append(data.draw(st.integers(1, k + 1 - sum(parts))))
    assert (CLASSES[k], CLASSES[k]) in taken(((k + 1) * size, [part * size for part in parts]), (1, []), (1, []))


def thirds(nodes: int) -> Spec:
    """Return nodes of 96 cores, and for each jobs that are alone on it: one of 66 cores, two of 33, three of 32."""
    sizes = {"large": (66_000, 1, 3000), "middle": (33_000, 2, 1500), "small": (32_000, 3, 1000)}
    return make_spec(
        [node(f"n{i}", 4, cpu=96_000) for i in range(nodes)],
        [
            workload(name, roles=[role("", count * nodes, request(1, cpu=cpu), value=value)])
            for name, (cpu, count, value) in sizes.items()
        ],
    )


def test_a_third_to_the_last_core_has_no_room_beside_larger_ones() -> None:
    optimum = brute(thirds(1))
    assert optimum is not None
    assert bound_by_kinds(thirds(1))[0] == optimum.values[0] == 3000


@pytest.mark.parametrize("nodes", [2, 5])
def test_a_fleet_of_thirds_is_bounded_by_what_the_exact_engine_finds(nodes: int) -> None:
    tier = solve(thirds(nodes)).tiers[0]
    assert bound_by_kinds(thirds(nodes))[0] == tier.value == tier.bound == 3000 * nodes
