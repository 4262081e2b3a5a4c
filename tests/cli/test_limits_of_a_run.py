"""`--max-moves` and `--pin` are part of what a plan was made for: `plan` and `verify` take the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.shell import Engine, Shell
from tests.cli.test_plan import edit, rescale


@pytest.mark.parametrize("limits", [("--max-moves", "3"), ("--pin", "search/web", "--pin", "research/batch")])
def test_a_plan_made_with_limits_is_stale_without_them(
    dovetail: Shell, project: Path, engine: Engine, limits: tuple[str, ...]
) -> None:
    assert dovetail("plan", *limits, "--out", "plan.yaml") == 0
    assert dovetail("verify", "plan.yaml", ".", *limits) == 0
    assert dovetail("verify", "plan.yaml", ".") == 8
    assert f"made with {limits[0]}; give verify the same" in dovetail.out


def test_limits_that_a_plan_was_not_made_with_make_it_stale(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "plan.yaml")
    assert dovetail("verify", "plan.yaml", ".", "--max-moves", "3") == 8
    assert "made without --max-moves" in dovetail.out


def test_the_order_of_pins_means_nothing(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--pin", "search/web", "--pin", "research/batch", "--out", "plan.yaml")
    assert dovetail("verify", "plan.yaml", ".", "--pin", "research/batch", "--pin", "search/web") == 0


def test_a_base_is_what_runs_today(dovetail: Shell, project: Path, engine: Engine) -> None:
    dovetail("plan", "--out", "base.yaml")
    rescale(project, "web", 2, 1)
    assert dovetail("plan", "--base", "base.yaml", "--out", "plan.yaml") == 0
    assert dovetail("verify", "plan.yaml", ".", "--base", "base.yaml") == 0
    assert dovetail("verify", "plan.yaml", ".", "--current", "base.yaml") == 0
    assert dovetail("verify", "plan.yaml", ".") == 8
    assert "from --base or --current" in dovetail.out


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
