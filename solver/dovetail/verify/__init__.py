"""Verifies a plan from the documents' meaning alone: no solver, and nothing of what found the plan."""

from dovetail.plan import Plan, digest
from dovetail.spec import Spec
from dovetail.verify.case import Case
from dovetail.verify.model import CheckResult, Finding, TierCheck, Verification, lines, to_document
from dovetail.verify.table import DIGEST, TABLE, Check

__all__ = [
    "DIGEST",
    "TABLE",
    "Check",
    "CheckResult",
    "Finding",
    "TierCheck",
    "Verification",
    "lines",
    "to_document",
    "verify",
]


def verify(spec: Spec, plan: Plan) -> Verification:
    """Check a plan against a Spec, by every check of the table."""
    now = digest(spec)
    stale = (Finding(plan.name, "was made for other documents"),) if plan.inputs != now else ()
    first = CheckResult(DIGEST.name, DIGEST.code, stale)
    if stale:
        left_out = (CheckResult(check.name, check.code, ran=False) for check in TABLE)
        return Verification(plan.name, plan.inputs, now, (first, *left_out))
    case = Case(spec, plan)
    results = _run_all(case)
    sound = all(result.ran for result in results)
    return Verification(plan.name, plan.inputs, now, (first, *results), _tiers(case) if sound else ())


def _run_all(case: Case) -> list[CheckResult]:
    """Run the table; where a row names what does not exist, sums over rows would mean nothing."""
    results: list[CheckResult] = []
    sound = True
    for check in TABLE:
        if check.basic or sound:
            findings = tuple(check.run(case))
            results.append(CheckResult(check.name, check.code, findings))
            sound = sound and not (check.basic and findings)
        else:
            results.append(CheckResult(check.name, check.code, ran=False))
    return results


def _tiers(case: Case) -> tuple[TierCheck, ...]:
    if not case.has_plan:
        return ()
    claimed = {tier.name: tier.value for tier in case.plan.tiers}
    return tuple(TierCheck(n, claimed.get(n), case.values.get(n)) for n in dict.fromkeys([*case.values, *claimed]))
