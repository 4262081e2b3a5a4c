"""A plan verifies without the state it started from, as far as that can be, and says what was not checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from tests.support.mig_specs import card, mig_request
from tests.support.plans import greedy_plan, plan_for
from tests.support.random_specs import specs
from tests.support.specs import make_spec, node, place, places, policy, replica, request, role, workload
from tests.verify.mutators import MUTATIONS, Mutation, base

from dovetail.mig import Instance
from dovetail.placement import Place
from dovetail.plan import Outcome, Plan, digest, outside_digest
from dovetail.rules import Told
from dovetail.rules.admission import Admission
from dovetail.rules.modes import Modes
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.rules.survive import Survive
from dovetail.spec import Current, EqualParts, Node, Objective, ReplicaId, Setting, Spec, Taint
from dovetail.verify import STATE, Verification, lines, to_document, verify


def outside(spec: Spec) -> Spec:
    """Return a Spec whose state no document tells."""
    return replace(spec, current=replace(spec.current, from_outside=True))


def documents(spec: Spec) -> Spec:
    """Return what the documents alone say."""
    return replace(spec, current=Current())


def moved_outside(spec: Spec, plan: Plan) -> tuple[Spec, Plan]:
    """Return the same as if the state had come from outside; an odd digest of the plan stays odd."""
    there = outside(spec)
    inputs = digest(there) if plan.inputs == digest(spec) else plan.inputs
    return there, replace(plan, inputs=inputs, current=outside_digest(there))


def failed(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.ok}


def unchecked(verification: Verification) -> dict[str, tuple[str, ...]]:
    return {check.name: check.unchecked for check in verification.without_state}


@settings(max_examples=80)
@given(spec=specs())
def test_any_plan_verifies_with_its_state_and_without(spec: Spec) -> None:
    there = outside(spec)
    plan = greedy_plan(there)
    whole = verify(there, plan)
    assert whole.ok
    assert whole.complete
    part = verify(documents(spec), plan)
    assert part.ok, "\n".join(lines(part))
    assert not part.stale
    assert not part.complete
    assert {"protected", "fixed", "retained"} <= unchecked(part).keys()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_broken_check_is_named_or_told_as_not_checked(mutation: Mutation) -> None:
    spec, plan = moved_outside(*mutation.make())
    whole, part = verify(spec, plan), verify(documents(spec), plan)
    assert failed(whole) == {mutation.check} | mutation.also
    assert failed(part) <= failed(whole)
    assert failed(whole) - failed(part) <= unchecked(part).keys()


def test_what_needs_the_state_is_little() -> None:
    missed = set()
    for mutation in MUTATIONS:
        spec, plan = moved_outside(*mutation.make())
        if not failed(verify(documents(spec), plan)):
            missed.add(str(mutation))
    figures = {"evictedReplicas", "restarts"}  # others are told by tiers too
    assert missed == {
        "protected",
        "fixed",
        "retained",
        "precedence",
        "cordons",
        "cordons-shuffled",
        "inside-nodes",  # it may run there already
        "taints",  # NoSchedule: it may run there already
        "layouts-asked-for",  # what is idle may have been cut already
        "layouts-asked-for-idle",
        "modes-asked-for",  # nor need GPUs have had as many clients as they are set to
        "fixed-recut",
        "outcome-refuted",  # what runs may break a hard policy, whatever happens
        "outcome-kept",  # what runs may break policies that hold where nothing is placed
        "ranks-rack",  # of a gang that runs they need not follow the tree
        "ranks-node",
        *(f"summary-{key}" for key in figures),
    }


def test_everything_left_open_is_named() -> None:
    spec, plan = moved_outside(*base())
    assert unchecked(verify(documents(spec), plan)) == {
        "digest": ("current",),
        "cordons": ("y/run#0",),
        "protected": (),
        "fixed": (),
        "retained": (),
        "precedence": (),
        "hard-policies": ("budget",),
        "policy-results": ("budget",),
        "tier-names": ("mend", "retained[0]", "disruption.evicted", "disruption.gpuTimeLost", "disruption.moves"),
        "tier-values": ("retained[0]", "disruption.evicted", "disruption.gpuTimeLost", "disruption.moves"),
        "tier-proofs": ("retained[0]", "disruption.gpuTimeLost", "disruption.moves"),
        "summary": ("evictedWorkloads", "evictedReplicas", "moves", "restarts", "gpuHoursLost"),
    }


def test_text_and_document_tell_it() -> None:
    spec, plan = moved_outside(*base())
    verification = verify(documents(spec), plan)
    said = list(lines(verification))
    assert said[0] == "ok: plan test passes 47 checks"
    assert said[1] == f"  not checked: needs {STATE}"
    assert "    protected" in said
    assert "    cordons: y/run#0" in said
    found = to_document(verification)["spec"]
    assert (found["ok"], found["stale"], found["complete"]) == (True, False, False)
    assert found["current"] == {"plan": plan.current, "given": None}
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["protected"] == {
        "name": "protected",
        "ok": None,
        "code": "DT3501",
        "ran": False,
        "needs": STATE,
    }
    assert checks["cordons"]["ok"] is True
    assert checks["cordons"]["unchecked"] == ["y/run#0"]
    tiers = {tier["name"]: tier for tier in found["tiers"]}
    assert tiers["disruption.moves"]["ok"] is None
    assert tiers["disruption.moves"]["recomputed"] is None
    assert tiers["admitted[100]"] == {**tiers["admitted[100]"], "ok": True}


def stale_words(spec: Spec, plan: Plan) -> str:
    verification = verify(spec, plan)
    assert verification.stale
    assert not verification.broken
    return "\n".join(lines(verification))


def test_a_state_in_a_document_is_the_one_that_a_plan_has_to_start_from() -> None:
    spec, plan = moved_outside(*base())
    stated = replace(spec, current=replace(spec.current, from_outside=False))
    assert verify(stated, plan).complete
    elsewhere = replace(spec, current=Current(spec.current.replicas[:1]))
    assert "started from another state than the one that a Placement document tells" in stale_words(elsewhere, plan)


def test_another_state_makes_a_plan_stale_and_is_named() -> None:
    spec, plan = moved_outside(*base())
    other = replace(spec, current=replace(spec.current, replicas=spec.current.replicas[1:]))
    said = stale_words(other, plan)
    assert "started from another state than the one that --base or --current gives" in said
    assert "other documents" not in said
    assert str(plan.current) in said
    assert str(outside_digest(other)) in said
    changed = replace(other, workloads=other.workloads[1:])
    said = stale_words(changed, plan)
    assert "started from another state" in said
    assert "was made for other documents" in said


def test_a_state_for_a_plan_that_had_none_makes_it_stale() -> None:
    spec, plan = base()
    assert "started without the one that --base or --current gives" in stale_words(outside(spec), plan)


def test_other_documents_make_a_plan_stale_with_the_state_and_without() -> None:
    spec, plan = moved_outside(*base())
    changed = replace(spec, workloads=spec.workloads[1:])
    for other in (changed, documents(changed)):
        assert "was made for other documents" in stale_words(other, plan)
        assert "another state" not in stale_words(other, plan)


def test_a_plan_that_tells_another_state_than_its_own_is_stale() -> None:
    spec, plan = moved_outside(*base())
    forged = replace(plan, current="sha256:" + 64 * "0")
    assert verify(documents(spec), forged).stale
    stated = replace(spec, current=replace(spec.current, from_outside=False))
    for known in (spec, stated):
        said = stale_words(known, forged)
        assert "started from another state" in said
        assert "other documents" not in said
    assert "started without the one that --base or --current gives" in stale_words(spec, replace(plan, current=None))


def excused(told: int, *, admitted: int = 2) -> Verification:
    """Return what is found, without the state, of a plan that keeps to a quota but for what today excuses."""
    spec = outside(
        make_spec(
            [node("n", 4)],
            [workload("w", 4, gpus=1)],
            [policy("q", Quota((("gpus", 1000),)))],
            running={"w#0": place("n", 0), "w#1": place("n", 1)},
        )
    )
    plan = plan_for(spec, places({f"w#{i}": place("n", i) for i in range(admitted)}))
    result = replace(plan.policies["q"], excused=told)
    return verify(documents(spec), replace(plan, policies={"q": result}))


def test_what_a_plan_calls_excused_is_accepted_with_the_note_and_nothing_beyond() -> None:
    fine = excused(1000)
    assert fine.ok
    assert unchecked(fine)["hard-policies"] == unchecked(fine)["policy-results"] == ("q",)
    assert failed(excused(1000, admitted=3)) == {"hard-policies"}
    assert failed(excused(999)) == {"hard-policies", "policy-results"}
    assert failed(excused(1001)) == {"policy-results"}


def test_a_rule_that_excuses_nothing_is_judged_as_ever() -> None:
    spec = outside(
        make_spec(
            [node("n", 1)],
            [workload("w", 2, gpus=1)],
            [policy("all", Admission())],
            running={"w#0": place("n", 0)},
        )
    )
    plan = plan_for(spec, places({"w#0": place("n", 0)}))
    plan = replace(plan, policies={"all": replace(plan.policies["all"], excused=1, result="pass")})
    assert failed(verify(documents(spec), plan)) == {"hard-policies", "policy-results"}


def reasons_without_state(*told: str, proved: bool = True, found: int = 2) -> set[str]:
    """Return what fails, without the state, of a plan that leaves a job out of a quota, for reasons that it tells.

    Parameters
    ----------
    found : the quota in GPUs: beyond 1 there is no reason to be seen.
    """
    quota = policy("q", Quota((("gpus", found * 1000),)))
    spec = outside(make_spec([node("n", 2)], [workload("w", 2, gpus=1)], [quota], running={"w#0": place("n", 0)}))
    plan = plan_for(spec, places({"w#0": place("n", 0)}), "optimal" if proved else "feasible")
    row = replace(plan.admitted["w"], reasons=told)
    return failed(verify(documents(spec), replace(plan, admitted={"w": row})))


@pytest.mark.parametrize("found", [1, 2])
@pytest.mark.parametrize(
    ("told", "proved", "broken"),
    [
        (("DT4106",), True, False),
        (("DT4100",), True, False),
        (("DT4100",), False, False),
        (("DT4100", "DT4106"), False, False),
        (("DT4106",), False, True),
        (("DT4106", "DT4100"), False, True),
        (("DT4100", "DT4106"), True, True),
        (("DT4106", "DT4106"), True, True),
        ((), True, True),
        ((), False, True),
    ],
)
def test_reasons_that_today_decides_are_never_missing(
    found: int, told: tuple[str, ...], proved: bool, broken: bool
) -> None:
    assert reasons_without_state(*told, proved=proved, found=found) == ({"admitted"} if broken else set())


@pytest.mark.parametrize(
    ("told", "proved", "broken"),
    [
        (("DT4110", "DT4102"), True, False),
        (("DT4102", "DT4107"), True, False),
        (("DT4100", "DT4110", "DT4102"), False, False),
        (("DT4110", "DT4102"), False, True),
        (("DT4100", "DT4110"), False, True),
        (("DT4102", "DT4110"), True, True),
        (("DT4110", "DT4102", "DT4107"), True, True),
        (("DT4110",), True, True),
        ((), True, True),
    ],
)
def test_reasons_beside_a_limit_on_moves_are_never_missing(told: tuple[str, ...], proved: bool, broken: bool) -> None:
    running = {"run#0": place("n", 0), "run#1": place("m", 0)}
    work = [workload("w", 1, gpus=2), workload("run", 2, gpus=1, priority=9)]
    nodes = [node("n", 2), node("m", 2)]
    spec = outside(make_spec(nodes, work, [policy("limit", Move(max_moves=0))], running=running))
    plan = plan_for(spec, places(running), "optimal" if proved else "feasible")
    assert plan.admitted["w"].reasons == (("DT4110", "DT4102") if proved else ("DT4100", "DT4110", "DT4102"))
    row = replace(plan.admitted["w"], reasons=told)
    part = verify(documents(spec), replace(plan, admitted={"w": row}))
    assert failed(part) == ({"admitted"} if broken else set())


def test_moves_that_a_plan_itself_tells_beyond_its_budget_are_broken() -> None:
    spec = outside(
        make_spec(
            [node("n", 2)],
            [workload("w", 1, gpus=1)],
            [policy("none", Move(max_moves=0))],
            running={"w#0": place("n", 0)},
        )
    )
    plan = plan_for(spec, places({"w#0": place("n", 1)}))
    assert failed(verify(documents(spec), plan)) == {"hard-policies"}


@pytest.mark.parametrize(("effect", "broken"), [("NoSchedule", False), ("NoExecute", True)])
def test_a_taint_that_drives_nobody_away_is_left_open(effect: Any, broken: bool) -> None:
    spec = outside(make_spec([node("n", 1, taints=(Taint("t", "", effect),))], [workload("w", 1, gpus=1)]))
    verification = verify(documents(spec), plan_for(spec, places({"w#0": place("n", 0)})))
    assert failed(verification) == ({"taints"} if broken else set())
    assert ("taints" in unchecked(verification)) is not broken


@pytest.mark.parametrize(
    ("change", "check"),
    [({"cordoned": True}, "cordons"), ({"taints": (Taint("t", "", "NoSchedule"),)}, "taints"), ({}, "")],
)
def test_what_is_held_free_never_runs_whatever_the_state_is(change: dict[str, Any], check: str) -> None:
    work = [workload("w", 1, gpus=1)]
    held = policy("spare", Reserve(replicas=1, request=request(1)))
    spec = outside(make_spec([node("n", 4, **change), node("m", 4)], work, [held], running={"w#0": place("m", 0)}))
    plan = plan_for(spec, places({"w#0": place("m", 0)}), "feasible")
    told = replace(plan, held={"spare": Told(held=(place("n", 1),))})
    assert failed(verify(documents(spec), told)) - {"summary"} == ({check} if check else set())


def test_tiers_that_no_state_could_give_are_broken() -> None:
    spec, plan = moved_outside(*base())
    bogus = replace(plan.tiers[0], name="retained[100]")  # nothing of that priority is preemptible
    assert "tier-names" in failed(verify(documents(spec), replace(plan, tiers=(bogus, *plan.tiers))))
    part = tuple(tier for tier in plan.tiers if tier.name != "disruption.moves")
    assert failed(verify(documents(spec), replace(plan, tiers=part))) == {"tier-names", "given"}
    turned = (*plan.tiers[:-2], plan.tiers[-1], replace(plan.tiers[-2], given={}))
    assert "tier-names" in failed(verify(documents(spec), replace(plan, tiers=turned)))


def idle_layout(accelerator: str) -> tuple[Spec, Plan]:
    """Return a job beside a GPU that somebody has cut and nobody is on, where the card can be cut."""
    one = Node("n", "g", cpu=10_000, memory=10_000, gpus=2, accelerator=accelerator)
    spec = replace(make_spec([one], [workload("w", 1, gpus=1)]), accelerators={accelerator: card(accelerator)})
    spec = outside(replace(spec, current=Current(gpus={"n/1": (Instance("1g.10gb", 0),)})))
    return spec, plan_for(spec, places({"w#0": place("n", 0)}))


def test_layouts_that_nobody_is_on_may_be_counted() -> None:
    spec, plan = idle_layout("A100-80GB")
    assert plan.summary["gpusRepartitioned"] == 0
    assert verify(spec, plan).ok
    part = verify(documents(spec), plan)
    assert part.ok, "\n".join(lines(part))
    assert "gpusRepartitioned" in unchecked(part)["summary"]
    told = {key: figure for key, figure in plan.summary.items() if key != "gpusRepartitioned"}
    assert failed(verify(spec, replace(plan, summary=told))) == {"summary"}
    plain, other = moved_outside(*base())
    false = replace(other, summary={**other.summary, "gpusRepartitioned": 0})
    assert "summary" in failed(verify(documents(plain), false))  # no card of these can be cut


def restarts_on_an_idle_instance() -> tuple[Spec, Plan]:
    """Return a replica that has to survive, and does on an instance that somebody has made and nobody is on."""
    a100, asked = "A100-80GB", mig_request("A100-80GB", "1g.10gb")
    nodes = [node(name, 1, accelerator=a100) for name in "ab"]
    spec = make_spec(nodes, [workload("w", roles=[role("", 1, asked)])], [policy("lose", Survive(of="node"))])
    spec = replace(spec, accelerators={a100: card(a100)})
    layouts = {f"{name}/0": (Instance("1g.10gb", 0),) for name in "ab"}
    spec = outside(replace(spec, current=Current(gpus=layouts)))
    plan = plan_for(spec, {replica("w#0"): Place("a", (0,), "1g.10gb@0")})
    assert plan.recovery["lose"]["a"]
    return spec, plan


def in_a_mode_of_today() -> tuple[Spec, Plan]:
    """Return a share that nobody else is with, on a GPU that is set to more clients."""
    parts = node("n", 1, mechanism="devicePlugin", sharing=EqualParts())
    told = policy("told", Modes(("whole",)), enforcement="audit")
    spec = make_spec([parts], [workload("w", 1, share=250)], [told], running={"w#0": place("n", 0)})
    spec = outside(replace(spec, current=replace(spec.current, settings={"n/0": Setting("mps", 2)})))
    plan = plan_for(spec, places({"w#0": place("n", 0)}))
    assert plan.policies["told"].violation == 1
    return spec, plan


@pytest.mark.parametrize(
    ("made", "check"),
    [(restarts_on_an_idle_instance, "layouts-asked-for"), (in_a_mode_of_today, "modes-asked-for")],
    ids=["layouts", "modes"],
)
def test_policies_are_judged_on_gpus_as_the_plan_tells_them(
    made: Callable[[], tuple[Spec, Plan]], check: str
) -> None:
    spec, plan = made()
    assert verify(spec, plan).ok
    part = verify(documents(spec), plan)
    assert part.ok, "\n".join(lines(part))
    assert check in unchecked(part)
    other = replace(plan, gpus={k: v for k, v in plan.gpus.items() if k != "b/0"}, shared={})
    assert check in failed(verify(spec, other))
    assert {"policy-results"} <= failed(verify(documents(spec), other))


@pytest.mark.parametrize("gpu", ["nowhere/0", "b/99", "n/99"])
@pytest.mark.parametrize("made", [restarts_on_an_idle_instance, in_a_mode_of_today])
def test_gpus_that_a_plan_makes_up_are_broken_and_no_error(made: Callable[[], tuple[Spec, Plan]], gpu: str) -> None:
    spec, plan = made()
    cut = replace(plan, gpus={**plan.gpus, gpu: (Instance("1g.10gb", 0),)})
    shared = replace(plan, shared={**plan.shared, gpu: Setting("mps", 2)})
    assert not any(verify(judged, each).ok for judged in (spec, documents(spec)) for each in (cut, shared))


@pytest.mark.parametrize("told", [{}, {"a/0": ()}], ids=["no-gpu", "no-instance"])
def test_an_instance_of_a_gpu_that_a_plan_does_not_tell_is_named_beside_survive(told: dict[str, Any]) -> None:
    spec, plan = restarts_on_an_idle_instance()
    other = replace(plan, gpus=told)
    for judged in (spec, documents(spec)):
        assert "instance-tenants" in failed(verify(judged, other))


def test_a_place_held_free_is_no_row_of_a_replica() -> None:
    held = policy("spare", Reserve(replicas=1, request=request(1)))
    spec = outside(make_spec([node("n", 2)], [workload("w", 1, gpus=1)], [held, policy("lose", Survive(of="node"))]))
    plan = plan_for(spec, places({"w#0": place("n", 0)}), "feasible")
    odd = {**plan.placements, ReplicaId("hold:spare", "", 0): place("nowhere", 5)}
    told = replace(plan, placements=odd, held={"spare": Told(held=(place("n", 1),))})
    assert failed(verify(documents(spec), told)) == failed(verify(spec, told)) == {"replicas-exist"}


def beside_a_cordoned_node(*speeds: int) -> tuple[Spec, Plan]:
    """Return a gang that goes on, in part on a fast node that takes nothing new, beside nodes of some speeds."""
    nodes = [node("fast", 1, cordoned=True), *(node(f"n{i}", 1, speed=speed) for i, speed in enumerate(speeds))]
    rows = {"g#0": place("fast", 0), "g#1": place("n0", 0)}
    objective = Objective(tiers=("admitted", "slowest"))
    spec = outside(make_spec(nodes, [workload("g", 2, gpus=1, type="gang")], objective=objective, running=rows))
    return spec, plan_for(spec, places(rows))


@pytest.mark.parametrize(
    ("speeds", "open_names"), [((800,), True), ((800, 900), False)], ids=["only-today", "faster-today"]
)
def test_what_runs_today_may_be_on_a_faster_node_than_any_that_is_open(
    speeds: tuple[int, ...], open_names: bool
) -> None:
    spec, plan = beside_a_cordoned_node(*speeds)
    assert {tier.name: tier.value for tier in plan.tiers}["slowest"] == 400
    assert verify(spec, plan).ok
    part = verify(documents(spec), plan)
    assert part.ok, "\n".join(lines(part))
    assert "slowest" in unchecked(part)["tier-values"]
    assert ("slowest" in unchecked(part).get("tier-names", ())) is open_names


def test_slowest_members_are_counted_where_no_node_is_faster_than_those_that_are_open() -> None:
    spec, plan = beside_a_cordoned_node(800, 1000)
    other = tuple(replace(tier, value=tier.value + 1, bound=None, proof="none") for tier in plan.tiers)
    told = replace(plan, tiers=(*plan.tiers[:-1], other[-1]), outcome=Outcome("feasible"))
    assert told.tiers[-1].name == "slowest"
    assert failed(verify(documents(spec), told)) == {"tier-values"}
