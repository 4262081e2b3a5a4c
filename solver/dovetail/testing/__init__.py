"""Tests of policies and expectations of scenarios: read, held to the project, run, told."""

from dovetail.testing.document import to_document
from dovetail.testing.model import CaseResult, Trial, Verdict
from dovetail.testing.prepare import check_tests, prepare
from dovetail.testing.reading import Case, PolicyTest, read_test
from dovetail.testing.run import CaseTrial, ScenarioTrial, judged, run

__all__ = [
    "Case",
    "CaseResult",
    "CaseTrial",
    "PolicyTest",
    "ScenarioTrial",
    "Trial",
    "Verdict",
    "check_tests",
    "judged",
    "prepare",
    "read_test",
    "run",
    "to_document",
]
