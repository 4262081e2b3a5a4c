"""What verifying a plan finds, as a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dovetail.documents.kinds import API_VERSION

MOST_SUBJECTS = 20
"""Subjects that a text rendering names per check; documents hold all of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that breaks a check: a replica, node, GPU, workload, policy or tier, and what is wrong with it."""

    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of the table and what breaks it; `ran` is false where an earlier failure took its meaning away."""

    name: str
    code: str
    findings: tuple[Finding, ...] = ()
    ran: bool = True

    @property
    def ok(self) -> bool:
        """Tell whether nothing breaks the check, as far as it ran."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class TierCheck:
    """A tier's value as the plan claims it and as its placements give it; None where there is no such tier."""

    name: str
    claimed: int | None
    recomputed: int | None

    @property
    def ok(self) -> bool:
        """Tell whether both agree."""
        return self.claimed == self.recomputed


@dataclass(frozen=True, slots=True)
class Verification:
    """Everything found.

    A plan is *stale* where it was made for other documents (S6.2); nothing else is then asked of it, so a plan is
    never stale and broken at once. `ok` means neither.
    """

    name: str
    plan_inputs: str
    document_inputs: str
    checks: tuple[CheckResult, ...]
    tiers: tuple[TierCheck, ...] = ()

    @property
    def stale(self) -> bool:
        """Tell whether the plan was made for other documents."""
        return self.plan_inputs != self.document_inputs

    @property
    def broken(self) -> tuple[CheckResult, ...]:
        """The checks that fail, that of the digest left out."""
        return () if self.stale else tuple(check for check in self.checks if not check.ok)

    @property
    def ok(self) -> bool:
        """Tell whether the plan is fresh and nothing is broken."""
        return all(check.ok for check in self.checks)


def to_document(verification: Verification) -> dict[str, Any]:
    """Return a verification as a document of kind Verification; checks that did not run are left out."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Verification",
        "metadata": {"name": verification.name},
        "spec": {
            "ok": verification.ok,
            "stale": verification.stale,
            "inputs": {"plan": verification.plan_inputs, "documents": verification.document_inputs},
            "checks": [_check_row(check) for check in verification.checks if check.ran],
            "tiers": [
                {"name": tier.name, "claimed": tier.claimed, "recomputed": tier.recomputed, "ok": tier.ok}
                for tier in verification.tiers
            ],
        },
    }


def _check_row(check: CheckResult) -> dict[str, Any]:
    row: dict[str, Any] = {"name": check.name, "ok": check.ok, "code": check.code}
    if check.findings:
        row["detail"] = check.findings[0].detail
        row["subjects"] = list(dict.fromkeys(finding.subject for finding in check.findings))
    return row


def lines(verification: Verification) -> Iterator[str]:
    """Yield the lines of a text for people: the verdict, then every failed check with what breaks it."""
    ran = [check for check in verification.checks if check.ran]
    failed = [check for check in ran if not check.ok]
    if verification.stale:
        yield f"stale: plan {verification.name} was made for other documents"
        yield f"  plan      {verification.plan_inputs}"
        yield f"  documents {verification.document_inputs}"
        return
    if not failed:
        yield f"ok: plan {verification.name} passes {len(ran)} checks"
        return
    yield f"broken: plan {verification.name} fails {len(failed)} of {len(ran)} checks"
    for check in failed:
        yield f"  {check.code} {check.name}"
        for finding in check.findings[:MOST_SUBJECTS]:
            yield f"    {finding.subject}: {finding.detail}"
        if len(check.findings) > MOST_SUBJECTS:
            yield f"    and {len(check.findings) - MOST_SUBJECTS} more"
    if skipped := len(verification.checks) - len(ran):
        yield f"  {skipped} checks were left out: they need rows without faults"
