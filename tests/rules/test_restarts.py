"""Where no more can restart than do, that is known without trying every way (S4.7)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.mig_specs import card, mig_request
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, policy, replica, role, workload

from dovetail.mig import Instance
from dovetail.placement import Place
from dovetail.rules import restarts
from dovetail.rules.survive import Survive
from dovetail.spec import Current

A100 = "A100-80GB"
CUT = tuple(Instance("1g.10gb", start) for start in range(7))


def test_no_way_is_searched_for_more_to_restart_than_instances_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node("a", 4, accelerator=A100), node("b", 1, accelerator=A100), node("c", 2, accelerator=A100)]
    work = [workload("w", roles=[role("", 28, mig_request(A100, "1g.10gb"))])]
    spec = make_spec(nodes, work, [policy("lose", Survive(of="node"), enforcement="audit")])
    layouts = {f"a/{gpu}": CUT for gpu in range(4)} | {"b/0": CUT, "c/0": CUT[:2]}
    spec = replace(spec, accelerators={A100: card(A100)}, current=Current(gpus=layouts))
    rows = {replica(f"w#{i}"): Place("a", (i // 7,), f"1g.10gb@{i % 7}") for i in range(28)}

    def every_way(*_: object) -> None:
        raise AssertionError("nine instances are free, and nine restart")

    monkeypatch.setattr(restarts._Exact, "run", every_way)
    plan = plan_for(spec, rows)
    again = plan.recovery["lose"]["a"]
    assert sorted((p.node, p.gpus, p.instance) for p in again.values()) == sorted(
        [("b", (0,), f"1g.10gb@{i}") for i in range(7)] + [("c", (0,), f"1g.10gb@{i}") for i in range(2)]
    )
    assert plan.policies["lose"].violation == 19
