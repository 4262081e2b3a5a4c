"""Verifies a plan from the documents' meaning alone: no solver, and nothing of what found the plan."""

from collections.abc import Iterator
from dataclasses import replace

from dovetail.collector import collector_paused
from dovetail.placement import Places
from dovetail.plan import Outcome, Plan, as_planned, combined, documents_digest, outside_digest
from dovetail.spec import Current, Spec
from dovetail.verify.case import Case
from dovetail.verify.model import (
    SAME_DOCUMENTS,
    SOUND_ROWS,
    STATE,
    CheckResult,
    Finding,
    Open,
    TierCheck,
    Verification,
    lines,
    to_document,
)
from dovetail.verify.placed import Check
from dovetail.verify.policies import results_of
from dovetail.verify.sharing import shared_by
from dovetail.verify.table import CERTIFICATE, DIGEST, TABLE

__all__ = [
    "CERTIFICATE",
    "DIGEST",
    "STATE",
    "TABLE",
    "Check",
    "CheckResult",
    "Finding",
    "TierCheck",
    "Verification",
    "impossible",
    "lines",
    "to_document",
    "verify",
]


def verify(spec: Spec, plan: Plan) -> Verification:
    """Check a plan against a Spec, by every check of the table.

    The limits that the plan was made with are added to the Spec. Where the plan started from a state that came from
    outside the documents, it has to be the one that the Spec has; where the Spec has none, that state is unknown, and
    what needs it is not checked.
    """
    with collector_paused():
        return _verified(as_planned(spec, plan), plan)


def _verified(spec: Spec, plan: Plan) -> Verification:
    """Check a plan against a Spec that has the limits that the plan was made with."""
    stated = spec.current != Current() and not spec.current.from_outside
    known = plan.current is None or stated or spec.current.from_outside
    if plan.current is not None:
        spec = replace(spec, current=replace(spec.current, from_outside=True))
    given = outside_digest(spec) if known else None
    documents = documents_digest(spec)
    bare = Verification(
        name=plan.name,
        plan_inputs=plan.inputs,
        document_inputs=combined(documents, given if known else plan.current),
        checks=(),
        plan_current=plan.current,
        given_current=given,
    )
    if bare.stale:
        first = CheckResult(DIGEST.name, DIGEST.code, tuple(_staleness(plan, documents, given, stated=stated)))
        rest = (CheckResult(check.name, check.code, ran=False, needs=SAME_DOCUMENTS) for check in TABLE)
        return replace(bare, checks=(first, *rest))
    case = Case(spec, plan, known)
    results = _run_all(case)
    sound = all(result.needs != SOUND_ROWS for result in results)
    found = replace(bare, checks=(_fresh(known), *results))
    return replace(found, tiers=_tiers(case), policies=results_of(case)) if sound else found


def impossible(spec: Spec, places: Places) -> Iterator[tuple[Check, Finding]]:
    """Yield what is wrong with places by themselves, whatever policies say: rows, capacity, what nodes take in.

    Sums over rows are made only where each row names what exists.
    """
    bare = Plan(spec.name, "", Outcome("feasible"), placements=places)
    known = Case(spec, bare)
    case = Case(spec, replace(bare, gpus=known.view.layouts, shared=shared_by(known)))
    sound = True
    for check in TABLE:
        if check.of_places and (check.basic or sound):
            for found in check.run(case):
                sound = sound and not check.basic
                if isinstance(found, Finding):
                    yield check, found


def _staleness(plan: Plan, documents: str, given: str | None, *, stated: bool) -> Iterator[Finding]:
    """Yield why a plan is stale: the state that is given, or `stated` by a Placement, the documents, or both."""
    if given is not None and given != plan.current:
        told = "from another state than" if plan.current is not None else "without"
        source = "a Placement document tells" if stated else "--base or --current gives"
        yield Finding(plan.name, f"started {told} the one that {source}")
        if plan.current is None or plan.inputs in (combined(documents, plan.current), combined(documents, given)):
            return
    yield Finding(plan.name, "was made for other documents")


def _fresh(known: bool) -> CheckResult:
    if known:
        return CheckResult(DIGEST.name, DIGEST.code)
    return CheckResult(DIGEST.name, DIGEST.code, needs=STATE, unchecked=("current",))


def _run_all(case: Case) -> list[CheckResult]:
    """Run the table; where a row names what does not exist, sums over rows would mean nothing."""
    results: list[CheckResult] = []
    sound = True
    for check in TABLE:
        if not check.basic and not sound:
            results.append(CheckResult(check.name, check.code, ran=False, needs=SOUND_ROWS))
        elif check.of_today and not case.known:
            results.append(CheckResult(check.name, check.code, ran=False, needs=STATE))
        else:
            results.append(_run(check, case))
            sound = sound and not (check.basic and not results[-1].ok)
    return results


def _run(check: Check, case: Case) -> CheckResult:
    found = tuple(check.run(case))
    findings = tuple(each for each in found if isinstance(each, Finding))
    unchecked = tuple(dict.fromkeys(each.subject for each in found if isinstance(each, Open)))
    return CheckResult(check.name, check.code, findings, needs=STATE if unchecked else "", unchecked=unchecked)


def _tiers(case: Case) -> tuple[TierCheck, ...]:
    if not case.has_plan:
        return ()
    claimed = {tier.name: tier.value for tier in case.plan.tiers}
    names = dict.fromkeys([*(tier.name for tier in case.tiers), *claimed])
    return tuple(
        TierCheck(name, claimed.get(name), case.values.get(name), STATE if name in case.unknown_values else "")
        for name in names
    )
