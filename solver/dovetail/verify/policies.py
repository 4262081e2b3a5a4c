"""Checks of policies, each recomputed by its own rule from the documents alone (S4.4)."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.plan.policies import policies_of
from dovetail.verify.case import Case
from dovetail.verify.model import Finding


def hard_policies(case: Case) -> Iterator[Finding]:
    """Hard policies have no more violation on any subject than today's state excuses (S4.5)."""
    if not case.has_plan:
        return
    violations = case.context.violations(case.view)
    for policy in case.spec.policies:
        if policy.enforcement.kind != "hard":
            continue
        excused = case.context.tolerated.get(policy.name, {})
        for subject, count in sorted(violations[policy.name].items()):
            if count > excused.get(subject, 0):
                told = f", of which today excuses {excused[subject]}" if excused.get(subject) else ""
                yield Finding(policy.name, f"{subject}: {count} {policy.rule.unit}{told}")


def policy_results(case: Case) -> Iterator[Finding]:
    """The plan tells every policy's result as it is."""
    right = policies_of(case.view, case.context) if case.has_plan else {}
    for name in sorted({*right, *case.plan.policies}):
        told, found = case.plan.policies.get(name), right.get(name)
        if told is None or found is None:
            yield Finding(name, "is told, but does not exist" if found is None else "is not told")
        elif told != found:
            yield Finding(
                name, f"is told as {told.result} with {told.violation}, is {found.result} with {found.violation}"
            )
