"""Checks of policies, each recomputed by its own rule from the documents alone (S4.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dovetail.plan import PolicyResult
from dovetail.plan.policies import held_of, outcome_of, policies_of
from dovetail.quantities import counted
from dovetail.rules import Told, Violations
from dovetail.spec import Policy
from dovetail.verify.case import Case
from dovetail.verify.model import Finding, Found, Open


def hard_policies(case: Case) -> Iterator[Found]:
    """Hard policies have no more violation on any subject than today's state excuses (S4.5)."""
    if not case.has_plan:
        return
    violations = case.context.violations(case.view)
    for policy in case.spec.policies:
        if policy.enforcement.kind == "hard":
            judge = _judged if case.known else _judged_by_word
            yield from judge(case, policy, violations[policy.name])


def _judged(case: Case, policy: Policy, violations: Violations) -> Iterator[Finding]:
    excused = case.context.tolerated.get(policy.name, {})
    for subject, count in sorted(violations.items()):
        if count > excused.get(subject, 0):
            told = f", of which today excuses {excused[subject]}" if excused.get(subject) else ""
            yield Finding(policy.name, f"{subject}: {counted(count, policy.rule.unit)}{told}")


def _judged_by_word(case: Case, policy: Policy, violations: Violations) -> Iterator[Found]:
    """Judge a policy where today is unknown: what the plan calls excused may be so, anything beyond is broken."""
    told = case.plan.policies.get(policy.name)
    excused = told.excused if told is not None and policy.rule.grandfathered else 0
    if policy.rule.needs_current:
        violations = {} if told is None else told.subjects
    if sum(violations.values()) > excused:
        words = f"; in all, the plan calls {excused} excused" if excused else ""
        yield from (
            Finding(policy.name, f"{subject}: {counted(count, policy.rule.unit)}{words}")
            for subject, count in sorted(violations.items())
            if count
        )
    elif excused or policy.rule.needs_current:
        yield Open(policy.name)


def results_of(case: Case) -> Mapping[str, PolicyResult]:
    """Return every policy's result, computed anew; where today is unknown, with what depends on it as told."""
    right = policies_of(case.view, case.context) if case.has_plan else {}
    if case.known:
        return right
    told = case.plan.policies
    return {p.name: _as_told(case, p, told.get(p.name), right[p.name]) for p in case.spec.policies if p.name in right}


def policy_results(case: Case) -> Iterator[Found]:
    """The plan tells every policy's result as it is."""
    right = results_of(case)
    for name in sorted({*right, *case.plan.policies}):
        told, found = case.plan.policies.get(name), right.get(name)
        if told is None or found is None:
            yield Finding(name, "is told, but does not exist" if found is None else "is not told")
            continue
        if not case.known and (found.excused or _of(case, name).rule.needs_current):
            yield Open(name)
        if told != found:
            yield Finding(name, _difference(told, found))


def _of(case: Case, name: str) -> Policy:
    return next(policy for policy in case.spec.policies if policy.name == name)


def held(case: Case) -> Iterator[Finding]:
    """What the plan says is held free counts for its policy, and nothing of it is left out, in any order (S4.7)."""
    right = held_of(case.view, case.context) if case.has_plan else {}
    for name in sorted({*right, *case.plan.held}):
        if _in_order(case.plan.held.get(name)) != _in_order(right.get(name)):
            yield Finding(name, "holds other places or domains than the plan tells")


def _in_order(told: Told | None) -> Told | None:
    """Return what a policy holds free, places and domains in their order."""
    if told is None:
        return None
    return replace(told, held=tuple(sorted(told.held)), untouched=tuple(sorted(told.untouched)))


def recovery(case: Case) -> Iterator[Finding]:
    """Every row of a recovery restarts a lost replica on what is idle then, all rows of a case together (S4.7)."""
    rules = {policy.name: policy.rule for policy in case.spec.policies if policy.rule.searches}
    for name in sorted(case.plan.recovery):
        if name not in rules or not case.has_plan:
            yield Finding(name, "has no failures to recover from")
            continue
        for failure in rules[name].idle_talk(case.view, case.context.scopes[name]):
            yield Finding(name, f"{failure}: a row restarts what was not lost, or where there is no room for it then")


def _difference(told: PolicyResult, found: PolicyResult) -> str:
    if told.waivers != found.waivers:
        return f"is told as waived by {', '.join(told.waivers) or 'none'}, is by {', '.join(found.waivers) or 'none'}"
    return f"is told as {told.result} with {told.violation}, is {found.result} with {found.violation}"


def _as_told(case: Case, policy: Policy, told: PolicyResult | None, found: PolicyResult) -> PolicyResult:
    """Return what a plan should tell of a policy where today is unknown: what depends on today is as told."""
    if told is None:
        return found
    subjects = told.subjects if policy.rule.needs_current else found.subjects
    violation = sum(subjects.values())
    may_excuse = policy.enforcement.kind == "hard" and policy.rule.grandfathered
    excused = min(told.excused, violation) if may_excuse else 0
    return PolicyResult(
        enforcement=found.enforcement,
        result=outcome_of(case.spec, policy, broken=violation > excused),
        violation=violation,
        unit=found.unit,
        subjects=subjects,
        excused=excused,
        waivers=found.waivers,
    )
