"""Who keeps its place and starts anew all the same, as GPUs are cut anew or shared in another way."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.mig_specs import card, mig_request
from tests.support.plans import plan_for
from tests.support.specs import CARDS, make_spec, node, place, places, role, workload

from dovetail.diff import Change, PlanDiff, diff
from dovetail.mig import Instance
from dovetail.placement import Place
from dovetail.plan import Plan, current_of
from dovetail.spec import Cluster, EqualParts, Layout, Spec

PRODUCT = "A100-80GB"
HOUR = 3_600_000
WHOLE, PART = place("a", 0), Place("a", (1,), "3g.40gb@4")


def cut_spec(layout: Mapping[int, Layout] | None = None, *, slices: int = 1) -> Spec:
    """Return a Spec of a node that is cut as one, with a job on a whole GPU and a service on a part of the other."""
    work = [workload("whole", 1, gpus=1, checkpoint_every=HOUR)]
    if slices:
        work.append(workload("part", roles=[role("", slices, mig_request(PRODUCT, "3g.40gb"))], restart=HOUR))
    host = node("a", 2, accelerator=PRODUCT, mechanism="mig", mig_layout=layout or {})
    found = make_spec([host], work)
    cluster = dataclasses.replace(found.cluster, reconfiguration="node")
    return dataclasses.replace(found, cluster=cluster, accelerators={PRODUCT: card(PRODUCT)})


def shared_spec(replicas: int) -> Spec:
    """Return a Spec of a GPU that clients share by equal parts."""
    shared = node("n", 1, mechanism="devicePlugin", sharing=EqualParts())
    work = [workload("stays", 1, share=300, restart=HOUR)]
    return make_spec([shared], [*work, workload("comes", replicas, share=300)])


def after(base: Plan, spec: Spec, rows: Mapping[str, Place]) -> tuple[Plan, Spec]:
    """Return a plan that starts from a base, and what its documents mean."""
    follows = dataclasses.replace(spec, current=current_of(base))
    return plan_for(follows, places(rows)), follows


def restarts(found: PlanDiff) -> list[tuple[str, int, str]]:
    return [(c.workload, c.replicas, c.why) for c in found.changes if c.kind == "restart"]


def test_who_restarts_where_a_gpu_is_cut_anew_is_named() -> None:
    base = plan_for(cut_spec(slices=0), places({"whole#0": WHOLE}))
    target, spec = after(base, cut_spec(), {"whole#0": WHOLE, "part#0": PART})
    found = diff(base, target, spec)
    assert restarts(found) == [("whole", 1, "GPUs are cut anew")]
    assert (found.cost.moves, found.cost.gpu_time_lost, found.unchanged) == (1, 1_800_000, 0)


def test_who_restarts_where_a_gpu_is_shared_in_another_way_is_named() -> None:
    base = plan_for(shared_spec(0), places({"stays#0": place("n", 0)}))
    target, spec = after(base, shared_spec(1), {"stays#0": place("n", 0), "comes#0": place("n", 0)})
    found = diff(base, target, spec)
    assert restarts(found) == [("stays", 1, "GPUs are shared in another way")]
    assert (found.cost.moves, found.unchanged) == (1, 0)


def test_who_gets_a_place_again_that_was_gone_is_named() -> None:
    start = cut_spec()
    base = plan_for(start, places({"whole#0": WHOLE, "part#0": PART}))
    today = dataclasses.replace(current_of(base), gpus={"a/1": (Instance("4g.40gb", 0),)})
    spec = dataclasses.replace(start, current=today)
    found = diff(base, plan_for(spec, places({"whole#0": WHOLE, "part#0": PART})), spec)
    assert restarts(found) == [("part", 1, "the place was gone"), ("whole", 1, "GPUs are cut anew")]
    assert (found.cost.moves, found.cost.restarts) == (1, 2)


def test_nobody_restarts_where_the_base_is_cut_as_the_target() -> None:
    otherwise = {1: (Instance("7g.80gb", 0),)}
    base = plan_for(cut_spec(otherwise), places({"whole#0": WHOLE, "part#0": PART}))
    target, spec = after(base, cut_spec(otherwise), {"whole#0": WHOLE, "part#0": PART})
    found = diff(base, target, spec)
    assert not found.changes
    assert (found.cost.moves, found.cost.restarts, found.cost.gpu_time_lost) == (0, 0, 0)


def test_a_plan_from_nothing_follows_its_base_as_that_is_cut() -> None:
    otherwise = {1: (Instance("7g.80gb", 0),)}
    base = plan_for(cut_spec(otherwise), places({"whole#0": WHOLE, "part#0": PART}))
    found = diff(base, base, cut_spec(otherwise))
    assert found.starts_from_base
    assert (found.changes, found.cost.restarts, found.cost.gpu_time_lost) == ((), 0, 0)


@pytest.mark.parametrize("now", [{"gpus": 1}, {"accelerator": "L4"}, {}], ids=["gpu", "profile", "request"])
def test_rows_of_what_documents_no_longer_have_go_and_are_no_error(now: dict[str, Any]) -> None:
    spec = cut_spec()
    base = plan_for(spec, places({"whole#0": WHOLE, "part#0": PART}))
    target, follows = after(base, spec, {"whole#0": WHOLE, "part#0": PART})
    host = dataclasses.replace(follows.cluster.nodes[0], sharing=EqualParts(), **now)
    cards = {**CARDS, PRODUCT: card(PRODUCT)}
    other = dataclasses.replace(follows, accelerators=cards, cluster=Cluster("c", ("node",), (host,)))
    if not now:
        other = dataclasses.replace(other, workloads=(workload("part", 1, gpus=2), *other.workloads[1:]))
    found = diff(base, target, other)
    assert found.cost.evicted_replicas == 1
    assert diff(base, target, dataclasses.replace(other, current=current_of(base))).cost == found.cost


def test_clients_of_a_gpu_that_documents_no_longer_have_go() -> None:
    spec = shared_spec(1)
    two = dataclasses.replace(spec.cluster.nodes[0], gpus=2)
    spec = dataclasses.replace(spec, cluster=Cluster("c", ("node",), (two,)))
    base = plan_for(spec, places({"stays#0": place("n", 0), "comes#0": place("n", 1)}))
    target, follows = after(base, spec, {"stays#0": place("n", 0), "comes#0": place("n", 1)})
    less = Cluster("c", ("node",), shared_spec(1).cluster.nodes)
    assert diff(base, target, dataclasses.replace(follows, cluster=less)).cost.evicted_replicas == 1


def test_without_documents_the_cost_is_the_targets_own() -> None:
    base = plan_for(shared_spec(0), places({"stays#0": place("n", 0)}))
    target, _ = after(base, shared_spec(1), {"stays#0": place("n", 0), "comes#0": place("n", 0)})
    cost = diff(base, target).cost
    assert (cost.moves, cost.restarts, cost.gpu_time_lost) == (1, 1, 1_080_000)


def test_what_it_took_to_get_to_the_base_is_no_difference() -> None:
    rows = {"stays#0": place("n", 0), "comes#0": place("n", 0)}
    first, _ = after(plan_for(shared_spec(0), places({"stays#0": place("n", 0)})), shared_spec(1), rows)
    second, spec = after(first, shared_spec(1), rows)
    assert (first.summary["moves"], second.summary["moves"]) == (1, 0)
    assert not diff(first, second, spec)
    assert not diff(first, second)


@pytest.mark.parametrize("comes", [0, 1])
def test_work_lost_is_not_known_where_only_the_plans_are(comes: int) -> None:
    base = plan_for(shared_spec(0), places({"stays#0": place("n", 0)}))
    rows = {"stays#0": place("n", 0), **({"comes#0": place("n", 0)} if comes else {})}
    assert diff(base, plan_for(shared_spec(comes), places(rows))).cost.gpu_time_lost == (None if comes else 0)


def only(found: PlanDiff) -> Change:
    (change,) = found.changes
    return change


def scaled(replicas: int) -> Spec:
    return make_spec([node("a", 2)], [workload("web", replicas, gpus=1)])


def test_a_workload_that_is_scaled_to_nothing_is_still_declared() -> None:
    base = plan_for(scaled(2), places({"web#0": place("a", 0), "web#1": place("a", 1)}))
    target, spec = after(base, scaled(0), {})
    found = only(diff(base, target, spec))
    assert (found.kind, found.replicas, found.why) == ("resize", 2, "replicas 2 -> 0")
    assert only(diff(base, target)).kind == "remove", "only the documents know better"


def test_a_workload_that_waited_and_is_scaled_to_nothing_is_resized() -> None:
    base = plan_for(scaled(3), {})
    target, spec = after(base, scaled(0), {})
    found = only(diff(base, target, spec))
    assert (found.kind, found.replicas, found.why) == ("resize", 0, "replicas 3 -> 0, none was admitted")
