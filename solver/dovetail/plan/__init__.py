"""Plans: their value, how they are finished from places, and their canonical file (S6)."""

from dovetail.plan.canonical import write
from dovetail.plan.current import current_of
from dovetail.plan.digest import combined, digest, documents_digest, outside_digest, state_digest
from dovetail.plan.finish import finish
from dovetail.plan.model import (
    AdmissionResult,
    AdmissionState,
    BrokenPromise,
    Figure,
    Lifted,
    Outcome,
    Plan,
    PolicyOutcome,
    PolicyResult,
    Proof,
    SecondOpinion,
    Status,
    TierResult,
    relative_gap,
)
from dovetail.plan.opinion import better, confirmed, contradiction, opinion_of, told_twice
from dovetail.plan.options import NameTaken, as_planned, limited
from dovetail.plan.plain import gap_of, to_document
from dovetail.plan.reading import plan_of, read

__all__ = [
    "AdmissionResult",
    "AdmissionState",
    "BrokenPromise",
    "Figure",
    "Lifted",
    "NameTaken",
    "Outcome",
    "Plan",
    "PolicyOutcome",
    "PolicyResult",
    "Proof",
    "SecondOpinion",
    "Status",
    "TierResult",
    "as_planned",
    "better",
    "combined",
    "confirmed",
    "contradiction",
    "current_of",
    "digest",
    "documents_digest",
    "finish",
    "gap_of",
    "limited",
    "opinion_of",
    "outside_digest",
    "plan_of",
    "read",
    "relative_gap",
    "state_digest",
    "to_document",
    "told_twice",
    "write",
]
