"""`dovetail diff`, and `plan --base`, where a side is no plan; how they end, and what they refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell
from tests.cli.test_plan import validator
from tests.support.specs import place, places

from dovetail.diff import diff
from dovetail.placement import Place
from dovetail.plan import AdmissionResult, Outcome, Plan
from dovetail_cli.render import text
from dovetail_cli.render.review import Review

HEAD = "apiVersion: dovetail/v1alpha1\nkind: Plan\nmetadata: {name: demo}\n"
NO_PLAN = HEAD + (
    "spec:\n  inputs: sha256:" + "0" * 64 + "\n  outcome: {status: STATUS}\n  tiers: []\n  summary: {}\n"
    "  placements: {}\n"
)
SAID = "a side has no plan, so there is no difference; base: "
CODES = {"infeasible": 5, "unknown": 7}

PART = AdmissionResult("partial", 2, 12, ("DT4103",))


def reviewed(before: Mapping[str, Place], after: Mapping[str, Place]) -> str:
    """Return what is shown where a job of twelve replicas is admitted with a part, or not at all, on either side."""
    base, target = (
        Plan(
            "demo",
            "sha256:" + "0" * 64,
            Outcome("optimal"),
            placements=places(rows),
            admitted={"job": PART if rows else AdmissionResult("none", 0, 12, ("DT4101",))},
        )
        for rows in (before, after)
    )
    return text.rendered(Review(target, diff(base, target), "base.yaml"))


def test_what_is_admitted_with_a_part_says_how_far_and_why_not_more() -> None:
    placed = {"job#0": place("n", 0), "job#1": place("n", 1)}
    said = "2 of 12 admitted (was 0 of 12): not enough cpu where GPUs are free"
    assert f"  +  job  2x GPU  n  {said}\n" in reviewed({}, placed)


def test_who_moves_is_told_to_be_a_part() -> None:
    before, after = ({"job#0": place(node, 0), "job#1": place(node, 1)} for node in "nm")
    found = reviewed(before, after)
    assert "  ~  job  2x GPU  n -> m  2 replicas moved\n" in found
    assert "  !  job  2 of 12 replicas admitted: not enough cpu where GPUs are free (DT4103)\n" in found


@pytest.fixture(autouse=True)
def plans(dovetail: Shell, project: Path, engine: Engine) -> None:
    """A plan `ok.yaml`, and one without places for each outcome that has none."""
    assert dovetail("plan", "--out", "ok.yaml") == 0
    for status in CODES:
        (project / f"{status}.yaml").write_text(NO_PLAN.replace("STATUS", status), encoding="utf-8")


@pytest.mark.parametrize("status", CODES)
def test_a_target_without_a_plan_ends_as_its_search_did(dovetail: Shell, status: str) -> None:
    assert dovetail("diff", "ok.yaml", f"{status}.yaml", "--exit-code") == CODES[status]
    assert f"  {SAID}FEASIBLE" in dovetail.out
    assert "no longer declared" not in dovetail.out


@pytest.mark.parametrize("status", CODES)
def test_a_base_without_a_plan_is_no_difference(dovetail: Shell, status: str) -> None:
    assert dovetail("diff", f"{status}.yaml", "ok.yaml", ".") == 0
    assert f"  {SAID}" in dovetail.out
    assert "(new)" not in dovetail.out
    assert dovetail("diff", f"{status}.yaml", "ok.yaml", "--exit-code") == 2


@pytest.mark.parametrize("sides", [("ok.yaml", "unknown.yaml"), ("infeasible.yaml", "ok.yaml")])
def test_every_format_says_so(dovetail: Shell, root: Path, sides: tuple[str, str]) -> None:
    dovetail("diff", *sides, "-o", "md")
    assert "A side has no plan, so there is no difference; base" in dovetail.out
    dovetail("diff", *sides, "-o", "json")
    found = json.loads(dovetail.out)
    validator(root, "plandiff").validate(found)
    assert found["spec"]["changes"] == []
    assert "cost" not in found["spec"]


def test_the_document_names_policies_that_cannot_hold_together(dovetail: Shell, project: Path, root: Path) -> None:
    text = NO_PLAN.replace("STATUS", "infeasible") + "  conflict: [one-tenant-per-node]\n"
    (project / "infeasible.yaml").write_text(text, encoding="utf-8")
    assert dovetail("diff", "ok.yaml", "infeasible.yaml", "-o", "json") == 5
    found = json.loads(dovetail.out)
    validator(root, "plandiff").validate(found)
    assert found["spec"]["target"]["conflict"] == ["one-tenant-per-node"]


@pytest.mark.parametrize("status", CODES)
def test_a_plan_from_a_base_without_a_plan_has_no_difference(dovetail: Shell, status: str) -> None:
    assert dovetail("plan", "--base", f"{status}.yaml", "--exit-code") == 2
    assert f"  {SAID}" in dovetail.out
    assert f"base {status}.yaml@000000 -> " in dovetail.out
    assert "(new)" not in dovetail.out


@pytest.mark.parametrize("command", [("diff", "ok.yaml", "ok.yaml"), ("show", "ok.yaml")])
def test_a_date_needs_the_documents(dovetail: Shell, command: tuple[str, ...]) -> None:
    assert dovetail(*command, ".", "--as-of", "garbage") == 64
    assert dovetail(*command, ".", "--as-of", "2026-01-31") == 0
    assert dovetail(*command, "--as-of", "2026-01-31") == 64
    assert "--as-of needs the documents: give PATH" in dovetail.err
