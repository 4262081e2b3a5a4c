"""Preemptible work that could be on its place beside all that a plan admits is not evicted for certain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.support.mig_specs import card, mig_request
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, replica, request, role, workload

from dovetail.engine import solve
from dovetail.mig import Instance
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.rules import Rule, Told
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.rules.survive import Survive
from dovetail.spec import Current, EqualParts, Objective, PresentReplica, Spec, Workload
from dovetail.verify import verify

HIGH = workload("high", 2, gpus=1, priority=9)
GAINS = {"high#0": place("a", 0), "high#1": place("a", 1)}
"""What a higher band gains, so that something may be evicted."""


def spot(replicas: int = 1, **more: object) -> Workload:
    """Return preemptible work."""
    return workload("spot", replicas, preemptible=True, **{"gpus": 1, **more})  # type: ignore[arg-type]


def spec_of(*work: Workload, running: Mapping[str, Place], rule: Rule | None = None, gpus: int = 4) -> Spec:
    """Return work on a node with some GPUs and another one, with a rule or none."""
    rules = [] if rule is None else [policy("rule", rule)]
    return make_spec([node("a", gpus), node("b", 1)], [HIGH, *work], rules, running=running)


def for_nothing(spec: Spec, plan: Plan) -> list[str]:
    """Return of whom that is found."""
    (check,) = (check for check in verify(spec, plan).checks if check.name == "retained")
    return [finding.subject for finding in check.findings]


def evicted(spec: Spec, rows: Mapping[str, Place] = GAINS) -> list[str]:
    return for_nothing(spec, plan_for(spec, places(rows)))


def test_who_could_be_on_its_place_is_evicted_for_nothing_whoever_gains() -> None:
    spec = spec_of(spot(), running={"spot#0": place("a", 3)})
    assert evicted(spec) == ["spot#0"]
    assert evicted(spec, {**GAINS, "spot#0": place("a", 3)}) == []


def test_a_plan_that_leaves_open_how_much_can_be_retained_is_asked_nothing() -> None:
    spec = spec_of(spot(), running={"spot#0": place("a", 3)})
    plan = plan_for(spec, places(GAINS), "feasible")
    assert {tier.name: (tier.value, tier.bound) for tier in plan.tiers}["retained[0]"] == (0, 1000)
    assert for_nothing(spec, plan) == []


def test_whose_place_is_taken_is_not() -> None:
    spec = spec_of(spot(), running={"spot#0": place("a", 1)})
    assert evicted(spec) == []


def test_one_of_several_is_found_alone() -> None:
    spec = spec_of(spot(2), running={"spot#0": place("a", 1), "spot#1": place("a", 3)})
    assert evicted(spec) == ["spot#1"]


def test_a_gang_goes_as_a_whole_and_is_found_as_a_whole() -> None:
    gang = spot(2, type="gang")
    assert evicted(spec_of(gang, running={"spot#0": place("a", 1), "spot#1": place("a", 3)})) == []
    assert evicted(spec_of(gang, running={"spot#0": place("a", 2), "spot#1": place("a", 3)})) == ["spot#0"]


def test_two_that_have_room_one_by_one_and_not_together_are_found_one_by_one() -> None:
    work = [spot(gpus=0, cpu=60_000), replace(spot(gpus=0, cpu=30_000), id="more", name="more")]
    spec = spec_of(*work, running={"spot#0": place("a"), "more#0": place("a")})
    assert evicted(spec) == ["more#0", "spot#0"]


def test_a_hard_policy_that_it_would_break_is_a_reason() -> None:
    running = {"spot#0": place("a", 3)}
    assert evicted(spec_of(spot(), running=running, rule=Quota((("gpus", 2000),)))) == []
    assert evicted(spec_of(spot(), running=running, rule=Quota((("gpus", 3000),)))) == ["spot#0"]


def test_a_hard_policy_that_it_broke_today_is_none_where_the_plan_excuses_it() -> None:
    work = [spot(), workload("other", 1, gpus=1)]
    running = {"spot#0": place("a", 2), "other#0": place("a", 3)}
    spec = spec_of(*work, running=running, rule=Quota((("gpus", 1000),)))
    rows = {"other#0": place("a", 3)}
    assert evicted(spec, rows) == []  # `mend` comes before whoever is retained


def test_places_that_are_held_free_are_no_room() -> None:
    rule = Reserve(replicas=1, request=request(1))
    work = [replace(HIGH, id="more", name="more"), spot()]
    spec = spec_of(*work, running={"spot#0": place("a", 3)}, rule=rule, gpus=5)
    full = {**GAINS, "more#0": place("a", 2), "more#1": place("b", 0)}
    plan = plan_for(spec, places(full))
    assert for_nothing(spec, replace(plan, held={"rule": Told(held=(place("a", 3),))})) == []
    assert for_nothing(spec, replace(plan, held={"rule": Told(held=(place("a", 4),))})) == ["spot#0"]


def test_nothing_is_asked_beside_a_hard_policy_that_searches() -> None:
    assert evicted(spec_of(spot(), running={"spot#0": place("a", 3)}, rule=Survive(of="node"))) == []


def test_an_earlier_tier_that_would_be_worse_is_a_reason() -> None:
    spec = spec_of(spot(), running={"spot#0": place("b", 0)})
    assert evicted(spec) == ["spot#0"]
    priced = tuple(replace(each, price=1) for each in spec.cluster.nodes)
    spec = replace(spec, cluster=replace(spec.cluster, nodes=priced))
    assert evicted(replace(spec, objective=Objective(tiers=("cost", "admitted")))) == []


def test_who_would_have_gpus_cut_or_shared_anew_is_not_found() -> None:
    product = "A100-80GB"
    one = workload("spot", roles=[role("", 1, mig_request(product, "1g.10gb"))], preemptible=True)
    spec = make_spec([node("a", 3, accelerator=product)], [HIGH, one])
    spec = replace(spec, accelerators={product: card(product)})
    layout = {"a/2": (Instance("1g.10gb", 0),)}
    runs = (PresentReplica(replica("spot#0"), "a", (2,), "1g.10gb@0"),)
    spec = replace(spec, current=Current(runs, gpus=layout))
    assert evicted(spec) == ["spot#0"]
    more = workload("more", 1, gpus=1, priority=9)
    taken = replace(spec, workloads=(HIGH, more, one))
    assert evicted(taken, {**GAINS, "more#0": place("a", 2)}) == []


def test_who_would_start_anew_on_its_place_is_not_found() -> None:
    product = "A100-80GB"
    one = workload("spot", roles=[role("", 1, mig_request(product, "1g.10gb"))], preemptible=True)
    idle = (Instance("1g.10gb", 0),)
    spec = make_spec([node("a", 3, accelerator=product)], [HIGH, one])
    runs = (PresentReplica(replica("spot#0"), "a", (2,), "1g.10gb@0"),)
    now = Current(runs, gpus={"a/1": idle, "a/2": idle})
    spec = replace(spec, accelerators={product: card(product)}, current=now)
    for unit, found in (("instance", ["spot#0"]), ("gpu", ["spot#0"]), ("node", [])):  # `a/1` is no longer cut
        cluster = replace(spec.cluster, reconfiguration=unit)  # type: ignore[arg-type]
        assert evicted(replace(spec, cluster=cluster)) == found


def test_clients_that_fit_beside_those_who_share_a_gpu_are_found() -> None:
    shares = node("n", 1, mechanism="devicePlugin", sharing=EqualParts())
    work = [workload("high", 1, share=300, priority=9), workload("spot", 1, share=300, preemptible=True)]
    both = {"high#0": place("n", 0), "spot#0": place("n", 0)}
    alone = {"high#0": place("n", 0)}
    assert evicted(make_spec([shares], work, running={"spot#0": place("n", 0)}), alone) == []  # another setting
    assert evicted(make_spec([shares], work, running=both), alone) == ["spot#0"]


def test_the_engine_evicts_whom_it_must() -> None:
    spec = spec_of(spot(4), running={f"spot#{i}": place("a", i) for i in range(4)})
    plan = solve(spec)
    assert sum(each.workload == "spot" for each in plan.placements) == 3
    assert verify(spec, plan).ok
