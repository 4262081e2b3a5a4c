"""What a verification says, as a value, a document and a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, replica, request, role, workload
from tests.verify.mutators import base

from dovetail.engine import solve
from dovetail.objectives import tiers_of
from dovetail.plan import Outcome, Plan, SecondOpinion, finish
from dovetail.rules import context_of
from dovetail.rules.admission import Admission
from dovetail.rules.move import Move
from dovetail.rules.promises import Promises
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.rules.survive import Survive
from dovetail.spec import EqualParts, Policy, Setting, Spec, Workload
from dovetail.spec.permits import Ratios
from dovetail.verify import Finding, Verification, lines, to_document, verify
from dovetail.verify.model import CheckResult


def failed(verification: Verification) -> set[str]:
    return {check.name for check in verification.checks if not check.ok}


def test_a_stale_plan_is_not_broken_and_is_asked_nothing_else() -> None:
    spec, plan = base()
    verification = verify(spec, replace(plan, inputs="sha256:" + 64 * "0", summary={}))
    assert verification.stale
    assert verification.broken == ()
    assert not verification.ok
    assert [check.name for check in verification.checks if check.ran] == ["digest"]
    assert next(lines(verification)).startswith("stale")


def test_scaling_a_workload_makes_a_plan_stale() -> None:
    spec, plan = base()
    scaled = make_spec(spec.cluster.nodes, [*spec.workloads[:-1], workload("z/spot", 2, gpus=1, preemptible=True)])
    assert verify(scaled, plan).stale


def test_rows_that_cannot_be_measured_are_named() -> None:
    """A lost node has no room to restart in, a share without a GPU is no client, one replica no width."""
    lost = make_spec([node("a", 1), replace(node("b", 1), down=True)], [workload("w", 2, gpus=1)])
    shared = make_spec([node("n", 1, mechanism="devicePlugin", sharing=EqualParts())], [workload("s", 1, share=500)])
    elastic = role("", 9, request(1), least=8, worths=(8000, 9000))
    wide = make_spec([node("n", 9)], [workload("e", roles=[elastic])])
    survive = policy("lose", Survive(of="node"), enforcement="audit")
    more = policy("more", Promises(Ratios(1500, 1500, 1500)))
    cases = [
        (replace(lost, policies=(survive,)), {"w#0": place("a", 0), "w#1": place("b", 0)}, "health"),
        (shared, {"s#0": place("n")}, "gpu-count"),
        (replace(shared, policies=(more,)), {"s#0": place("n")}, "gpu-count"),
        (wide, {"e#0": place("n", 0)}, "widths"),
    ]
    for spec, rows, check in cases:
        plan = finish(context_of(spec), {}, (), Outcome("feasible"))
        assert check in failed(verify(spec, replace(plan, placements=places(rows))))


def test_sums_are_left_out_where_rows_name_what_does_not_exist() -> None:
    spec, plan = base()
    verification = verify(
        spec, replace(plan, placements={**plan.placements, **places({"x/nobody#0": place("gone")})})
    )
    assert failed(verification) == {"replicas-exist", "nodes-exist"}
    assert not any(check.ran for check in verification.checks if check.name == "cpu")
    assert verification.tiers == ()
    assert any("left out" in line for line in lines(verification))


def test_tiers_are_told_as_claimed_and_as_recomputed() -> None:
    spec, plan = base()
    assert [tier.name for tier in verify(spec, plan).tiers] == [tier.name for tier in plan.tiers]
    lied = replace(plan, tiers=(*plan.tiers[:-1], replace(plan.tiers[-1], value=7)))
    told = verify(spec, lied).tiers[-1]
    assert (told.name, told.claimed, told.recomputed, told.ok) == ("cost", 7, 3_000_000, False)


def test_a_document_names_what_breaks_a_check() -> None:
    spec, plan = base()
    document = to_document(verify(spec, replace(plan, summary={**plan.summary, "moves": 9})))
    assert document["spec"]["ok"] is False
    assert document["spec"]["stale"] is False
    broken = [check for check in document["spec"]["checks"] if not check["ok"]]
    assert broken == [
        {
            "name": "summary",
            "ok": False,
            "code": "DT3801",
            "ran": True,
            "detail": "is told as 9, is 0",
            "subjects": ["moves"],
        }
    ]


def test_an_outcome_without_a_plan_verifies() -> None:
    spec, _ = base()
    none = Outcome("infeasible", proof="certificate")
    assert verify(spec, finish(context_of(spec), {}, (), none, conflict=("quota",))).ok
    assert verify(spec, finish(context_of(spec), {}, (), Outcome("unknown"))).ok


@pytest.mark.parametrize(("name", "broken"), [("quota", set()), ("nobody", {"outcome"}), ("told", {"outcome"})])
def test_a_conflict_names_hard_policies_of_the_documents(name: str, broken: set[str]) -> None:
    spec, _ = base()
    plan = finish(context_of(spec), {}, (), Outcome("infeasible", proof="certificate"), conflict=(name,))
    assert failed(verify(spec, plan)) == broken


def test_a_conflict_is_none_where_nothing_placed_keeps_it_and_nothing_runs() -> None:
    def found(*, quota: int = 1000, conflict: Sequence[str], running: bool = False) -> set[str]:
        rules = [
            policy("all", Admission()),
            policy("few", Quota((("gpus", quota),))),
            policy("spare", Reserve(replicas=1, request=request(1))),
            policy("free", Reserve(domains=1, of="node")),
        ]
        runs = {"w#0": place("n", 0)} if running else {}
        spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], rules, running=runs)
        none = Outcome("infeasible", proof="certificate")
        return failed(verify(spec, finish(context_of(spec), {}, (), none, conflict=conflict)))

    assert found(conflict=("all", "few")) == found(conflict=("spare",)) == found(conflict=("all", "spare")) == set()
    assert found(conflict=("few",)) == found(conflict=("few", "free")) == {"outcome"}
    assert found(conflict=("few",), running=True) == set()


def test_conflicts_that_a_search_finds_hold() -> None:
    rules = [policy("all", Admission()), policy("few", Quota((("gpus", 1000),)))]
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], rules)
    plan = solve(spec)
    assert (plan.outcome.status, plan.conflict) == ("infeasible", ("all",))
    assert verify(spec, plan).ok


def test_an_agreeing_second_opinion_holds() -> None:
    spec, plan = base()
    opinion = SecondOpinion("other", True, {tier.name: tier.value for tier in plan.tiers})
    assert verify(spec, replace(plan, second_opinion=opinion)).ok
    unfinished = replace(opinion, tiers=dict.fromkeys(opinion.tiers), conclusive=False)
    assert verify(spec, replace(plan, second_opinion=unfinished)).ok


def test_an_opinion_of_a_plan_that_can_be_better_says_no_more_than_that() -> None:
    spec, plan = base()
    first, *rest = plan.tiers
    plan = replace(
        plan, tiers=(replace(first, bound=first.value + 5, proof="solver"), *rest), outcome=Outcome("feasible")
    )
    better = {**dict.fromkeys(tier.name for tier in rest), first.name: first.value + 1}
    same = {first.name: first.value + 1, **{tier.name: tier.value for tier in rest}}

    def found(optima: Mapping[str, int | None], *, conclusive: bool) -> set[str]:
        return failed(verify(spec, replace(plan, second_opinion=SecondOpinion("other", True, optima, conclusive))))

    assert found(better, conclusive=False) == set()
    assert found(better, conclusive=True) == found(same, conclusive=False) == {"second-opinion"}


def test_an_opinion_that_there_is_no_plan_is_of_all_tiers_and_has_no_optimum() -> None:
    spec = make_spec([node("n", 1)], [workload("w", 2, gpus=1)], [policy("all", Admission())])
    plan = solve(spec)
    names = [tier.name for tier in tiers_of(context_of(spec))]
    none = SecondOpinion("other", True, dict.fromkeys(names))
    for opinion in (none, replace(none, conclusive=False)):
        assert verify(spec, replace(plan, second_opinion=opinion)).ok
    for told in ({}, {**none.tiers, "nonsense": None}, dict.fromkeys(names, 1)):
        assert failed(verify(spec, replace(plan, second_opinion=replace(none, tiers=told)))) == {"second-opinion"}


def test_a_long_list_of_findings_is_cut_in_text_and_whole_in_documents() -> None:
    many = tuple(Finding(f"n{index}", "is bad") for index in range(30))
    verification = Verification("p", "a", "a", (CheckResult("cpu", "DT3201", many),))
    assert list(lines(verification))[-1] == "    and 10 more"
    assert len(to_document(verification)["spec"]["checks"][0]["subjects"]) == 30


def test_today_excuses_a_hard_policy_as_far_as_it_is_broken_already() -> None:
    def planned(*, admitted: int) -> tuple[Plan, Verification]:
        spec = make_spec(
            [node("n", 4)],
            [workload("w", 4, gpus=1)],
            [policy("q", Quota((("gpus", 1000),)))],
            running={"w#0": place("n", 0), "w#1": place("n", 1)},
        )
        plan = plan_for(spec, places({f"w#{i}": place("n", i) for i in range(admitted)}))
        return plan, verify(spec, plan)

    plan, verification = planned(admitted=2)
    assert verification.ok
    assert (plan.policies["q"].result, plan.policies["q"].violation, plan.policies["q"].excused) == (
        "pass",
        1000,
        1000,
    )
    plan, verification = planned(admitted=3)
    assert failed(verification) == {"hard-policies"}
    assert plan.policies["q"].result == "fail"


def test_preemptible_work_may_go_where_a_higher_priority_gains_or_a_policy_is_mended() -> None:
    nodes = [node("n", 1)]
    work = [workload("high", 1, gpus=1, priority=9), workload("spot", 1, gpus=1, preemptible=True)]
    running = {"spot#0": place("n", 0)}
    gains = make_spec(nodes, work, running=running)
    assert verify(gains, plan_for(gains, places({"high#0": place("n", 0)}))).ok
    mends = make_spec(nodes, work[1:], [policy("none", Quota((("gpus", 0),)))], running=running)
    assert verify(mends, plan_for(mends, {})).ok
    idle = make_spec(nodes, work, running=running)
    assert failed(verify(idle, plan_for(idle, {}))) == {"retained"}


def test_preemptible_work_makes_room_that_hard_policies_hold_together() -> None:
    """Each of them would have its place beside what runs, so today excuses neither."""
    held = [policy(name, Reserve(replicas=1, request=request(1))) for name in ("one", "other")]
    work = [workload("w", gpus=1, preemptible=True), workload("x", gpus=1, preemptible=True)]
    running = {"w#0": place("a", 1), "x#0": place("b", 0)}
    spec = make_spec([node("a", 2), node("b", 1)], work, held, running=running)
    plan = solve(spec)
    assert (plan.outcome.status, list(plan.placements)) == ("optimal", [replica("w#0")])
    assert verify(spec, plan).ok
    view = context_of(spec).view({}, {name: told.held for name, told in plan.held.items()})
    without = finish(context_of(spec), {}, plan.tiers, plan.outcome, held=view.held)
    assert "w#0: is evicted though no higher priority gains" in "; ".join(lines(verify(spec, without)))


def test_a_hard_admission_may_cost_preemptible_work_its_place() -> None:
    spec = make_spec(
        [node("n", 1)],
        [workload("must", 1, gpus=1), workload("spot", 1, gpus=1, preemptible=True)],
        [policy("all", Admission(), workloads=None)],
        running={"spot#0": place("n", 0)},
    )
    names = failed(verify(spec, plan_for(spec, places({"must#0": place("n", 0)}))))
    assert "retained" not in names


def test_preemptible_work_goes_where_a_place_to_hold_would_restart_it_and_it_may_not() -> None:
    """A node's GPUs are all shared or none (device plugin): a whole one to hold sets that of the share anew."""
    shares = node("n", 2, mechanism="devicePlugin", sharing=EqualParts())
    spot = workload("spot", share=500, preemptible=True)
    rules = [policy("keep", Reserve(replicas=1, request=request(1)))]

    def spec_of(spot: Workload, rules: Sequence[Policy]) -> Spec:
        spec = make_spec([shares], [spot], rules, running={"spot#0": place("n", 0)})
        modes = {f"n/{gpu}": Setting("time-slice", 2) for gpu in range(2)}
        return replace(spec, current=replace(spec.current, settings=modes))

    for spec in (
        spec_of(spot, [*rules, policy("still", Move(max_moves=0))]),
        spec_of(replace(spot, movable=False), rules),
    ):
        plan = solve(spec)
        assert (plan.outcome.status, dict(plan.placements)) == ("optimal", {})
        assert verify(spec, plan).ok
    restarts = spec_of(spot, rules)
    assert [str(each) for each in solve(restarts).placements] == ["spot#0"]
    held = {name: told.held for name, told in plan.held.items()}
    idle = finish(context_of(restarts), {}, plan.tiers, plan.outcome, held=held)
    assert "spot#0: is evicted though no higher priority gains" in "; ".join(lines(verify(restarts, idle)))


def test_memory_that_shares_take_is_told_to_the_last_digit() -> None:
    spec = make_spec([node("n", 1)], [workload("w", 3, share=334)])
    plan = plan_for(spec, places({f"w#{index}": place("n", 0) for index in range(3)}))
    assert "n/0: shares take 82083.84 MiB of 81920" in "; ".join(lines(verify(spec, plan)))


def test_memory_that_a_client_lacks_is_told_to_the_last_digit() -> None:
    shared = node("n", 1, mechanism="devicePlugin", sharing=EqualParts(oversubscription=2000))
    spec = make_spec([shared], [workload("w", 2, share=504)])
    plan = plan_for(spec, places({f"w#{index}": place("n", 0) for index in range(2)}))
    told = "; ".join(lines(verify(spec, replace(plan, shared={"n/0": Setting("time-slice", 2)}))))
    assert "w#0: gets less than 41287.68 MiB in mode time-slice with 2 clients" in told
