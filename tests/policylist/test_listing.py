"""What applies to whom, where it comes from, and what lifts it."""

from __future__ import annotations

import datetime as dt

import pytest
from tests.build.text import JOB, SMALL, document, documents, policy, project, workload

from dovetail.build import assemble, origins_of
from dovetail.policylist import PolicyList, listing, to_document

AS_OF = dt.date(2026, 6, 1)
PACK = document(
    "PolicyPack",
    "house",
    """
    version: "7"
    policies:
    - {name: kept, description: Why., rule: {admission: {}}, enforcement: audit}
    - {name: changed, description: Why., rule: {move: {maxMoves: 9}}, enforcement: hard}
    - {name: dropped, description: Why., rule: {admission: {}}, enforcement: hard}
    """,
)
OWN = policy("match: {workloads: {namespaces: [a]}}\nrule: {move: {maxMoves: 3}}", name="changed")
WORK = [workload(JOB, "w", ", namespace: a"), workload(JOB, "v", ", namespace: b")]
WAIVER = document(
    "Waiver",
    "pilot",
    """
    policy: changed
    match: {workloads: {names: [a/w]}}
    reason: a pilot
    owner: team-a
    expires: %s
    """,
)


def found(*more: str, workload: str | None = None) -> PolicyList:
    given = documents(project("packs: [house]\nwithoutPolicies: [dropped]"), SMALL, PACK, OWN, *WORK, *more)
    return listing(assemble(given, as_of=AS_OF).spec, origins_of(given), workload)


def test_every_policy_tells_its_source() -> None:
    told = {each.policy.name: each.origin for each in found().policies}
    assert [(name, o.pack, o.version) for name, o in told.items() if o] == [
        ("changed", "", ""),
        ("kept", "house", "7"),
    ]
    assert told["kept"] is not None
    assert str(told["kept"].position).startswith("0.yaml:")


def test_what_of_packs_does_not_apply_is_told_with_the_reason() -> None:
    origins = found().origins
    assert [(each.name, each.pack) for each in origins.replaced] == [("changed", "house")]
    assert [(each.name, place.line) for each, place in origins.left_out] == [("dropped", 7)]


def test_a_workload_sees_only_what_selects_it() -> None:
    assert [each.policy.name for each in found(workload="a/w").policies] == ["changed", "kept"]
    assert [each.policy.name for each in found(workload="b/v").policies] == ["kept"]


@pytest.mark.parametrize(
    ("expires", "state", "waived"),
    [
        ("2026-06-16", "active", ("a/w",)),
        ("2026-06-15", "expiring", ("a/w",)),
        ("2026-06-01", "expiring", ("a/w",)),
        ("2026-05-31", "expired", ()),
    ],
)
def test_a_waiver_is_told_with_how_it_stands(expires: str, state: str, waived: tuple[str, ...]) -> None:
    listed = found(WAIVER % expires).by_name["changed"]
    assert [(each.state, each.workloads) for each in listed.waivers] == [(state, ("a/w",))]
    assert (listed.waived, listed.bound) == (waived, 1 - len(waived))


def test_the_document_names_places_and_workloads() -> None:
    row = to_document(found(WAIVER % "2026-12-31"))["spec"]["policies"][0]
    assert row["rule"] == {"move": {"maxMoves": 3}}
    assert (row["from"]["kind"], row["from"]["file"]) == ("document", "0.yaml")
    assert (row["workloads"], row["waivers"][0]["owner"]) == (["a/w"], "team-a")
