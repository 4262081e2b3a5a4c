"""A scenario beside its base, as a value and as a document of kind WhatIfResult."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail.diff import PlanDiff
from dovetail.diff.document import side_in_full
from dovetail.documents import API_VERSION, as_json
from dovetail.plan import Plan
from dovetail.spec import Spec
from dovetail.whatif.expect import Check
from dovetail.whatif.scenario import Scenario


@dataclass(frozen=True)
class WhatIfResult:
    """Both plans, their difference, and how the expectations fare.

    Parameters
    ----------
    spec : what the scenario's side was planned for, its current state included.
    diff : None where a side has no plan, so that there is nothing to compare.
    """

    scenario: Scenario
    base: Plan
    result: Plan
    spec: Spec
    diff: PlanDiff | None
    checks: tuple[Check, ...] = ()

    @property
    def missed(self) -> tuple[Check, ...]:
        """The expectations that do not hold."""
        return tuple(check for check in self.checks if not check.ok)

    def to_document(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON."""
        difference = self.diff.to_document()["spec"] if self.diff is not None else None
        return {
            "apiVersion": API_VERSION,
            "kind": "WhatIfResult",
            "metadata": {"name": self.scenario.name.rpartition("/")[2]},
            "spec": {
                "scenario": self.scenario.name,
                "patches": [as_json(step.row) for step in self.scenario.steps],
                "base": side_in_full(self.base),
                "result": side_in_full(self.result),
                "delta": difference["delta"] if difference else {},
                "expectations": [_row(check) for check in self.checks],
                **({"diff": difference} if difference else {}),
            },
        }


def _row(check: Check) -> dict[str, Any]:
    return {"expect": as_json(check.expectation.row), "ok": check.ok, "actual": as_json(check.actual)}
