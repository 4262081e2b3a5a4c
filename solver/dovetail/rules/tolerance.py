"""What today's state already breaks, and a plan may keep."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.placement import Today, View
from dovetail.rules.base import Violations
from dovetail.rules.scope import Scope
from dovetail.spec import Spec


def tolerated(spec: Spec, scopes: Mapping[str, Scope], today: Today) -> Mapping[str, Violations]:
    """Return, per hard policy, the violation of each subject that today's state has and a plan may keep (S4.5).

    Where nothing runs nothing is excused: what an empty cluster breaks, nobody has done who could mend it.
    """
    if not today.places:
        return {policy.name: {} for policy in spec.policies if policy.enforcement.kind == "hard"}
    view = View(spec, today.places, today)
    return {
        policy.name: policy.rule.check(view, scopes[policy.name]) if policy.rule.grandfathered else {}
        for policy in spec.policies
        if policy.enforcement.kind == "hard"
    }
