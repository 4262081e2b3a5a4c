"""Soft policies weighed after any tier of the objective: the engine's optimum is brute force's, tier by tier."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.oracle.sample import cases, problems
from tests.support.tiny_specs import tiny

from dovetail.spec import Enforcement, Policy, Spec


def scattered(seed: int) -> Spec:
    """Return the Spec of a seed, of which the policies are soft and weighed all over the objective."""
    rng, spec = Random(f"scattered {seed}"), tiny(seed)
    return replace(spec, policies=tuple(_soft(policy, spec, rng) for policy in spec.policies))


def _soft(policy: Policy, spec: Spec, rng: Random) -> Policy:
    if policy.rule.kind == "topology" or rng.random() < 0.2:
        return policy
    tier = rng.choice([name for name in spec.objective.tiers if name not in ("mend", "admitted")])
    return replace(policy, enforcement=Enforcement("soft", rng.choice((1, 2, 7)), tier))


def test_violations_are_weighed_where_policies_say() -> None:
    found = [
        case for case in cases(300, 60, scattered) if any(p.enforcement.kind == "soft" for p in case.spec.policies)
    ]
    assert problems(found) == []
    told = [tier for case in found for tier in case.plan.tiers if tier.name.startswith("policies[")]
    assert len(told) >= 15
    assert sum(tier.value > 0 for tier in told) >= 3
