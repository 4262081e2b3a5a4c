"""`dovetail policies`: what is listed, in which format, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.cli.shell import Engine, Shell

from dovetail.plan import Outcome
from dovetail.progress import Stop
from dovetail_cli.exit_codes import ExitCode

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
QUOTA = """\
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: few-gpus}
spec:
  match: {workloads: {namespaces: [research]}}
  rule: {quota: {limit: {gpus: 8}}}
  enforcement: hard
---
apiVersion: dovetail/v1alpha1
kind: Waiver
metadata: {name: pilot}
spec:
  policy: few-gpus
  match: {workloads: {names: [research/batch]}}
  reason: a pilot
  owner: team-research
  expires: 2026-06-10
"""
DAY = ("--as-of", "2026-06-01")


@pytest.fixture
def quota(project: Path) -> Path:
    (project / "quota.yaml").write_text(QUOTA, encoding="utf-8")
    return project


def test_the_list_names_source_and_whom_it_binds(dovetail: Shell, quota: Path) -> None:
    assert dovetail("policies", *DAY) == ExitCode.DONE
    assert "few-gpus   hard   quota {limit: {gpus: 8}}" in dovetail.out
    assert "quota.yaml:3" in dovetail.out
    assert "1 of 3 workloads: research/train" in dovetail.out
    assert "pilot for research/batch, ENDS SOON, on 2026-06-10; team-research: a pilot" in dovetail.out


def test_a_soft_policy_says_after_which_tier_it_is_weighed(dovetail: Shell, quota: Path) -> None:
    (quota / "quota.yaml").write_text(QUOTA.replace("hard", "{soft: {tier: cost, weight: 3}}"), encoding="utf-8")
    assert dovetail("policies", *DAY) == ExitCode.DONE
    assert "soft, weight 3 after cost" in dovetail.out
    assert dovetail("policies", "-o", "json", *DAY) == ExitCode.DONE
    strict = {row["name"]: row["enforcement"] for row in json.loads(dovetail.out)["spec"]["policies"]}
    assert strict["few-gpus"] == {"soft": {"tier": "cost", "weight": 3}}


def test_a_workload_and_a_path_are_told_apart(dovetail: Shell, quota: Path) -> None:
    assert dovetail("policies", "search/web", *DAY) == ExitCode.DONE
    assert "few-gpus" not in dovetail.out
    assert dovetail("policies", "policy.yaml", *DAY) == ExitCode.REFUSED  # a file, and no project
    assert dovetail("policies", "search/wbe", ".", *DAY) == ExitCode.USAGE
    assert "did you mean search/web?" in dovetail.err


@pytest.mark.parametrize("limit", [("--work", "3"), ("--time-limit", "5s"), ("--jobs", "2"), ("--memory", "1Gi")])
def test_limits_of_a_search_take_a_search(dovetail: Shell, quota: Path, limit: tuple[str, str]) -> None:
    assert dovetail("policies", *limit, *DAY) == ExitCode.USAGE
    assert "hint: add --price" in dovetail.err


def test_an_expired_waiver_ends_the_run_with_4_and_is_named(dovetail: Shell, quota: Path) -> None:
    assert dovetail("policies", "--as-of", "2026-06-11") == ExitCode.BROKEN
    assert "waiver pilot of policy few-gpus expired on 2026-06-10" in dovetail.err
    assert "EXPIRED on 2026-06-10" in dovetail.out


def test_the_document_follows_its_schema(dovetail: Shell, quota: Path, engine: Engine) -> None:
    found = [json.loads(path.read_text(encoding="utf-8")) for path in SCHEMAS.rglob("*.json")]
    registry = Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in found])
    schema = next(each for each in found if each["title"] == "PolicyList")
    for more in ((), ("--price",)):
        assert dovetail("policies", "-o", "json", *more, *DAY) == ExitCode.DONE
        Draft202012Validator(schema, registry=registry).validate(json.loads(dovetail.out))


def test_prices_are_asked_of_the_engine_only_for_hard_policies_that_bind(
    dovetail: Shell, quota: Path, engine: Engine
) -> None:
    engine.outcome = Outcome("optimal")
    assert dovetail("policies", "--price", *DAY) == ExitCode.DONE
    assert dovetail.out.count("costs") == 1  # the audited one has no price
    assert "no admitted work (proved)" in dovetail.out


def test_a_price_is_proved_by_the_engine_in_its_own_process(dovetail: Shell, quota: Path) -> None:
    """Three nodes of four: four of the eight of `train` are kept out, and one of what else asks takes their place."""
    text = QUOTA.replace("gpus: 8", "gpus: 4")
    (quota / "quota.yaml").write_text(text, encoding="utf-8")
    assert dovetail("policies", "--price", *DAY) == ExitCode.DONE
    assert "admitted[0]: exactly 3 GPU" in dovetail.out
    assert "GPUs asked for: exactly 3 GPU" in dovetail.out


def test_markdown_says_how_well_the_plan_is_proved_that_prices_start_from(
    dovetail: Shell, quota: Path, engine: Engine
) -> None:
    assert dovetail("policies", "--price", "-o", "md", *DAY) == ExitCode.DONE
    assert "\nWith all of them: FEASIBLE" in dovetail.out
    assert dovetail("policies", "-o", "md", *DAY) == ExitCode.DONE
    assert "With all of them" not in dovetail.out


def test_an_interrupt_asks_for_no_further_price(dovetail: Shell, quota: Path, engine: Engine) -> None:
    asked = []

    def interrupted(stop: Stop) -> None:
        asked.append(stop)
        stop.set()

    engine.meanwhile = interrupted
    assert dovetail("policies", "--price", *DAY) == ExitCode.INTERRUPTED
    assert len(asked) == 1
    assert "few-gpus" in dovetail.out


def test_markdown_and_table_tell_the_same_policies(dovetail: Shell, quota: Path) -> None:
    assert dovetail("policies", "-o", "md", *DAY) == ExitCode.DONE
    assert dovetail.out.startswith("<!-- dovetail:policies demo -->")
    assert "`few-gpus`" in dovetail.out
    assert "`one-tenant-per-node`" in dovetail.out


CONFLICT = """\
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: all-run}
spec: {rule: {admission: {}}, enforcement: hard}
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: no-gpus}
spec: {rule: {quota: {limit: {gpus: 0}}}, enforcement: hard}
"""


@pytest.mark.parametrize("command", ["validate", "plan"])
def test_contradictory_policies_are_refused_before_any_search(dovetail: Shell, project: Path, command: str) -> None:
    (project / "conflict.yaml").write_text(CONFLICT, encoding="utf-8")
    assert dovetail(command) == ExitCode.REFUSED  # no engine stands in: none is asked
    said = dovetail.out + dovetail.err
    assert "conflict.yaml:9:15: error DT1622" in said
    assert "'no-gpus' cannot hold together with 'all-run' (conflict.yaml:4:15)" in said


def test_ways_out_of_a_contradiction_can_be_tried(dovetail: Shell, project: Path, engine: Engine) -> None:
    (project / "conflict.yaml").write_text(CONFLICT, encoding="utf-8")
    assert dovetail("whatif", "--drop-policy", "no-gpus") != ExitCode.REFUSED
    assert dovetail("policies") == ExitCode.DONE
