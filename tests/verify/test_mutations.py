"""Each check of `verify` names what is broken, and nothing else."""

from __future__ import annotations

import pytest
from tests.verify.mutators import MUTATIONS, Mutation, base

from dovetail.faults import CODES
from dovetail.verify import CERTIFICATE, DIGEST, TABLE, lines, verify


def test_the_plan_that_is_mutated_is_valid() -> None:
    spec, plan = base()
    verification = verify(spec, plan)
    assert verification.ok, "\n".join(lines(verification))
    assert plan.outcome.status == "optimal"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_a_broken_check_is_named_and_no_other(mutation: Mutation) -> None:
    verification = verify(*mutation.make())
    assert not verification.ok
    failed = {check.name for check in verification.checks if not check.ok}
    assert failed == {mutation.check} | mutation.also, "\n".join(lines(verification))


def test_every_check_has_a_mutation() -> None:
    assert {mutation.check for mutation in MUTATIONS} == {check.name for check in (DIGEST, *TABLE)}


def test_names_and_codes_of_checks_are_unique_and_known() -> None:
    checks = (DIGEST, *TABLE, CERTIFICATE)
    assert len({check.name for check in checks}) == len({check.code for check in checks}) == len(checks)
    assert {check.code for check in checks} <= set(CODES)
    assert {code for code in CODES if code.startswith("DT3")} == {check.code for check in checks}


def test_every_check_says_its_claim() -> None:
    assert all(check.run.__doc__ for check in TABLE)
