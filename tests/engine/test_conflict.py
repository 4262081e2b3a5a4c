"""Conflicts: the policies named cannot hold together, and each of them is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

import pytest
from tests.oracle.brute import TooLarge, brute
from tests.support.specs import current, make_spec, node, place, policy, workload
from tests.support.tiny_specs import tiny

from dovetail.engine import conflict as module
from dovetail.engine.conflict import Conflict, conflict
from dovetail.engine.ladder import solve
from dovetail.engine.solvers.answer import Verdict
from dovetail.progress import Limits, Stop
from dovetail.rules.admission import Admission
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid
from dovetail.rules.separate import Separate
from dovetail.spec import Enforcement, NodeSelector, Policy, Spec, WorkloadSelector


def hard(spec: Spec, seed: int) -> Spec:
    """Return a Spec whose policies are all hard, each of the first workloads to be admitted by one of its own."""
    policies = [replace(each, enforcement=Enforcement()) for each in spec.policies if each.rule.kind != "admission"]
    for each in spec.workloads[: 1 + seed % len(spec.workloads)]:
        policies.append(Policy(f"admit-{each.id}", Admission(), WorkloadSelector(names=(each.id,))))
    return replace(spec, policies=tuple(sorted(policies, key=lambda each: each.name)))


def only(spec: Spec, names: Collection[str]) -> Spec:
    return replace(spec, policies=tuple(each for each in spec.policies if each.name in names))


def test_it_agrees_with_brute_force_and_nothing_in_it_can_be_left_out(tell: object) -> None:
    found: Counter[str] = Counter()
    for seed in range(46):
        spec = hard(tiny(seed), seed)
        try:
            feasible = brute(spec) is not None
        except TooLarge:
            continue
        told = conflict(spec)
        assert told.status == ("feasible" if feasible else "infeasible"), seed
        found[told.status] += 1
        if feasible:
            continue
        assert told.irreducible, seed
        assert told.proof is not None
        assert brute(only(spec, told.policies)) is None, seed
        for name in told.policies:
            assert brute(only(spec, set(told.policies) - {name})) is not None, (seed, name)
        found[f"of {len(told.policies)}"] += 1
    assert found["feasible"] >= 10
    assert found["infeasible"] >= 10
    assert found["of 2"] + found["of 3"] >= 5
    assert callable(tell)
    tell(f"conflicts of tiny specs: {dict(found)}")


def crowded(more: int = 0) -> Spec:
    """Return two tenants that must be admitted, apart, and off one of two nodes; and policies that do not matter."""
    nodes = [node("a"), node("b")]
    works = [workload("one", gpus=1, tenant="red"), workload("two", gpus=1, tenant="blue")]
    policies = [
        policy("all", Admission()),
        policy("apart", Separate("tenant", "node")),
        Policy("not-b", Forbid(), nodes=NodeSelector(names=("b",))),
        *(policy(f"quota-{index:03d}", Quota((("gpus", 2000 + index),), "tenant")) for index in range(more)),
    ]
    return make_spec(nodes, works, policies)


@pytest.mark.parametrize("more", [0, 7, 90])
def test_what_does_not_matter_is_left_out(more: int) -> None:
    told = conflict(crowded(more))
    assert told == Conflict("infeasible", ("all", "apart", "not-b"), (), told.proof)


def test_a_plan_that_cannot_be_names_its_conflict() -> None:
    plan = solve(crowded(3))
    assert plan.outcome.status == "infeasible"
    assert plan.conflict == ("all", "apart", "not-b")


def test_one_policy_alone_may_be_the_conflict() -> None:
    spec = make_spec(
        [node("a")], [workload("big", gpus=9)], [policy("all", Admission()), policy("x", Exclusive("node"))]
    )
    assert conflict(spec).policies == ("all",)


def test_soft_policies_are_no_part_of_a_conflict() -> None:
    spec = crowded()
    soft = [
        replace(each, enforcement=Enforcement("soft", 1)) if each.name == "apart" else each for each in spec.policies
    ]
    assert conflict(replace(spec, policies=tuple(soft))) == Conflict("feasible")


def test_what_is_excused_today_is_no_conflict() -> None:
    today = current({"one#0": place("b", 0), "two#0": place("b", 1)})
    assert conflict(replace(crowded(), current=today)).status == "feasible"


def test_without_a_second_witness_nothing_is_called_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.engine import second_opinion
    from dovetail.engine.proving import certify

    monkeypatch.setattr(certify, "refutation", lambda *given, **named: None)
    assert conflict(crowded()).proof == "two-engines"
    monkeypatch.setattr(second_opinion, "confirm_infeasible", lambda *given, **named: None)
    assert conflict(crowded()) == Conflict("undecided")


def test_what_could_not_be_decided_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = module._Asking.check

    def check(asking: module._Asking, names: Collection[str]) -> object:
        return Verdict.UNKNOWN if "apart" not in names else whole(asking, names)

    monkeypatch.setattr(module._Asking, "check", check)
    told = conflict(crowded())
    assert (told.policies, told.open, told.irreducible) == (("all", "apart", "not-b"), ("apart",), False)
    assert solve(crowded()).conflict == ()


def test_an_interrupt_leaves_it_undecided() -> None:
    stop = Stop()
    stop.set()
    assert conflict(crowded(), stop=stop) == Conflict("undecided")


def test_no_work_leaves_it_undecided() -> None:
    assert conflict(crowded(), Limits(work=1e-9)).status in ("undecided", "infeasible")
