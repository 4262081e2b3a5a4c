"""What today's state already breaks, and a plan may keep."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.placement import Place, Today, View
from dovetail.rules.base import Violations
from dovetail.rules.scope import Scope
from dovetail.spec import Policy, Spec


def tolerated(spec: Spec, scopes: Mapping[str, Scope], today: Today) -> Mapping[str, Violations]:
    """Return, per hard policy, the violation of each subject that today's state has and a plan may keep (S4.5).

    Where nothing runs nothing is excused: what an empty cluster breaks, nobody has done who could mend it. Policies
    that hold places are asked one after the other, each beside the places that those before it could hold, as no
    place is held twice; those that search a placement of their own, beside the places of them all.
    """
    hard = [policy for policy in spec.policies if policy.enforcement.kind == "hard"]
    if not today.places:
        return {policy.name: {} for policy in hard}
    found, held = dict[str, Violations](), dict[str, tuple[Place, ...]]()
    bare = View(spec, today.places, today)
    order = sorted(hard, key=lambda policy: policy.rule.searches)
    last = max((i for i, policy in enumerate(order) if _minds_places(policy)), default=0)
    for position, policy in enumerate(order):
        rule, scope = policy.rule, scopes[policy.name]
        view = View(spec, today.places, today, dict(held)) if held and _minds_places(policy) else bare
        found[policy.name] = rule.check(view, scope) if rule.grandfathered else {}
        if position < last and (places := rule.could_hold(view, scope)):
            held[policy.name] = places
    return {policy.name: found[policy.name] for policy in hard}


def _minds_places(policy: Policy) -> bool:
    """Tell whether it matters to a policy which places others hold."""
    return policy.rule.searches or bool(policy.rule.placeholders(policy))
