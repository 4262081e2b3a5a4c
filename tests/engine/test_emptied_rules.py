"""The verifier catches a rule that no longer constrains the engine: with an emptied `encode` a hard policy breaks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.support.specs import make_spec, node, place, policy, request, workload

from dovetail.engine import solve
from dovetail.rules import TABLE, Rule
from dovetail.rules.admission import Admission
from dovetail.rules.colocate import Colocate
from dovetail.rules.exclusive import Exclusive
from dovetail.rules.modes import Modes
from dovetail.rules.move import Move
from dovetail.rules.quota import Quota
from dovetail.rules.require import Forbid, Require
from dovetail.rules.reserve import Reserve
from dovetail.rules.separate import Separate
from dovetail.rules.sharing import Sharing
from dovetail.rules.spread import Spread
from dovetail.rules.survive import Survive
from dovetail.spec import NodeSelector, Spec, WorkloadSelector
from dovetail.verify import verify


def _two_on_one_node(rule: Rule, workloads: WorkloadSelector | None = None) -> Spec:
    return make_spec(
        [node("a", 2)],
        [workload("red/one", 1, gpus=1), workload("blue/two", 1, gpus=1)],
        [policy("p", rule, workloads=workloads)],
    )


def _placed_by_price(rule: Rule) -> Spec:
    """One replica, a dear node and a free one; the policy names the free one."""
    nodes = [node("dear", 1, price=5), node("free", 1)]
    match = NodeSelector(names=("dear" if isinstance(rule, Require) else "free",))
    return make_spec(nodes, [workload("w", 1, gpus=1)], [policy("p", rule, nodes=match)])


def _moved_together(rule: Rule) -> Spec:
    return make_spec(
        [node("a", 2), node("b", 2)],
        [workload("run", 2, gpus=1), workload("wide", 1, gpus=2)],
        [policy("p", rule)],
        running={"run#0": place("a", 0), "run#1": place("b", 0)},
    )


def _wanted_by_a_low_priority() -> Spec:
    must = policy("p", Admission(), workloads=WorkloadSelector(names=("low",)))
    return make_spec([node("a", 1)], [workload("low", 1, gpus=1), workload("high", 1, gpus=1, priority=9)], [must])


SPECS: Mapping[str, Spec] = {
    "separate": _two_on_one_node(Separate(by="tenant", at="node")),
    "spread": make_spec(
        [node("a", 2), node("b", 2, price=5)],
        [workload("w", 2, gpus=1)],
        [policy("p", Spread(over="node", max_per_domain=1))],
    ),
    "exclusive": _two_on_one_node(Exclusive(at="node"), WorkloadSelector(tenants=("red",))),
    "colocate": make_spec(
        [node("a", 1), node("b", 1)], [workload("w", 2, gpus=1)], [policy("p", Colocate(by="workload", at="node"))]
    ),
    "require": _placed_by_price(Require()),
    "forbid": _placed_by_price(Forbid()),
    "sharing": make_spec(
        [node("a", 1), node("b", 1, price=5)], [workload("w", 2, share=250)], [policy("p", Sharing(1))]
    ),
    "quota": _two_on_one_node(Quota(limits=(("gpus", 1000),))),
    "reserve": make_spec([node("a", 2)], [workload("w", 2, gpus=1)], [policy("p", Reserve(1, request(1)))]),
    "survive": make_spec([node("a", 2), node("b", 2)], [workload("w", 4, gpus=1)], [policy("p", Survive(of="node"))]),
    "move": _moved_together(Move(never=True)),
    "admission": _wanted_by_a_low_priority(),
}


def test_every_rule_has_its_spec() -> None:
    assert set(SPECS) == set(TABLE)


OTHERS: Mapping[type[Rule], Spec] = {
    Modes: make_spec(
        [node("a", 1), node("b", 1, price=5)], [workload("w", 1, gpus=1)], [policy("p", Modes(("mig", "mps")))]
    ),
}
"""Rules that share their name with another one of the table."""


@pytest.mark.parametrize("rule", [*TABLE.values(), *OTHERS], ids=lambda rule: rule.__name__)
def test_an_emptied_rule_is_caught(rule: type[Rule], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OTHERS.get(rule) or SPECS[rule.kind]
    plan = solve(spec)
    assert plan.outcome.status == "optimal"
    assert verify(spec, plan).ok
    monkeypatch.setattr(rule, "encode", lambda self, part, scope: {})
    monkeypatch.setattr(rule, "guard", lambda self, scope: None)
    monkeypatch.setattr(rule, "searches", False)  # else the engine itself would see it, and give no plan
    broken = solve(spec)
    assert broken.placements
    monkeypatch.undo()
    failed = {check.name for check in verify(spec, broken).checks if check.findings}
    assert failed == {"hard-policies"}
