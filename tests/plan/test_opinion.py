"""What another engine's optima say of a plan."""

from __future__ import annotations

import pytest

from dovetail.plan import Outcome, Plan, TierResult, better, confirmed, contradiction, opinion_of


def tier(name: str, value: int, bound: int | None, sense: str = "max", proof: str = "solver") -> TierResult:
    return TierResult(name, value, bound, "", sense, proof)  # type: ignore[arg-type]


PROVED = (tier("a", 5, 5), tier("b", 3, 3, "min"))
OPEN = (tier("a", 5, 9), tier("b", 3, 3, "min"))


@pytest.mark.parametrize(
    ("tiers", "optima", "broken", "conclusive"),
    [
        (PROVED, {"a": 5, "b": 3}, None, True),
        (PROVED, {"a": 5, "b": 2}, "b", True),
        (PROVED, {"a": 5, "b": 4}, "b", True),
        (PROVED, {"a": 6, "b": 3}, "a", True),
        (PROVED, {"a": 5}, None, False),
        (PROVED, {}, None, False),
        (PROVED, {"b": 2}, None, False),
        (OPEN, {"a": 5, "b": 3}, None, True),
        (OPEN, {"a": 5, "b": 2}, "b", True),
        (OPEN, {"a": 7}, None, False),
        (OPEN, {"a": 7, "b": 9}, None, False),
        (OPEN, {"a": 10}, "a", True),
        (OPEN, {"a": 4}, "a", True),
        ((tier("a", 5, None),), {"a": 99}, None, True),
        ((tier("a", 5, None),), {"a": 4}, "a", True),
        ((tier("c", 5, 2, "min"),), {"c": 3}, None, True),
        ((tier("c", 5, 2, "min"),), {"c": 1}, "c", True),
        ((tier("c", 5, None, "min"),), {"c": 6}, "c", True),
    ],
)
def test_only_a_real_contradiction_counts(
    tiers: tuple[TierResult, ...], optima: dict[str, int | None], broken: str | None, conclusive: bool
) -> None:
    found = contradiction(tiers, optima)
    assert (found.name if found else None) == broken
    opinion = opinion_of("other", tiers, optima)
    assert opinion.agrees is (broken is None)
    assert opinion.conclusive is conclusive
    assert list(opinion.tiers) == [each.name for each in tiers]


def test_nothing_counts_after_the_first_tier_that_differs_or_is_missing() -> None:
    assert opinion_of("other", OPEN, {"a": 7, "b": 3}).tiers == {"a": 7, "b": None}
    assert opinion_of("other", OPEN, {"b": 3}).tiers == {"a": None, "b": None}
    assert opinion_of("other", OPEN, {"a": 5, "b": 3, "made-up": 1}).tiers == {"a": 5, "b": 3}


def test_a_tier_that_both_prove_rests_on_two_engines() -> None:
    tiers = (*OPEN, tier("c", 1, 1), tier("d", 0, 0, "min", "trivial"), tier("e", 2, 2))
    plan = Plan("p", "sha256:", Outcome("feasible"), tiers)
    told = confirmed(plan, opinion_of("other", tiers, {"a": 5, "b": 3, "c": 1, "d": 0}))
    assert [each.proof for each in told.tiers] == ["solver", "two-engines", "two-engines", "trivial", "solver"]
    assert better(told) is None


def test_a_contradicted_plan_keeps_the_proof_of_one_engine() -> None:
    plan = Plan("p", "sha256:", Outcome("optimal"), PROVED)
    told = confirmed(plan, opinion_of("other", PROVED, {"a": 5, "b": 2}))
    assert [each.proof for each in told.tiers] == ["solver", "solver"]
    assert better(told) is None


def test_a_better_value_within_the_bound_is_named() -> None:
    plan = Plan("p", "sha256:", Outcome("feasible"), OPEN)
    found = better(confirmed(plan, opinion_of("other", OPEN, {"a": 7})))
    assert found is not None
    assert found.name == "a"
