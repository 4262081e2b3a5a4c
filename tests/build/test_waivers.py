"""Waivers: what is warned of, and until when they hold (S4.3)."""

from __future__ import annotations

import pytest
from tests.build.text import JOB, SMALL, built, codes, document, faults_of, policy, workload

WORK = [workload(JOB, "w", ", namespace: a"), workload(JOB, "v", ", namespace: b")]
POLICY = policy("match: {workloads: {namespaces: [a]}}\nrule: {admission: {}}")


def waiver(match: str = "{names: [a/w]}", expires: str = "2026-12-31") -> str:
    return document(
        "Waiver", "x", f"policy: p\nmatch: {{workloads: {match}}}\nreason: why\nowner: team-a\nexpires: {expires}"
    )


@pytest.mark.parametrize(
    ("match", "wanted"),
    [
        ("{names: [a/w]}", []),
        ("{}", []),
        ("{names: [b/v]}", ["DT1918"]),
        ("{namespaces: [c]}", ["DT1911"]),
    ],
)
def test_a_waiver_that_lifts_nothing_is_warned_of(match: str, wanted: list[str]) -> None:
    assert codes(built(SMALL, *WORK, POLICY, waiver(match)).warnings) == wanted


RATIO = "match: {workloads: {}}\nrule: {sharing: {oversubscribe: {cpu: 2}}}"


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (policy("rule: {reserve: {domains: 1, of: node}}"), ["DT1613"]),
        (policy("rule: {reserve: {domains: 1, of: node}}", enforcement="audit"), ["DT1613"]),
        (policy(RATIO), ["DT1613"]),
        (policy(RATIO, enforcement="audit"), []),  # it counts what others let be promised, and not of whom it waives
    ],
)
def test_a_waiver_of_a_policy_that_binds_no_workloads_is_refused(own: str, wanted: list[str]) -> None:
    found = faults_of(SMALL, *WORK, own, waiver())
    assert codes(found) == wanted
    assert all("the policy 'p'" in each.message and each.hint and each.position is not None for each in found)


@pytest.mark.parametrize(
    ("expires", "words"),
    [
        ("2026-05-31", "is over"),
        ("2026-06-01", "for the last time today"),
        ("2026-06-02", "for the last time tomorrow"),
        ("2026-06-15", "for the last time in 14 days"),
        ("2026-06-16", None),
    ],
)
def test_a_waiver_that_is_over_or_soon_will_be_is_warned_of(expires: str, words: str | None) -> None:
    found = built(SMALL, *WORK, POLICY, waiver(expires=expires)).warnings
    assert codes(found) == ([] if words is None else ["DT1925" if words == "is over" else "DT1919"])
    assert all(words is not None and words in each.message and "team-a" in (each.hint or "") for each in found)
    assert all(each.position is not None for each in found)


@pytest.mark.parametrize(("expires", "bound"), [("2026-05-31", 1), ("2026-06-01", 0), ("2026-06-02", 0)])
def test_a_waiver_holds_until_its_last_day_is_over(expires: str, bound: int) -> None:
    spec = built(SMALL, *WORK, POLICY, waiver(expires=expires)).spec
    assert len(spec.matched(spec.policies[0])) == bound
    assert len(spec.expired_waivers()) == bound
