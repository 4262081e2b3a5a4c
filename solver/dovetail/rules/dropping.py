"""A Spec without one of its policies, and without what that stands for."""

from __future__ import annotations

from dataclasses import replace

from dovetail.spec import Spec


def without_policy(spec: Spec, name: str) -> Spec:
    """Return a Spec without a policy and its waivers.

    One that no document names goes with what it stands for: what workloads demand of topology, or nodes of GPUs.
    """
    gone = next((policy for policy in spec.policies if policy.name == name), None)
    bare = spec if gone is None else gone.rule.lifted(spec)
    return replace(
        bare,
        policies=tuple(policy for policy in spec.policies if policy.name != name),
        waivers=tuple(waiver for waiver in spec.waivers if waiver.policy != name),
    )
