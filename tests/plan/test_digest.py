"""The digest follows the documents' meaning and nothing else (S6.2)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.specs import CARDS, make_spec, node, place, policy, request, role, workload

from dovetail.plan import combined, digest, documents_digest, outside_digest
from dovetail.rules.move import Move, Window
from dovetail.rules.quota import Quota
from dovetail.spec import (
    Current,
    Enforcement,
    Objective,
    Requirement,
    Spec,
    Taint,
    Toleration,
    Waiver,
    WorkloadSelector,
)

WAIVER = Waiver("pilot", "q", WorkloadSelector(names=("b/w",)), "why", "who", dt.date(2026, 12, 31))


def spec() -> Spec:
    return make_spec(
        [node("n0", 4, labels={"a": "1", "b": "2"}, taints=(Taint("t"), Taint("u"))), node("n1", 4, price=5)],
        [
            workload("a/w", roles=[role("x", 1, request(1)), role("y", 2, request(cpu=5))], labels={"k": "v"}),
            workload("b/w", 2, gpus=1, tolerations=(Toleration("t", "Exists"), Toleration("u", "Exists"))),
        ],
        [policy("p", Quota((("gpus", 1), ("cpu", 2)))), policy("q", Quota((("gpus", 2),)), enforcement=3)],
        running={"b/w#0": place("n0", 1)},
        waivers=[WAIVER],
        as_of=dt.date(2026, 1, 1),
    )


def test_the_order_of_what_has_none_means_nothing() -> None:
    first = spec()
    nodes = tuple(
        replace(n, labels=dict(reversed(list(n.labels.items()))), taints=n.taints[::-1])
        for n in reversed(first.cluster.nodes)
    )
    second = replace(
        first,
        cluster=replace(first.cluster, nodes=nodes),
        workloads=tuple(
            replace(w, roles=w.roles[::-1], tolerations=w.tolerations[::-1]) for w in reversed(first.workloads)
        ),
        policies=tuple(
            replace(p, rule=replace(p.rule, limits=p.rule.limits[::-1]))  # type: ignore[attr-defined, type-var]
            for p in reversed(first.policies)
        ),
    )
    assert digest(second) == digest(first)


NEUTRAL: dict[str, Callable[[Spec], Spec]] = {
    "project name": lambda s: replace(s, name="other"),
    "objective name": lambda s: replace(s, objective=replace(s.objective, name="other")),
    "policy origin": lambda s: replace(s, policies=tuple(replace(p, origin="pack") for p in s.policies)),
    "unused accelerator": lambda s: replace(s, accelerators={k: v for k, v in CARDS.items() if k != "L4"}),
    "accelerator source": lambda s: replace(
        s, accelerators={k: replace(v, source="page", verified=False) for k, v in CARDS.items()}
    ),
    "day before the waiver ends": lambda s: replace(s, as_of=dt.date(2026, 12, 31)),
    "waiver reason": lambda s: replace(s, waivers=(replace(WAIVER, reason="other"),)),
}


@pytest.mark.parametrize("change", NEUTRAL.values(), ids=NEUTRAL)
def test_what_means_nothing_leaves_the_digest(change: Callable[[Spec], Spec]) -> None:
    assert digest(change(spec())) == digest(spec())


def _node(**fields: Any) -> Callable[[Spec], Spec]:
    return lambda s: replace(
        s, cluster=replace(s.cluster, nodes=(replace(s.cluster.nodes[0], **fields), *s.cluster.nodes[1:]))
    )


def _workload(**fields: Any) -> Callable[[Spec], Spec]:
    return lambda s: replace(s, workloads=(replace(s.workloads[0], **fields), *s.workloads[1:]))


def _policy(**fields: Any) -> Callable[[Spec], Spec]:
    return lambda s: replace(s, policies=(replace(s.policies[0], **fields), *s.policies[1:]))


MEANINGFUL: dict[str, Callable[[Spec], Spec]] = {
    "node name": _node(name="n9"),
    "node price": _node(price=6),
    "failed GPU": _node(failed_gpus=frozenset({1})),
    "cordon": _node(cordoned=True),
    "labels": _node(labels={"a": "2"}),
    "taint effect": _node(taints=(Taint("t", "", "NoExecute"), Taint("u"))),
    "levels": lambda s: replace(s, cluster=replace(s.cluster, levels=("node",))),
    "card memory": lambda s: replace(s, accelerators={k: replace(v, memory=1) for k, v in CARDS.items()}),
    "priority": _workload(priority=3),
    "role count": _workload(roles=(role("x", 2, request(1)), role("y", 2, request(cpu=5)))),
    "observed": _workload(roles=(role("x", 1, request(1), observed=5), role("y", 2, request(cpu=5)))),
    "movable": _workload(movable=False),
    "limit": _policy(rule=Quota((("gpus", 2), ("cpu", 1)))),
    "enforcement": _policy(enforcement=Enforcement("audit")),
    "selector": _policy(workloads=WorkloadSelector(match_expressions=(Requirement("k", "Exists"),))),
    "bands": lambda s: replace(s, objective=Objective(bands=(5, 0))),
    "order of tiers": lambda s: replace(s, objective=Objective(tiers=("cost", "admitted"))),
    "order of disruption": lambda s: replace(s, objective=Objective(disruption=("moves", "evicted", "gpuTimeLost"))),
    "current state": lambda s: replace(s, current=Current()),
    "elapsed": lambda s: replace(s, current=replace(s.current, elapsed={"b/w": 5})),
    "day after the waiver ends": lambda s: replace(s, as_of=dt.date(2027, 1, 1)),
    "waiver owner": lambda s: replace(s, waivers=(replace(WAIVER, owner="other"),)),
    "waiver end": lambda s: replace(s, waivers=(replace(WAIVER, expires=dt.date(2026, 12, 30)),)),
}


@pytest.mark.parametrize("change", MEANINGFUL.values(), ids=MEANINGFUL)
def test_what_means_something_changes_the_digest(change: Callable[[Spec], Spec]) -> None:
    assert digest(change(spec())) != digest(spec())


def test_the_date_alone_means_nothing_without_waivers() -> None:
    plain = replace(spec(), waivers=())
    assert digest(replace(plain, as_of=None)) == digest(plain)


def test_a_state_from_outside_is_a_part_of_its_own() -> None:
    outside = replace(spec(), current=replace(spec().current, from_outside=True))
    without = replace(spec(), current=Current())
    assert documents_digest(outside) == documents_digest(without) != documents_digest(spec())
    assert outside_digest(spec()) is None
    assert digest(outside) == combined(documents_digest(without), outside_digest(outside))
    assert len({digest(outside), digest(without), digest(spec())}) == 3


def test_a_state_has_one_digest_with_any_documents() -> None:
    current = replace(spec().current, from_outside=True)
    other = make_spec([node("n", 1)])
    assert outside_digest(replace(spec(), current=current)) == outside_digest(replace(other, current=current))
    empty = replace(other, current=Current(from_outside=True))
    assert digest(empty) != digest(other)


def test_the_digest_of_a_spec_is_pinned() -> None:
    """A digest that changes makes every committed plan stale: if this fails, that must be meant."""
    assert digest(spec()) == "sha256:9803db64ff4e7ee7179e64e3f488435cc2896b3343eda0580d068bce983baec4"


def test_a_rule_that_depends_on_the_date_changes_the_digest_when_a_window_opens_and_not_daily() -> None:
    rule = Move(only_in=(Window(("saturday", "sunday")),))
    weekends = replace(spec(), waivers=(), policies=(policy("weekends", rule),))
    days = [digest(replace(weekends, as_of=dt.date(2026, 6, day))) for day in range(1, 15)]
    assert days[0] != days[5]
    assert days == [days[0]] * 5 + [days[5]] * 2 + [days[0]] * 5 + [days[5]] * 2
