"""Filling nodes as they are wished to be: what was placed by the rules is granted again, in any order of nodes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from tests.support.tiny_specs import tiny

from dovetail.engine.construction.construct import construct
from dovetail.engine.generation import filling
from dovetail.engine.generation.patterns import pattern_of
from dovetail.model.state import State
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Current, Enforcement, Spec


def crowded(seed: int) -> Problem:
    """Return a cluster on which nothing runs, every rule hard, with four times the replicas of services and jobs."""
    spec = tiny(seed)
    workloads = tuple(
        replace(w, roles=tuple(replace(role, replicas=4 * role.replicas) for role in w.roles)) if not w.joint else w
        for w in spec.workloads
    )
    policies = tuple(replace(p, enforcement=Enforcement("hard")) for p in spec.policies if p.rule.kind != "admission")
    return compile_problem(context_of(replace(spec, workloads=workloads, policies=policies, current=Current())))


@pytest.mark.parametrize("start", range(0, 120, 30))
def test_what_rules_allow_in_the_end_is_granted_whatever_comes_first(
    monkeypatch: pytest.MonkeyPatch, start: int
) -> None:
    monkeypatch.setattr(filling, "fill_band", lambda *_: None)  # what is not granted is not put elsewhere either
    monkeypatch.setattr(filling.Mover, "make_way", lambda *_, **__: False)
    granted_at_all = 0
    for seed in range(start, start + 30):
        problem = crowded(seed)
        if any(node.islands or node.sockets for node in problem.nodes):
            continue  # patterns know of none
        state = construct(problem, State(), Stop())
        wished = [(node, pattern_of(problem, fill)) for node, fill in state.fills.items()]
        Random(seed).shuffle(wished)
        granted = filling.filled(problem, State(), wished, Counter(state.admitted()), Stop())
        assert granted.admitted() == state.admitted(), seed
        granted_at_all += len(wished)
    assert granted_at_all
