"""Every figure of the summary, on placements small enough to add up by hand."""

from __future__ import annotations

from decimal import Decimal

from tests.support.specs import CARD, make_spec, node, place, places, workload

from dovetail.plan import Figure
from dovetail.plan.stranded import stranded
from dovetail.plan.summary import figure, summary_of
from dovetail.rules import context_of
from dovetail.spec import Node, Spec, Taint, Toleration, Workload


def figures(spec: Spec, **rows: tuple[str, tuple[int, ...]]) -> dict[str, Figure]:
    context = context_of(spec)
    found = places({key.replace("_", "#"): place(name, *gpus) for key, (name, gpus) in rows.items()})
    return dict(summary_of(context.view(found), context))


def test_whole_figures_are_plain_and_others_exact() -> None:
    assert figure(1_912_375, 1000) == Decimal("1912.375")
    assert isinstance(figure(2000, 1000), int)
    assert str(figure(100, 1000)) == "0.1"
    assert figure(10_000_000_000_000_001, 1000) == Decimal("10000000000000.001")


def test_admission_and_allocation_add_up() -> None:
    spec = make_spec(
        [node("n", 4, failed_gpus=frozenset({3}), price=1_500_000, gpu_price=250_000), node("idle", 2, down=True)],
        [
            workload("a", 2, gpus=1),
            workload("b", 2, share=125),
            workload("c", 1, gpus=2),
            workload("d", 2),
            workload("e", 0),
        ],
    )
    found = figures(spec, a_0=("n", (0,)), b_0=("n", (1,)), b_1=("n", (1,)), d_0=("n", ()), d_1=("n", ()))
    assert found["gpusTotal"] == 3
    assert found["gpusAllocated"] == Decimal("1.25")
    assert [found[f"admitted{state}"] for state in ("Full", "Partial", "None")] == [3, 1, 1]
    assert (found["workloads"], found["cpuOnlyReplicas"], found["nodesUsed"]) == (5, 2, 1)
    assert found["costPerHour"] == 2


def test_use_is_told_with_its_coverage_and_never_guessed() -> None:
    spec = make_spec(
        [node("n", 4)],
        [
            workload("known", 2, gpus=1, observed=700),
            workload("unknown", 1, gpus=1),
            workload("out", 1, gpus=1, observed=9),
        ],
    )
    found = figures(spec, known_0=("n", (0,)), known_1=("n", (1,)), unknown_0=("n", (2,)))
    assert (found["gpusUsed"], found["gpusUsedKnown"], found["gpusAllocated"]) == (Decimal("1.4"), 2, 3)


def test_disruption_is_told_by_measure() -> None:
    spec = make_spec(
        [node("n", 4), node("down", 4, down=True)],
        [
            workload("moves", 1, gpus=2, checkpoint_every=3_600_000, restart=600_000),
            workload("gone", 2, gpus=1, preemptible=True),
            workload("lost", 2, gpus=1),
        ],
        running={
            "moves#0": place("n", 0, 1),
            "gone#0": place("n", 2),
            "gone#1": place("n", 3),
            "lost#0": place("down", 0),
            "lost#1": place("down", 1),
        },
        elapsed={"gone": 1_800_000},
    )
    found = figures(spec, moves_0=("n", (1, 2)), gone_0=("n", (3,)), lost_0=("n", (0,)))
    assert (found["moves"], found["restarts"]) == (2, 1)
    assert (found["evictedWorkloads"], found["evictedReplicas"]) == (2, 2)
    # 2 GPUs for 30 + 10 minutes by the move, 1 GPU for 30 minutes twice: a move and an eviction of `gone`.
    assert found["gpuHoursLost"] == Decimal("2.333")


def stranded_milli(nodes: list[Node], work: list[Workload], **rows: tuple[str, tuple[int, ...]]) -> int:
    context = context_of(make_spec(nodes, work))
    found = places({key.replace("_", "#"): place(name, *gpus) for key, (name, gpus) in rows.items()})
    return stranded(context.view(found))


def test_an_idle_gpu_that_some_class_fits_is_not_stranded() -> None:
    assert stranded_milli([node("n", 4)], [workload("w", 1, gpus=2)]) == 0
    assert stranded_milli([node("n", 4)], [workload("w", 3, gpus=2)], w_0=("n", (0, 1)), w_1=("n", (2, 3))) == 0


def test_nothing_is_stranded_where_nothing_asks_for_a_gpu() -> None:
    assert stranded_milli([node("n", 4)], [workload("w", 1, cpu=2)]) == 0


def test_idle_gpus_too_few_together_are_stranded() -> None:
    work = [workload("w", 3, gpus=2), workload("one", 1, gpus=3)]
    assert stranded_milli([node("n", 4)], work, one_0=("n", (0, 1, 2))) == 1000
    assert stranded_milli([node("n", 1), node("m", 1)], work) == 2000


def test_the_rest_of_a_shared_gpu_is_stranded_where_no_share_fits() -> None:
    work = [workload("s", 9, share=300)]
    assert stranded_milli([node("n", 1)], work, s_0=("n", (0,))) == 0
    assert stranded_milli([node("n", 1)], work, s_0=("n", (0,)), s_1=("n", (0,)), s_2=("n", (0,))) == 100
    thirsty = [workload("s", 9, share=(300, 50_000))]
    assert stranded_milli([node("n", 1)], thirsty, s_0=("n", (0,))) == 700


def test_idle_gpus_without_cpu_memory_or_resources_are_stranded() -> None:
    asks = workload("w", 1, gpus=1, cpu=4000, memory=2048, resources={"rdma": 1})
    work = [asks, workload("c", 1, cpu=3000, memory=0)]
    full = node("n", 2, cpu=6000, memory=4096, resources={"rdma": 1})
    assert stranded_milli([full], work) == 0
    assert stranded_milli([full], work, c_0=("n", ())) == 2000
    assert stranded_milli([node("n", 2, cpu=6000, memory=1024, resources={"rdma": 1})], work) == 2000
    assert stranded_milli([node("n", 2)], work) == 2000


def test_classes_respect_accelerators_mechanisms_and_tolerations() -> None:
    assert stranded_milli([node("n", 1)], [workload("w", gpus=1, accelerators=("L4",))]) == 1000
    assert stranded_milli([node("n", 1)], [workload("w", gpus=1, accelerators=("L4", CARD))]) == 0
    assert stranded_milli([node("n", 1, mechanism="devicePlugin")], [workload("w", share=100)]) == 1000
    tainted = node("n", 1, taints=(Taint("keep"),))
    assert stranded_milli([tainted], [workload("w", gpus=1)]) == 1000
    assert (
        stranded_milli(
            [tainted], [workload("w", gpus=1), workload("v", gpus=1, tolerations=(Toleration("keep", "Exists"),))]
        )
        == 0
    )


def test_down_cordoned_and_failed_gpus_are_never_stranded() -> None:
    work = [workload("w", gpus=2)]
    nodes = [node("a", 1, down=True), node("b", 1, cordoned=True), node("c", 2, failed_gpus=frozenset({0, 1}))]
    assert stranded_milli(nodes, work) == 0
    assert stranded_milli([node("c", 2, failed_gpus=frozenset({0}))], work) == 1000
