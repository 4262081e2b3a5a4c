"""What a model merely counts is measured: an optimum that breaks it does not displace a plan that keeps it."""

from __future__ import annotations

import pytest
from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.linear import Linear
from dovetail.rules.survive import Survive
from dovetail.verify import verify


def test_a_legal_state_stays_where_the_exact_optimum_breaks_what_it_only_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nodes = [node(name, 3) for name in ("a", "b", "c")]
    spec = make_spec(nodes, [workload("w", 3, gpus=2)], [policy("p", Survive(of="node"))])
    optimum = solve(spec)
    assert optimum.outcome.status == "optimal"
    assert len(optimum.placements) == 2  # of a third node a replica's worth has to be idle
    with monkeypatch.context() as blind:
        blind.setattr(
            "dovetail.model.part.not_restarted", lambda part, stakes, failures: {f.name: Linear() for f in failures}
        )
        plan = solve(spec)
    assert plan.outcome.status == "feasible"
    assert plan.placements == optimum.placements
    assert {tier.name: tier.bound for tier in plan.tiers}["admitted[0]"] == 6000  # what was proved holds all the same
    assert verify(spec, plan).ok
