"""The baselines do what their docstrings say, on cases small enough to follow by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks import baselines
from benchmarks.baselines import Fleet, Node, Pod, best_fit, fgd, first_fit_decreasing, popular_classes

ALL = (first_fit_decreasing, best_fit, fgd)


def node(name: str, gpus: int = 2, cpu: int = 8000, model: str = "T4") -> Node:
    return Node(name, cpu, 1024, gpus, model)


def pod(name: str, gpus: int = 1, milli: int = 1000, cpu: int = 1000, *models: str) -> Pod:
    return Pod(name, cpu, 1, gpus, milli if gpus else 0, frozenset(models))


def where(fleet: Fleet) -> dict[str, tuple[int, tuple[int, ...]]]:
    return {each.name: (index, gpus) for each, index, gpus in fleet.placed}


def test_first_fit_decreasing_takes_the_largest_first_and_the_first_place() -> None:
    pods = [pod("cpu", 0), pod("half", 1, 500), pod("two", 2), pod("one")]
    fleet = first_fit_decreasing([node("a"), node("b")], pods)
    assert where(fleet) == {"two": (0, (0, 1)), "one": (1, (0,)), "half": (1, (1,)), "cpu": (0, ())}
    assert [each.name for each, _, _ in fleet.placed] == ["two", "one", "half", "cpu"]


def test_best_fit_takes_the_node_and_the_gpu_with_least_left() -> None:
    pods = [pod("one"), pod("small", 1, 300), pod("large", 1, 600), pod("fits", 1, 350)]
    fleet = best_fit([node("a", 4), node("b", 3)], pods)
    assert where(fleet) == {"one": (1, (0,)), "small": (1, (1,)), "large": (1, (1,)), "fits": (1, (2,))}


def test_fgd_keeps_whole_gpus_whole() -> None:
    pods = [pod("half", 1, 500), *(pod(f"two-{i}", 2) for i in range(3)), pod("other", 1, 500)]
    found = where(fgd([node("a", 3), node("b", 2), node("c", 2)], pods))
    assert found["half"][0] == 0
    assert found["other"] == found["half"]
    assert len(found) == len(pods)


@pytest.mark.parametrize("policy", ALL)
def test_pods_go_only_where_they_fit_and_are_dropped_elsewhere(policy: object) -> None:
    pods = [pod("model", 1, 1000, 1000, "V100"), pod("wide", 3), pod("hungry", 0, 0, 9000), pod("fine", 1, 100)]
    fleet = policy([node("a")], pods)  # type: ignore[operator]
    assert list(where(fleet)) == ["fine"]
    assert fleet.outcome() == baselines.Outcome(100, 0, 1)


def test_popular_classes_cover_95_of_100_pods() -> None:
    pods = [pod("half", 1, 500)] * 90 + [pod("one")] * 6 + [pod("two", 2)] * 4
    assert popular_classes(pods) == {
        (1000, 500, 1, frozenset()): 90 / 96,
        (1000, 1000, 1, frozenset()): 6 / 96,
    }


def test_fragmentation_agrees_with_its_definition_by_cases() -> None:
    nodes = [node("a", 3, model="T4"), node("b", 3, model="A10")]
    pods = [pod("s", 1, 400), pod("w", 1, 1000, 3000), pod("m", 2), pod("c", 0), pod("t", 1, 200, 1000, "T4")]
    fleet = Fleet(nodes)
    fleet.put(pod("x", 1, 700), 0, (1,))
    measure = baselines.Fragmentation(nodes, pods)
    for cpu in (500, 1500, 8000):
        found = measure.of(np.array([0, 1]), np.array([cpu, cpu]), fleet.gpus)
        assert found == pytest.approx([by_cases(fleet, pods, nodes, index, cpu) for index in (0, 1)])


def by_cases(fleet: Fleet, pods: list[Pod], nodes: list[Node], index: int, cpu: int) -> float:
    """The definition of the paper, class by class."""
    left = [int(free) for free in fleet.gpus[index] if free >= 0]
    total = 0.0
    for each in pods:
        fits = each.gpus > 0 and cpu >= each.cpu and sum(free >= each.milli for free in left) >= each.gpus
        fits = fits and (not each.models or nodes[index].model in each.models)
        total += sum(free for free in left if free < each.milli) if fits else sum(left)
    return total / len(pods)


def test_every_placement_of_the_trace_is_legal_and_near_the_reference(data: Path) -> None:
    nodes = baselines.read_nodes(data / "openb/nodes.csv")
    pods = baselines.read_pods(data / "openb/arrived/default.csv")
    fleet = best_fit(nodes, pods)
    fleet.check(nodes)
    assert fleet.outcome().gpus == pytest.approx(5_773.4, rel=0.005)
    assert fleet.outcome().cpu_only == 1_105
