"""Who runs of services that ask for a rate alone, and is not needed for it any more (S5.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.specs import CARD, make_spec, node, place, replica, workload

from dovetail.engine.ladder import solve
from dovetail.placement import Place, judge
from dovetail.spec import ReplicaId, Request, ServiceClass, Share, Slo, Spec, Workload
from dovetail.verify import verify

NOTHING = ServiceClass()
FULL = {"chat#0": place("a", 0), "chat#1": place("a", 1), "chat#2": place("b", 0), "chat#3": place("b", 1)}


def chat(rate: int, floors: ServiceClass = NOTHING, min_replicas: int = 1) -> Workload:
    """Return a service of which each replica, on a GPU of its own, sustains a rate of 100."""
    slo = Slo(rate, {CARD: 100}, open=True, floors=floors)
    work = workload("chat", 4, type="service", gpus=1, accelerators=(CARD,), min_replicas=min_replicas)
    return replace(work, slo=slo)


def spec(work: Workload, *others: Workload, running: Mapping[str, Place] = FULL) -> Spec:
    return make_spec([node("a", 3), node("b", 2)], [work, *others], running=running)


def going(found: Spec) -> set[ReplicaId]:
    """Return who runs today, by the documents, and is asked for no more."""
    return {each.replica for each in found.current.replicas} - judge(found).present().keys()


@pytest.mark.parametrize(("rate", "needed"), [(500, 4), (400, 4), (399, 4), (301, 4), (300, 3), (120, 2), (1, 1)])
def test_as_many_go_as_the_rate_does_not_need(rate: int, needed: int) -> None:
    judged = judge(spec(chat(rate)))
    assert len(judged.places) == len(judged.protected) == needed


def test_the_fewest_that_there_must_be_stay() -> None:
    assert len(judge(spec(chat(1, min_replicas=3))).places) == 3
    assert len(judge(spec(chat(1, floors=ServiceClass(replicas=2)))).places) == 2


def test_nodes_on_which_fewest_gpus_are_of_others_are_freed_first() -> None:
    other = workload("other", 1, gpus=1)
    assert going(spec(chat(200), other, running={**FULL, "other#0": place("a", 2)})) == {
        replica("chat#2"),
        replica("chat#3"),
    }


def test_who_shares_a_gpu_stays_where_others_may_go() -> None:
    asked = Request(share=Share(200, memory=1000, rated=((CARD, 50),)))
    served = chat(50)
    served = replace(served, roles=(replace(served.roles[0], request=asked),), slo=Slo(50, {CARD: 50}, open=True))
    running = {"chat#0": place("a", 0), "chat#1": place("b", 0), "other#0": place("a", 0)}
    shared = make_spec(
        [node("a", 1, mechanism="fraction"), node("b", 1, mechanism="fraction")],
        [served, workload("other", 1, share=(200, 1000))],
        running=running,
    )
    assert going(shared) == {replica("chat#1")}


def test_whose_place_is_gone_is_needed_only_where_the_others_serve_too_little() -> None:
    lost = {**FULL, "chat#3": place("b", 7)}
    assert judge(spec(chat(400), running=lost)).lost.keys() == {replica("chat#3")}
    judged = judge(spec(chat(300), running=lost))
    assert len(judged.places) == 3
    assert not judged.lost


def test_who_asks_for_replicas_too_keeps_them() -> None:
    work = chat(100)
    assert work.slo is not None
    assert not going(spec(replace(work, slo=replace(work.slo, open=False))))


def test_what_is_free_to_go_makes_room_for_others_and_counts_as_nothing() -> None:
    found = spec(chat(200), workload("wide", 1, gpus=2))
    plan = solve(found)
    assert plan.outcome.status == "optimal"
    assert plan.admitted.keys() == set()
    assert {tier.name: tier.value for tier in plan.tiers if tier.name.startswith("disruption")} == {
        "disruption.evicted": 0,
        "disruption.gpuTimeLost": 0,
        "disruption.moves": 0,
    }
    assert verify(found, plan).ok


def test_equal_rates_change_nothing() -> None:
    found = spec(chat(400), workload("wide", 1, gpus=2))
    plan = solve(found)
    assert {r: p for r, p in plan.placements.items() if r.workload == "chat"} == judge(found).places
