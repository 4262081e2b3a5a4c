"""What verifying a plan finds, as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.documents.kinds import API_VERSION
from dovetail.plan import PolicyResult
from dovetail.plan.plain import by_bytes, policy_row
from dovetail.plan.policies import counted_results
from dovetail.quantities import counted

STATE = "the state the plan started from (--base or --current)"
SOUND_ROWS = "rows without faults"
SAME_DOCUMENTS = "a plan that was made for these documents"
MOST_SUBJECTS = 20
"""Subjects that a text rendering names per check; documents hold all of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that breaks a check: a replica, node, GPU, workload, policy or tier, and what is wrong with it."""

    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Open:
    """One thing that a check cannot judge without knowing the state that the plan started from."""

    subject: str


Found = Finding | Open


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of the table and what breaks it.

    Parameters
    ----------
    ran : false where something is missing that all of the check needs.
    needs : what is missing, for the whole check or for the subjects in `unchecked`.
    """

    name: str
    code: str
    findings: tuple[Finding, ...] = ()
    ran: bool = True
    needs: str = ""
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Tell whether nothing breaks the check, as far as it ran."""
        return not self.findings

    @property
    def complete(self) -> bool:
        """Tell whether all of the check ran."""
        return self.ran and not self.unchecked


@dataclass(frozen=True, slots=True)
class TierCheck:
    """A tier's value as the plan claims it and as its placements give it; None where there is no such tier.

    `needs` says what is missing to compute it.
    """

    name: str
    claimed: int | None
    recomputed: int | None
    needs: str = ""

    @property
    def ok(self) -> bool | None:
        """Tell whether both agree, None where that cannot be told."""
        return None if self.needs else self.claimed == self.recomputed


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything found.

    A plan is *stale* where it was made for other documents (S6.2); nothing else is then asked of it, so a plan is
    never stale and broken at once. `ok` means neither; `complete` that every check ran in full.

    Parameters
    ----------
    plan_inputs, document_inputs : the digests that are compared; a plan that tells the digest of the state it started
        from is compared with the documents and that state, unless another one is given.
    policies : what became of each policy, computed anew.
    plan_current, given_current : digests of the state the plan started from and of the one given, where either came
        from outside the documents.
    """

    name: str
    plan_inputs: str
    document_inputs: str
    checks: tuple[CheckResult, ...]
    tiers: tuple[TierCheck, ...] = ()
    policies: Mapping[str, PolicyResult] = field(default_factory=dict)
    plan_current: str | None = None
    given_current: str | None = None

    @property
    def stale(self) -> bool:
        """Tell whether the plan was made for other documents, or tells another state than the one that is given."""
        other_state = self.given_current is not None and self.given_current != self.plan_current
        return other_state or self.plan_inputs != self.document_inputs

    @property
    def broken(self) -> tuple[CheckResult, ...]:
        """The checks that fail, that of the digest left out."""
        return () if self.stale else tuple(check for check in self.checks if not check.ok)

    @property
    def ok(self) -> bool:
        """Tell whether the plan is fresh and nothing is broken."""
        return all(check.ok for check in self.checks)

    @property
    def complete(self) -> bool:
        """Tell whether every check ran in full."""
        return all(check.complete for check in self.checks)

    @property
    def without_state(self) -> tuple[CheckResult, ...]:
        """The checks, or parts of them, that the state the plan started from is missing for."""
        return tuple(check for check in self.checks if check.needs == STATE)


def to_document(verification: Verification) -> dict[str, Any]:
    """Return a verification as a document of kind Verification."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Verification",
        "metadata": {"name": verification.name},
        "spec": {
            "ok": verification.ok,
            "stale": verification.stale,
            "complete": verification.complete,
            "inputs": {"plan": verification.plan_inputs, "documents": verification.document_inputs},
            **_current(verification),
            "checks": [_check_row(check) for check in verification.checks],
            "tiers": [_tier_row(tier) for tier in verification.tiers],
            "policies": {name: policy_row(result) for name, result in by_bytes(verification.policies)},
        },
    }


def _current(verification: Verification) -> dict[str, Any]:
    told = {"plan": verification.plan_current, "given": verification.given_current}
    return {"current": told} if any(told.values()) else {}


def _tier_row(tier: TierCheck) -> dict[str, Any]:
    row = {"name": tier.name, "claimed": tier.claimed, "recomputed": tier.recomputed, "ok": tier.ok}
    return {**row, "needs": tier.needs} if tier.needs else row


def _check_row(check: CheckResult) -> dict[str, Any]:
    row: dict[str, Any] = {"name": check.name, "ok": check.ok if check.ran else None, "code": check.code}
    row["ran"] = check.ran
    if check.needs:
        row["needs"] = check.needs
    if check.unchecked:
        row["unchecked"] = list(check.unchecked)
    if check.findings:
        row["detail"] = check.findings[0].detail
        row["subjects"] = list(dict.fromkeys(finding.subject for finding in check.findings))
    return row


def lines(verification: Verification) -> Iterator[str]:
    """Yield the lines of a text for people: the verdict, then every failed check with what breaks it."""
    ran = [check for check in verification.checks if check.ran]
    failed = [check for check in ran if not check.ok]
    if verification.stale:
        yield from _stale_lines(verification)
        return
    if not failed:
        yield f"ok: plan {verification.name} passes {len(ran)} checks"
        yield from _unchecked_lines(verification)
        yield from _policy_lines(verification)
        return
    yield f"broken: plan {verification.name} fails {len(failed)} of {len(ran)} checks"
    for check in failed:
        yield f"  {check.code} {check.name}"
        for finding in check.findings[:MOST_SUBJECTS]:
            yield f"    {finding.subject}: {finding.detail}"
        if len(check.findings) > MOST_SUBJECTS:
            yield f"    and {len(check.findings) - MOST_SUBJECTS} more"
    if skipped := sum(check.needs == SOUND_ROWS for check in verification.checks):
        yield f"  {skipped} checks were left out: they need {SOUND_ROWS}"
    yield from _unchecked_lines(verification)
    yield from _policy_lines(verification)


def _policy_lines(verification: Verification) -> Iterator[str]:
    """Yield how the policies fare, counted, and by name those that do not simply pass."""
    results = verification.policies
    if not results:
        return
    yield f"  policies: {counted_results(results.values())}"
    for name, result in sorted(results.items()):
        if result.result == "fail":
            yield f"    {name} ({result.enforcement}) fails: {counted(result.violation, result.unit)}"
        for waiver, lifted in result.waivers.items():
            by = f"until {lifted.until} by {waiver} ({lifted.owner})"
            yield f"    {name} ({result.enforcement}) is waived for {_some(lifted.workloads)} {by}"


def _some(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1:,} more" if len(names) > 1 else names[0]


def _stale_lines(verification: Verification) -> Iterator[str]:
    for finding in verification.checks[0].findings:
        yield f"stale: plan {finding.subject} {finding.detail}"
    yield f"  plan      {verification.plan_inputs}"
    yield f"  documents {verification.document_inputs}"
    if verification.given_current is not None:
        yield f"  the plan's state {verification.plan_current or 'is that of the documents'}"
        yield f"  the given state  {verification.given_current}"


def _unchecked_lines(verification: Verification) -> Iterator[str]:
    if not verification.without_state:
        return
    yield f"  not checked: needs {STATE}"
    for check in verification.without_state:
        named = check.unchecked[:MOST_SUBJECTS]
        rest = f" and {len(check.unchecked) - len(named)} more" if len(check.unchecked) > len(named) else ""
        yield f"    {check.name}" + (f": {', '.join(named)}{rest}" if named else "")
