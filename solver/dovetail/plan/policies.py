"""What became of every policy on a finished placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dovetail.placement import Recovery, View
from dovetail.plan.model import Lifted, PolicyOutcome, PolicyResult
from dovetail.rules import Context, Told, Violations
from dovetail.spec import Policy, Spec

_NONE: Violations = {}
_RESULTS: tuple[PolicyOutcome, ...] = ("pass", "waived", "fail")


def policies_of(view: View, context: Context) -> Mapping[str, PolicyResult]:
    """Return the results of all policies by name."""
    violations = context.violations(view)
    return {p.name: _result(p, violations[p.name], context) for p in context.spec.policies}


def held_of(view: View, context: Context) -> Mapping[str, Told]:
    """Return what binding policies hold free on a finished placement, by name."""
    binding = (p for p in context.spec.policies if p.enforcement.kind != "audit")
    told = ((p.name, p.rule.told(view, context.scopes[p.name])) for p in binding)
    return {name: found for name, found in told if found.held or found.untouched}


def recovery_of(view: View, context: Context) -> Recovery:
    """Return where lost replicas restart, by policy and failure case."""
    told = ((p.name, p.rule.told(view, context.scopes[p.name]).recovery) for p in context.spec.policies)
    return {name: found for name, found in told if found}


def _result(policy: Policy, violations: Violations, context: Context) -> PolicyResult:
    excusable = context.tolerated.get(policy.name, _NONE)
    subjects = {subject: count for subject, count in sorted(violations.items()) if count}
    excused = sum(min(count, excusable.get(subject, 0)) for subject, count in subjects.items())
    violation = sum(subjects.values())
    return PolicyResult(
        enforcement=policy.enforcement.kind,
        result=outcome_of(context.spec, policy, broken=violation > excused),
        violation=violation,
        unit=policy.rule.unit,
        subjects=subjects,
        excused=excused,
        waivers=lifted_of(context.spec, policy),
    )


def lifted_of(spec: Spec, policy: Policy) -> Mapping[str, Lifted]:
    """Return the active waivers of a policy that lift it for any workload it selects, by name."""
    selected = [workload for workload in spec.workloads if policy.workloads.selects(workload)]
    found = {
        waiver.name: Lifted(
            waiver.owner, waiver.expires.isoformat(), tuple(w.id for w in selected if waiver.workloads.selects(w))
        )
        for waiver in spec.active_waivers(policy.name)
    }
    return {name: lifted for name, lifted in sorted(found.items()) if lifted.workloads}


def counted_results(results: Iterable[PolicyResult]) -> str:
    """Return how many policies pass, are waived and fail: `3 pass, 1 waived, 1 fails`."""
    counts = Counter(result.result for result in results)
    words = {"pass": ("passes", "pass"), "waived": ("waived", "waived"), "fail": ("fails", "fail")}
    told = ((counts[result], words[result][counts[result] > 1]) for result in _RESULTS)
    return ", ".join(f"{count:,} {word}" for count, word in told if count)


def outcome_of(spec: Spec, policy: Policy, *, broken: bool) -> PolicyOutcome:
    """Return the result of a policy that is broken beyond what today excuses, or that holds."""
    if broken:
        return "fail"
    selected = sum(policy.workloads.selects(workload) for workload in spec.workloads)
    return "waived" if selected > len(spec.matched(policy)) else "pass"
