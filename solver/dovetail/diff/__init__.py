"""The difference of two plans as a value: what changes for whom, and what the change costs (S5.3)."""

from dovetail.diff.compare import comparable, diff, tier_changes
from dovetail.diff.model import Change, ChangeKind, Cost, PlanDiff, PolicyChange, Row, SectionChange, TierChange
from dovetail.diff.shapes import of_rate, serving
from dovetail.diff.today import since_today

__all__ = [
    "Change",
    "ChangeKind",
    "Cost",
    "PlanDiff",
    "PolicyChange",
    "Row",
    "SectionChange",
    "TierChange",
    "comparable",
    "diff",
    "of_rate",
    "serving",
    "since_today",
    "tier_changes",
]
