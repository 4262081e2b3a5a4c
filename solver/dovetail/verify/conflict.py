"""Checks of why there is no plan, as far as that takes no search (S6.6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dovetail.spec import Policy
from dovetail.verify.case import Case
from dovetail.verify.model import Finding, Found, Open


def conflict(case: Case) -> Iterator[Found]:
    """A conflict is one of hard policies of the documents, and not all of them hold where nothing is placed.

    That no plan keeps them together, and that there is one without any of them, is not judged: it takes a search.
    """
    policies = {policy.name: policy for policy in case.spec.policies}
    named: list[Policy] = []
    for name in case.plan.conflict:
        policy = policies.get(name)
        if policy is None:
            yield Finding(name, "is named in the conflict and is no policy")
        elif policy.enforcement.kind != "hard":
            yield Finding(name, f"is named in the conflict and is {policy.enforcement.kind}: that forbids nothing")
        else:
            named.append(policy)
    if named and not case.known:
        yield from (Open(policy.name) for policy in named)
    elif named and _hold_on_nothing(case, named):
        yield Finding("conflict", "all that it names hold where nothing is placed, and nothing runs that must stay")


def no_plan(case: Case) -> Iterator[Found]:
    """Where there is no plan, one without any place is none: something runs, or breaks a hard policy (S6.4)."""
    status = case.plan.outcome.status
    if status != "infeasible":
        return
    if not case.known:
        yield Open(status)
    elif _hold_on_nothing(case, case.hard):
        yield Finding(status, "is refuted: all hard policies hold where nothing is placed, and nothing runs")


def _hold_on_nothing(case: Case, policies: Iterable[Policy]) -> bool:
    """Tell whether policies hold where nothing is placed and no place is held free, and nothing runs today."""
    if case.context.today.present():
        return False
    view = case.context.view({}, {workload.holds: () for workload in case.spec.placeholders})
    violations = (policy.rule.check(view, case.context.scopes[policy.name]) for policy in policies)
    return not any(count for found in violations for count in found.values())
