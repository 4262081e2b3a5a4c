"""What a run adds to the documents: limits, which a plan tells, and a state, which `verify` may do without."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell
from tests.cli.test_plan import edit, rescale, validator


@pytest.mark.parametrize(
    ("limits", "told", "shown"),
    [
        (("--max-moves", "3"), "{maxMoves: 3}", "limits at most 3 moves"),
        (
            ("--pin", "search/web", "--pin", "research/batch", "--pin", "search/web"),
            "{pins: [research/batch, search/web]}",
            "limits research/batch pinned, search/web pinned",
        ),
        (
            ("--pin", "search/web", "--max-moves", "1"),
            "{maxMoves: 1, pins: [search/web]}",
            "at most 1 move, search/web",
        ),
    ],
)
def test_a_plan_tells_its_limits_and_verifies_without_repeating_them(
    dovetail: Shell, project: Path, engine: Engine, limits: tuple[str, ...], told: str, shown: str
) -> None:
    assert dovetail("plan", *limits, "--out", "plan.yaml") == 0
    assert shown in dovetail.out
    assert f"  options: {told}\n" in (project / "plan.yaml").read_text(encoding="utf-8")
    assert dovetail("verify", "plan.yaml", ".") == 0
    assert dovetail("diff", "plan.yaml", "plan.yaml", ".") == 0


def test_limits_are_part_of_what_a_plan_was_made_for(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--max-moves", "3", "--out", "plan.yaml")
    edit(project / "plan.yaml", "{maxMoves: 3}", "{maxMoves: 4}")
    assert dovetail("verify", "plan.yaml", ".") == 8


def test_verify_takes_no_limits(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    assert dovetail("verify", "plan.yaml", ".", "--max-moves", "3") == 64


def test_a_name_that_a_limit_needs_may_not_be_taken(dovetail: Shell, project: Path, engine: Engine) -> None:
    edit(project / "policy.yaml", "one-tenant-per-node", "cli-max-moves")
    assert dovetail("plan", "--max-moves", "3") == 64
    assert "the documents have a policy 'cli-max-moves'" in dovetail.err
    assert dovetail("plan") == 0


def test_a_base_is_what_runs_today(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "base.yaml")
    rescale(project, "web", 2, 1)
    assert dovetail("plan", "--base", "base.yaml", "--out", "plan.yaml") == 0
    for state in ("--base", "--current"):
        assert dovetail("verify", "plan.yaml", ".", state, "base.yaml") == 0
        assert "not checked" not in dovetail.out
    assert dovetail("verify", "plan.yaml", ".") == 0
    assert "not checked: needs the state the plan started from (--base or --current)" in dovetail.out
    assert dovetail("verify", "plan.yaml", ".", "-o", "github") == 0
    assert dovetail.out.startswith("::notice title=not checked::needs the state")


def test_another_base_makes_a_plan_stale_and_is_named(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "base.yaml")
    rescale(project, "train", 2, 1)
    dovetail("plan", "--base", "base.yaml", "--out", "plan.yaml")
    assert dovetail("verify", "plan.yaml", ".", "--base", "plan.yaml") == 8
    assert "started from another state than the one that --base or --current gives" in dovetail.out
    assert "other documents" not in dovetail.out
    assert dovetail("verify", "base.yaml", ".", "--base", "plan.yaml") == 8
    assert "started without the one that --base or --current gives" in dovetail.out


@pytest.mark.parametrize("name", ["table", "json", "github"])
def test_what_was_not_checked_in_every_format(
    dovetail: Shell, root: Path, project: Path, engine: Engine, golden: Callable[[str, str], None], name: str
) -> None:
    dovetail("plan", "--out", "base.yaml")
    dovetail("plan", "--base", "base.yaml", "--out", "plan.yaml")
    assert dovetail("verify", "plan.yaml", ".", "-o", name) == 0
    golden(f"verify-part.{'github.txt' if name == 'github' else name.replace('table', 'txt')}", dovetail.out)
    if name == "json":
        validator(root, "verification").validate(json.loads(dovetail.out))


def test_a_placement_outranks_the_base(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "base.yaml")
    (project / "today.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Placement\nmetadata: {name: today}\n"
        "spec: {placements: {'search/web#0': {node: h100-002, gpus: [3]}}}\n",
        encoding="utf-8",
    )
    assert dovetail("plan", "--base", "base.yaml", "--out", "plan.yaml") == 0
    assert dovetail("verify", "plan.yaml", ".") == 0
    assert "search/web#0: {node: h100-002, gpus: [3]}" in (project / "plan.yaml").read_text(encoding="utf-8")


def test_current_may_be_a_placement_outside_the_project(dovetail: Shell, project: Path, engine: Engine) -> None:
    folder = project / "elsewhere"
    folder.mkdir()
    today = folder / "today.yaml"
    today.write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Placement\nmetadata: {name: today}\n"
        "spec: {placements: {'search/web#0': {node: h100-001, gpus: [2]}}}\n",
        encoding="utf-8",
    )
    assert dovetail("plan", "--current", today, "--out", "plan.yaml") == 0
    assert "search/web#0: {node: h100-001, gpus: [2]}" in (project / "plan.yaml").read_text(encoding="utf-8")
    edit(today, "kind: Placement", "kind: Nothing")
    assert dovetail("plan", "--current", today) == 3


def test_an_expired_waiver_is_named_and_ends_with_4(dovetail: Shell, project: Path, engine: Engine) -> None:
    (project / "waiver.yaml").write_text(
        "apiVersion: dovetail/v1alpha1\nkind: Waiver\nmetadata: {name: pilot}\n"
        "spec: {policy: one-tenant-per-node, match: {workloads: {names: [search/web]}}, reason: pilot, "
        "owner: search, expires: 2026-12-31}\n",
        encoding="utf-8",
    )
    assert dovetail("plan", "--as-of", "2026-12-31", "--out", "plan.yaml") == 0
    assert dovetail("plan", "--as-of", "2027-01-01") == 4
    assert "waiver pilot of policy one-tenant-per-node expired on 2026-12-31" in dovetail.err
    assert dovetail("verify", "plan.yaml", ".", "--as-of", "2026-12-31") == 0
