"""Islands and sockets split classes and counts for those alone who ask, and keep off what is too large for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.specs import make_spec, node, request, role, workload
from tests.support.tiny_insides import asking

from dovetail.model.part import PartModel
from dovetail.model.state import State
from dovetail.problem import Problem, compile_problem
from dovetail.rules import context_of
from dovetail.spec import Spec, Topology, Workload

HALVES = ((0, 1), (2, 3))


def spec_of(*works: Workload) -> Spec:
    """Return a plain node, one with islands, and one with sockets."""
    nodes = [node("plain", 4), node("islands", 4, islands=HALVES), node("sockets", 4, sockets=HALVES)]
    return make_spec(nodes, works)


def compiled(*works: Workload) -> Problem:
    return compile_problem(context_of(spec_of(*works)))


def asks(gpus: int, topology: Topology | None = None) -> Workload:
    return workload("w", roles=[asking(role("", 1, request(gpus)), topology)], topology=topology)


@pytest.mark.parametrize(
    ("work", "classes"),
    [
        (asks(1), [("islands", "plain", "sockets")]),
        (asks(2), [("plain", "sockets"), ("islands",)]),
        (asks(2, Topology(across=True)), [("islands", "plain", "sockets")]),
        (asks(2, Topology(within="socket", across=True)), [("islands", "plain"), ("sockets",)]),
        (asks(1, Topology(prefer="socket")), [("islands", "plain"), ("sockets",)]),
    ],
)
def test_classes_split_where_somebody_asks(work: Workload, classes: list[tuple[str, ...]]) -> None:
    problem = compiled(work)
    told = [tuple(problem.nodes[index].name for index in each.nodes) for each in problem.classes]
    assert sorted(told) == sorted(classes)


@pytest.mark.parametrize(("gpus", "hosts"), [(2, 3), (3, 2), (4, 2)])
def test_a_replica_needs_an_island_that_is_large_enough(gpus: int, hosts: int) -> None:
    problem = compiled(asks(gpus))
    assert (
        sum(0 in hosted for each in problem.classes for hosted in [problem.hosted[each.index]] * len(each.nodes))
        == hosts
    )


def test_a_failed_gpu_makes_its_island_smaller() -> None:
    spec = spec_of(asks(2))
    nodes = [replace(spec.cluster.by_name["islands"], failed_gpus=frozenset({0, 2}))]
    problem = compile_problem(context_of(make_spec(nodes, [asks(2)])))
    assert problem.hosted == ((),)


def test_counts_are_per_island_only_where_replicas_keep_within_one() -> None:
    problem = compiled(asks(2))
    part = PartModel(problem, range(3), State())
    blocks = {problem.nodes[i].name: [slot.block for slot in slots] for i, slots in part.variables.slots.items()}
    assert blocks == {"plain": [0], "islands": [0b0011, 0b1100], "sockets": [0]}
