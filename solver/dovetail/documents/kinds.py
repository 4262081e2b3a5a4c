"""The kinds of document, and the version of their format."""

from __future__ import annotations

from typing import Final

API_VERSION: Final = "dovetail/v1alpha1"

READ_KINDS: Final = (
    "Project",
    "Cluster",
    "Accelerator",
    "Workload",
    "Policy",
    "PolicyPack",
    "Waiver",
    "Objective",
    "Placement",
    "Scenario",
    "Sweep",
    "PolicyTest",
)
"""What people write, in canonical order."""

WRITTEN_KINDS: Final = (
    "Plan",
    "Certificate",
    "PlanDiff",
    "Faults",
    "Verification",
    "WhatIfResult",
    "PolicyList",
    "AcceleratorList",
    "RankList",
    "Report",
    "SweepResult",
    "ModelReport",
    "Environment",
    "TestResult",
    "Explanation",
)
"""What dovetail writes."""

ALL_KINDS: Final = READ_KINDS + WRITTEN_KINDS
