"""What waits takes the place of preemptible work of lower bands: of what is worth least, and of no more than that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from random import Random
from typing import Any

import pytest
from tests.support.at_work import HIGH, LOW, on, ones, planned, racks, running, stepped
from tests.support.preempted_specs import preempted
from tests.support.specs import make_spec, node, place, policy, request, role, workload

from dovetail.engine import ladder, solve
from dovetail.engine.construction.field import Field
from dovetail.engine.construction.journal import Journal
from dovetail.engine.construction.leavers import running_at
from dovetail.engine.construction.placing import Outlooks
from dovetail.engine.construction.preempting import Preempting, with_preemption
from dovetail.model.state import today_state
from dovetail.placement import View
from dovetail.problem import compile_problem
from dovetail.progress import Limits
from dovetail.rules import context_of
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.spec import Spec, WorkloadSelector
from dovetail.verify import verify


def after(spec: Spec) -> tuple[dict[str, int], View]:
    """Return the values of the tiers, and the view, of what construction begins and others are preempted in."""
    return stepped(spec, with_preemption)


def test_work_of_the_lowest_band_goes_first() -> None:
    where = {**running(low="x0 x0 x0 x0"), "middle#0": place("y0", 0, 1, 2, 3)}
    work = [workload("low", 4, gpus=1, **LOW), workload("middle", 1, gpus=4, priority=300, preemptible=True)]
    told, view = after(planned(racks(x=1, y=1), [*work, workload("new", 1, gpus=4, **HIGH)], where))
    assert on(view, "new") == ["x0"]
    assert (on(view, "low"), on(view, "middle")) == ([], ["y0"])
    assert told["disruption.evicted"] == 1


def test_no_more_goes_than_has_to() -> None:
    """Of one node somebody with four GPUs would have to go, of the other two with one each."""
    where = {"large#0": place("x0", 0, 1, 2, 3), **running(a="y0", b="y0 y0 y0")}
    low = [workload("large", 1, gpus=4, **LOW), workload("a", 1, gpus=1, **LOW), workload("b", 3, gpus=1, **LOW)]
    told, view = after(planned(racks(x=1, y=1), [*low, workload("new", 1, gpus=2, **HIGH)], where))
    assert on(view, "new") == ["y0"]
    assert told["retained[100]"] == 6000
    assert told["disruption.evicted"] == 1, "two of one workload rather than one of each"


def test_who_loses_least_work_goes() -> None:
    where = {f"{name}#0": place(host, 0, 1, 2, 3) for name, host in (("old", "x0"), ("young", "y0"))}
    spec = planned(racks(x=1, y=1), [workload(n, 1, gpus=4, **LOW) for n in ("old", "young")], where)
    spec = replace(spec, workloads=(*spec.workloads, workload("new", 1, gpus=4, **HIGH)))
    elapsed = {"old": 7_200_000, "young": 60_000}
    told, view = after(replace(spec, current=replace(spec.current, elapsed=elapsed)))
    assert on(view, "old") == ["x0"]
    assert told["disruption.gpuTimeLost"] == 4000 * 60


def test_who_would_have_gone_for_what_found_no_place_is_as_dear_as_before() -> None:
    """For the service `old` would have to go, and somebody else who stays; of those for `new`, `young` loses less."""
    cards = {"fast": "H100-80GB", "slow": "L4"}
    nodes = [node(name, 4, accelerator=cards[card]) for name, card in (("x", "fast"), ("y", "slow"), ("z", "fast"))]
    low = [workload(name, 1, gpus=4, **LOW) for name in ("old", "young")]
    service = workload("two", 2, type="service", gpus=4, min_replicas=2, accelerators=(cards["fast"],), **HIGH)
    stays = workload("stays", 1, gpus=4, accelerators=(cards["fast"],))
    work = [*low, stays, service, workload("new", 1, gpus=2, **HIGH)]
    where = {f"{name}#0": place(host, 0, 1, 2, 3) for name, host in (("old", "x"), ("young", "y"), ("stays", "z"))}
    spec = planned(nodes, work, where)
    elapsed = {"old": 7_200_000, "young": 60_000}
    told, view = after(replace(spec, current=replace(spec.current, elapsed=elapsed)))
    assert (on(view, "two"), on(view, "new"), on(view, "old")) == ([], ["y"], ["x"])
    assert told["disruption.gpuTimeLost"] == 4000 * 60


def test_who_must_go_on_takes_the_place_of_another_who_gives_way() -> None:
    """On no node do all give way: somebody moves to the other one, where somebody goes."""
    where = running(keep="x0", low="x0 x0 x0 y0", stay="y0 y0 y0")
    work = [*ones(keep=1, stay=3), workload("low", 4, gpus=1, **LOW), workload("new", 1, gpus=4, **HIGH)]
    told, view = after(planned(racks(x=1, y=1), work, where))
    assert on(view, "new") == ["x0"]
    assert (on(view, "keep"), on(view, "low"), on(view, "stay")) == (["y0"], [], ["y0"] * 3)
    assert told["disruption.moves"] == 1


def test_what_is_undone_counts_no_more() -> None:
    """Neither who moved, nor of whom anybody went, nor what was placed."""
    where = running(keep="x0", low="x0 x0 x0 y0", stay="y0 y0 y0")
    work = [*ones(keep=1, stay=3), workload("low", 4, gpus=1, **LOW), workload("new", 1, gpus=4, **HIGH)]
    problem = compile_problem(context_of(planned(racks(x=1, y=1), work, where)))
    new = problem.shapes[problem.shapes_of_role["new", ""]]
    low = next(running_at(1, held) for held in problem.present[1] if held.shape == problem.shapes_of_role["low", ""])
    journal = Journal(Outlooks(Field(problem, today_state(problem))))
    preempting = Preempting(journal, 900, frozenset(), lambda: False, inf)
    preempting.expect([new])
    prices = preempting.victims.prices
    dear = prices.total([prices.evicted([low])])
    for _ in range(2):
        assert preempting.place(new.index)
        assert preempting.moves == 1
        assert prices.total([prices.evicted([low])]) < dear
        journal.undo()
        assert preempting.moves == 0
        assert prices.total([prices.evicted([low])]) == dear
    assert journal.field.state().fills == today_state(problem).fills


def test_who_may_not_move_may_go() -> None:
    where = {"fixed#0": place("x0", 0, 1, 2, 3)}
    fixed = workload("fixed", 1, gpus=4, movable=False, **LOW)
    _, view = after(planned(racks(x=1, y=1), [fixed, workload("new", 2, gpus=4, **HIGH)], where))
    assert on(view, "new") == ["x0", "y0"]
    assert not on(view, "fixed"), "and has no other place, as it may not move"


def test_who_went_goes_on_where_there_is_room() -> None:
    where = running(low="x0 x0")
    work = [workload("low", 2, gpus=1, cpu=1000, **LOW), workload("new", 1, gpus=4, cpu=30_000, **HIGH)]
    told, view = after(planned([*racks(x=1), node("small", 2, cpu=10_000)], work, where))
    assert (on(view, "new"), on(view, "low")) == (["x0"], ["small", "small"])
    assert (told["disruption.evicted"], told["disruption.moves"]) == (0, 2)


@pytest.mark.parametrize("more", [{"priority": 900, "preemptible": True}, {"priority": 100, "preemptible": False}])
def test_nobody_gives_way_to_the_same_priority_or_without_being_preemptible(more: Mapping[str, Any]) -> None:
    where = running(w="x0 x0 x0 x0")
    told, view = after(
        planned(racks(x=1), [workload("w", 4, gpus=1, **more), workload("new", 1, gpus=1, **HIGH)], where)
    )
    assert (len(on(view, "w")), on(view, "new"), told["disruption.evicted"]) == (4, [], 0)


def test_a_gang_goes_as_a_whole_and_its_other_nodes_serve_the_next() -> None:
    where = {f"old#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2"))}
    old = workload("old", 3, type="gang", gpus=4, **LOW)
    told, view = after(planned(racks(x=3), [old, workload("new", 2, gpus=4, **HIGH)], where))
    assert (len(on(view, "new")), on(view, "old"), told["disruption.evicted"]) == (2, [], 1)


def test_an_elastic_gang_goes_on_with_as_many_as_it_needs() -> None:
    where = {f"old#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2"))}
    roles = [role("", 3, request(4), least=2)]
    old = replace(workload("old", roles=roles, type="gang", **LOW), min_replicas=2)
    told, view = after(planned(racks(x=3), [old, workload("new", 1, gpus=4, **HIGH)], where))
    assert (len(on(view, "new")), len(on(view, "old"))) == (1, 2)
    told, view = after(planned(racks(x=3), [old, workload("new", 2, gpus=4, **HIGH)], where))
    assert (len(on(view, "new")), on(view, "old"), told["disruption.evicted"]) == (2, [], 1)


def test_a_service_goes_on_with_as_many_as_it_needs() -> None:
    where = {f"old#{i}": place(name, 0, 1, 2, 3) for i, name in enumerate(("x0", "x1", "x2"))}
    old = workload("old", 3, type="service", gpus=4, min_replicas=2, **LOW)
    told, view = after(planned(racks(x=3), [old, workload("new", 1, gpus=4, **HIGH)], where))
    assert (len(on(view, "new")), len(on(view, "old")), told["disruption.moves"]) == (1, 2, 0)


def test_shares_of_a_gpu_go_together_for_a_whole_one() -> None:
    where = {f"s#{i}": place("x0", 0) for i in range(4)} | {f"t#{i}": place("x0", 1) for i in range(2)}
    low = [workload("s", 4, share=200, **LOW), workload("t", 2, share=300, **LOW)]
    spec = make_spec([node("x0", 2)], [*low, workload("new", 1, gpus=1, **HIGH)], running=where)
    told, view = after(spec)
    assert (on(view, "new"), len(on(view, "s")), len(on(view, "t"))) == (["x0"], 4, 0)
    assert told["disruption.evicted"] == 1


def test_as_much_goes_as_frees_the_cpu_that_is_asked_for() -> None:
    where = {f"{name}#0": place("x0", gpu) for gpu, name in enumerate(("a", "b", "c"))}
    low = [workload(name, 1, gpus=1, cpu=cpu, **LOW) for name, cpu in (("a", 2000), ("b", 9000), ("c", 8000))]
    spec = make_spec([node("x0", 4, cpu=20_000)], [*low, workload("new", 1, gpus=1, cpu=9000, **HIGH)], running=where)
    _, view = after(spec)
    assert on(view, "new") == on(view, "a") == ["x0"]
    assert len(on(view, "b")) + len(on(view, "c")) == 1


def test_quotas_and_policies_on_moves_hold() -> None:
    where = running(keep="x0", low="x0 x0 x0")
    work = [*ones(keep=1), workload("low", 3, gpus=1, **LOW), workload("new", 1, gpus=4, **HIGH)]
    nodes = [*racks(x=1), node("b", 1)]
    stay = policy("stay", Move(max_moves=0))
    less = policy("less", Quota((("gpus", 3000),), "tenant"))
    assert on(after(planned(nodes, work, where))[1], "new") == ["x0"]
    assert not on(after(planned(nodes, work, where, stay))[1], "new")
    apart = [replace(each, tenant=each.id) for each in work]
    assert not on(after(planned(nodes, apart, where, less))[1], "new")


@pytest.mark.parametrize(("least", "there", "evicted"), [(2, 2, 1), (3, 0, 0)])
def test_a_service_has_as_many_replicas_as_it_needs_or_nobody_goes_for_it(
    least: int, there: int, evicted: int
) -> None:
    where = running(low="x0 x0", keep="x0 y0 y0")
    work = [workload("low", 2, gpus=1, **LOW), *ones(keep=3)]
    new = workload("new", 3, type="service", gpus=2, min_replicas=least, **HIGH)
    nodes = [node("x0", 3, domains={"rack": "x"}), node("y0", 4, domains={"rack": "y"})]
    told, view = after(planned(nodes, [*work, new], where))
    assert (len(on(view, "new")), told["disruption.evicted"]) == (there, evicted)


def test_who_goes_for_a_quota_is_of_those_whom_it_counts() -> None:
    """The cluster has room enough, but the tenant has used up its quota, and another has work of a lower band."""
    low = [workload(name, 4, gpus=1, tenant=tenant, **LOW) for name, tenant in (("own", "t"), ("other", "u"))]
    work = [*low, workload("new", 1, gpus=2, tenant="t", **HIGH)]
    quota = policy("quota", Quota((("gpus", 5000),), "tenant"))
    told, view = after(planned(racks(x=1, y=1, z=1), work, running(own="x0 x0 x0 x0", other="y0 y0 y0 y0"), quota))
    assert (len(on(view, "own")), len(on(view, "other")), len(on(view, "new"))) == (3, 4, 1)
    assert told["retained[100]"] == 7000


def test_as_much_goes_as_is_above_a_quota_of_which_the_least_is_lost() -> None:
    """A lender asks for what is its own again, so the borrower is above what it may have."""
    lends = Quota(guaranteed=(("gpus", 4000),), cohort="all")
    cohort = [policy(name, lends, workloads=WorkloadSelector(namespaces=(name,))) for name in ("a", "b")]
    work = [
        workload("a/dear", 1, gpus=4, priority=300, preemptible=True),
        workload("a/cheap", 3, gpus=1, **LOW),
        workload("b/back", 3, gpus=1, **HIGH),
    ]
    where = {"a/dear#0": place("x0", 0, 1, 2, 3)} | {f"a/cheap#{i}": place("y0", i) for i in range(3)}
    told, view = after(planned(racks(x=1, y=1), work, where, *cohort))
    assert told["mend"] == 0
    assert (len(on(view, "a/dear")), len(on(view, "a/cheap")), len(on(view, "b/back"))) == (1, 1, 3)


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the search from solving the whole at once."""
    monkeypatch.setattr(ladder, "EXACT_FIRST", 0)
    monkeypatch.setattr(ladder, "EXACT_VARIABLES", 0)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("seed", [*range(60), 88, 687])
def test_plans_of_random_clusters_stand_where_work_gives_way(seed: int) -> None:
    spec = preempted(Random(f"preempted {seed}"))
    plan = solve(spec, Limits(work=0.3))
    assert plan.outcome.status in ("feasible", "optimal")
    assert verify(spec, plan).ok
