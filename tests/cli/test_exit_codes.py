"""One exit code per run, the first that applies."""

from __future__ import annotations

from itertools import pairwise

import pytest

from dovetail_cli.exit_codes import CODES, ExitCode, Finding, first_of

ORDER = [
    (Finding.INTERRUPTED, 130),
    (Finding.USAGE, 64),
    (Finding.REFUSED, 3),
    (Finding.UNAVAILABLE, 69),
    (Finding.INTERNAL, 1),
    (Finding.INFEASIBLE, 5),
    (Finding.NO_PLAN, 7),
    (Finding.BROKEN, 4),
    (Finding.STALE, 8),
    (Finding.MISSED, 6),
    (Finding.GAP, 7),
    (Finding.CHANGED, 2),
]


def test_nothing_found_is_success() -> None:
    assert int(first_of([])) == 0


@pytest.mark.parametrize(("finding", "code"), ORDER)
def test_each_finding_has_its_code(finding: Finding, code: int) -> None:
    assert first_of([finding]) == code


@pytest.mark.parametrize(("earlier", "later"), list(pairwise(ORDER)))
def test_the_earlier_finding_decides(earlier: tuple[Finding, int], later: tuple[Finding, int]) -> None:
    assert first_of([later[0], earlier[0]]) == earlier[1]


def test_the_order_covers_every_finding_and_every_code() -> None:
    assert [finding for finding, _ in ORDER] == list(Finding) == list(CODES)
    assert set(CODES.values()) | {ExitCode.DONE} == set(ExitCode)
