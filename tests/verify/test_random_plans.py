"""Any valid plan verifies, is read back as it was written, and keeps to its schema."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from tests.support.plans import PLANNERS
from tests.support.random_specs import specs

from dovetail.documents import load_text
from dovetail.plan import read, to_document, write
from dovetail.spec import Spec
from dovetail.verify import lines, verify
from dovetail.verify import to_document as verification_document


@pytest.mark.parametrize("planner", sorted(PLANNERS))
@settings(max_examples=90)
@given(spec=specs())
def test_any_plan_verifies(planner: str, spec: Spec) -> None:
    verification = verify(spec, PLANNERS[planner](spec))
    assert verification.ok, "\n".join(lines(verification))


@settings(max_examples=60)
@given(spec=specs())
def test_plans_read_back_as_they_were_written(spec: Spec) -> None:
    plan = PLANNERS["greedy"](spec)
    text = write(plan)
    again = read(text, "plan.yaml")
    assert again == plan
    assert write(again) == text
    assert read(json.dumps(to_document(plan)), "plan.json") == plan


@settings(max_examples=30)
@given(spec=specs())
def test_verifications_keep_to_their_schema(spec: Spec) -> None:
    verification = verify(spec, PLANNERS["greedy"](spec))
    (document,) = load_text(json.dumps(verification_document(verification)), "verification.json")
    assert document.kind == "Verification"
