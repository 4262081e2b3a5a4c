"""Plans: their value, how they are finished from places, and their canonical file (S6)."""

from dovetail.plan.canonical import write
from dovetail.plan.current import current_of
from dovetail.plan.digest import digest
from dovetail.plan.finish import finish
from dovetail.plan.model import (
    AdmissionResult,
    AdmissionState,
    Figure,
    Outcome,
    Plan,
    PolicyOutcome,
    PolicyResult,
    Proof,
    SecondOpinion,
    Status,
    TierResult,
)
from dovetail.plan.plain import gap_of, to_document
from dovetail.plan.reading import plan_of, read

__all__ = [
    "AdmissionResult",
    "AdmissionState",
    "Figure",
    "Outcome",
    "Plan",
    "PolicyOutcome",
    "PolicyResult",
    "Proof",
    "SecondOpinion",
    "Status",
    "TierResult",
    "current_of",
    "digest",
    "finish",
    "gap_of",
    "plan_of",
    "read",
    "to_document",
    "write",
]
