"""What differs happens only where a plan starts from its base; today is such a base as well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.support.plans import plan_for
from tests.support.specs import CARD, current, make_spec, node, place, places, workload

from dovetail.diff import PlanDiff, diff, since_today
from dovetail.placement import Place
from dovetail.plan import Plan, current_of
from dovetail.spec import Current, EqualParts, Setting, Slo, Spec
from dovetail_cli.render import text
from dovetail_cli.render.review import Review

TODAY = {"run#0": place("a", 0), "run#1": place("b", 0)}
MOVED = {"run#0": place("b", 1), "run#1": place("b", 0), "wide#0": place("a", 0, 1)}
OTHER = {"run#0": place("a", 1), "run#1": place("b", 0)}
KEPT = {"run#0": place("a", 0), "run#1": place("b", 0)}


def spec(*, outside: bool = False, elapsed: int = 0) -> Spec:
    """Return a Spec whose wide job needs a move."""
    work = [workload("run", 2, gpus=1, restart=3_600_000), workload("wide", 1, gpus=2)]
    found = make_spec([node("a", 2), node("b", 2)], work, running=TODAY, elapsed={"run": elapsed})
    return replace(found, current=replace(found.current, from_outside=outside))


def planned(rows: Mapping[str, Place]) -> Plan:
    return plan_for(spec(), places(rows))


def kinds(found: PlanDiff) -> list[tuple[str, str]]:
    return [(change.workload, change.kind) for change in found.changes]


@pytest.mark.parametrize("documents", [True, False])
def test_two_plans_from_the_same_day_differ_and_nothing_happens(documents: bool) -> None:
    found = diff(planned(MOVED), planned(KEPT), spec() if documents else None)
    assert kinds(found) == [("run", "elsewhere"), ("wide", "out")]
    assert not found.starts_from_base
    assert (found.cost.moves, found.cost.evicted_workloads, found.cost.gpu_time_lost) == (0, 0, 0)


@pytest.mark.parametrize("documents", [True, False])
def test_the_cost_is_that_of_the_target_from_where_it_starts(documents: bool) -> None:
    found = diff(planned(OTHER), planned(MOVED), spec() if documents else None)
    assert kinds(found) == [("run", "elsewhere"), ("wide", "add")]
    assert (found.cost.moves, found.cost.restarts, found.cost.gpu_time_lost) == (1, 1, 3_600_000)


def test_a_plan_that_changes_nothing_is_what_runs() -> None:
    assert kinds(diff(planned(KEPT), planned(MOVED), spec())) == [("run", "move"), ("wide", "add")]
    assert kinds(diff(planned(KEPT), planned(MOVED))) == [("run", "elsewhere"), ("wide", "add")]


@pytest.mark.parametrize("documents", [True, False])
def test_a_plan_that_starts_from_its_base_moves_and_evicts(documents: bool) -> None:
    base = planned(MOVED)
    follows = replace(spec(), current=current_of(base))
    target = plan_for(follows, places(KEPT))
    found = diff(base, target, follows if documents else None)
    assert kinds(found) == [("run", "move"), ("wide", "evict")]
    assert found.starts_from_base


def test_a_state_in_which_nothing_runs_is_no_base_that_runs() -> None:
    empty = replace(spec(), current=Current(settings={"a/0": Setting("mps", 2)}))
    base, target = (plan_for(empty, places(rows)) for rows in (MOVED, KEPT))
    found = diff(base, target, empty)
    assert kinds(found) == [("run", "elsewhere"), ("wide", "out")]
    assert (found.cost.moves, found.cost.restarts, found.cost.evicted_workloads) == (0, 0, 0)


def test_today_is_a_base() -> None:
    found = since_today(planned(MOVED), spec())
    assert kinds(found) == [("run", "move"), ("wide", "add")]
    assert (found.cost.moves, found.cost.gpu_time_lost) == (1, 3_600_000)
    assert {tier.name: tier.before for tier in found.tiers}["admitted[0]"] == 2000
    assert found.delta["admittedFull"] == 1
    assert "inputs" not in found.to_document()["spec"]["base"]


def test_today_is_a_base_where_only_the_command_line_tells_it() -> None:
    asked = spec(outside=True, elapsed=60_000)
    found = since_today(plan_for(asked, places(MOVED)), asked)
    assert kinds(found) == [("run", "move"), ("wide", "add")]


def test_what_goes_on_and_what_waits_on_is_no_change() -> None:
    found = since_today(planned(KEPT), spec())
    assert not found.changes
    assert found.unchanged == 2


def test_what_runs_and_is_not_declared_is_removed() -> None:
    work = [workload("run", 1, gpus=1)]
    today = make_spec([node("a", 2)], work, running={"run#0": place("a", 0), "old#0": place("a", 1)})
    assert kinds(since_today(plan_for(today, places({"run#0": place("a", 0)})), today)) == [("old", "remove")]


@pytest.mark.parametrize("kept", [{"serve#1": place("a", 1)}, {"serve#1": place("a", 1), "serve#0": place("a", 2)}])
def test_who_is_not_needed_for_a_rate_is_no_eviction_and_no_move(kept: Mapping[str, Place]) -> None:
    work = replace(workload("serve", 2, type="service", gpus=1), slo=Slo(100, {CARD: 100}, open=True))
    today = make_spec([node("a", 3)], [work], running={"serve#0": place("a", 0), "serve#1": place("a", 1)})
    found = since_today(plan_for(today, places(kept)), today)
    assert kinds(found) == [("serve", "resize")]
    assert (found.cost.moves, found.cost.restarts, found.cost.evicted_replicas) == (0, 0, 0)


def test_of_a_rate_is_told_what_is_served_and_no_number_of_replicas_that_nobody_asked_for() -> None:
    work = replace(workload("serve", 9, type="service", gpus=1), slo=Slo(500, {CARD: 100, "X": 56}, open=True))
    today = make_spec([node("a", 4)], [work], running={"serve#0": place("a", 0)})
    plan = plan_for(today, places({f"serve#{n}": place("a", n) for n in range(4)}))
    found = since_today(plan, today)
    ((change,), said) = found.changes, "serving 0.4 of 0.5"
    assert change.why.startswith(f"replicas 1 -> 4, {said}: ")
    assert f"  !  serve  4 replicas admitted, {said}: " in text.rendered(Review(plan, spec=today))


def test_without_documents_both_are_told() -> None:
    """A plan does not say whether a number of replicas was asked for as well."""
    work = replace(workload("serve", 9, type="service", gpus=1), slo=Slo(1_500_000, {CARD: 300_000}, open=True))
    declared = make_spec([node("a", 4)], [work])
    before, after = (plan_for(declared, places({f"serve#{n}": place("a", n) for n in range(m)})) for m in (1, 4))
    ((change,), said) = diff(before, after).changes, "serving 1,200 of 1,500"
    assert change.why.startswith(f"replicas 1 -> 4 of 9, {said}: ")
    assert f"  !  serve  4 of 9 replicas admitted, {said}: " in text.rendered(Review(after))


def test_of_replicas_that_were_asked_for_beside_a_rate_both_are_told() -> None:
    work = replace(workload("serve", 9, type="service", gpus=1), slo=Slo(1_500_000, {CARD: 300_000}))
    declared = make_spec([node("a", 4)], [work])
    plan = plan_for(declared, places({f"serve#{n}": place("a", n) for n in range(4)}))
    told = text.rendered(Review(plan, spec=declared))
    assert "  !  serve  4 of 9 replicas admitted, serving 1,200 of 1,500: " in told


def test_a_service_that_serves_its_rate_and_goes_on_is_no_change() -> None:
    work = replace(workload("serve", 5, type="service", gpus=1), slo=Slo(200, {CARD: 100, "X": 40}, open=True))
    rows = {f"serve#{n}": place("a", n) for n in range(2)}
    today = make_spec([node("a", 3)], [work], running=rows)
    found = since_today(plan_for(today, places(rows)), today)
    assert (found.changes, found.unchanged) == ((), 1)


def test_what_lost_its_place_is_gone_or_starts_elsewhere() -> None:
    work = [workload("run", 2, gpus=1)]
    today = make_spec([node("a", 2, down=True), node("b", 1)], work)
    today = replace(today, current=current({"run#0": place("a", 0), "run#1": place("a", 1)}))
    found = since_today(plan_for(today, places({"run#0": place("b", 0)})), today)
    assert kinds(found) == [("run", "move"), ("run", "gone")]
    assert (found.cost.moves, found.cost.restarts, found.cost.evicted_replicas) == (0, 1, 1)


def test_whose_place_is_gone_is_told_beside_who_moves() -> None:
    work = [workload("run", 2, gpus=1)]
    today = make_spec([node("a", 1, down=True), node("b", 1), node("c", 2)], work)
    today = replace(today, current=current({"run#0": place("a", 0), "run#1": place("b", 0)}))
    found = since_today(plan_for(today, places({"run#0": place("c", 0), "run#1": place("c", 1)})), today)
    assert [(change.kind, change.why) for change in found.changes] == [("move", "the place of 1 is gone")]
    assert (found.cost.moves, found.cost.restarts) == (1, 2)


def test_who_restarts_in_place_is_counted() -> None:
    shared = node("n", 1, mechanism="devicePlugin", sharing=EqualParts())
    work = [workload("stays", 1, share=300, restart=3_600_000), workload("comes", 1, share=300)]
    found = make_spec([shared], work, running={"stays#0": place("n", 0)})
    plan = plan_for(found, places({"stays#0": place("n", 0), "comes#0": place("n", 0)}))
    assert plan.shared == {"n/0": Setting("mps", 2)}
    cost = since_today(plan, found).cost
    assert (cost.moves, cost.restarts, cost.evicted_replicas, cost.gpu_time_lost) == (1, 1, 0, 1_080_000)
