"""`dovetail explain`: workloads, nodes and codes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shell import Engine, Shell
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, request, role, workload

from dovetail.documents import DocumentSet
from dovetail.engine import solve
from dovetail.plan import Outcome, Plan
from dovetail.progress import Limits
from dovetail.rules.promises import Promises
from dovetail.rules.quota import Quota
from dovetail.rules.reserve import Reserve
from dovetail.spec import EqualParts, Policy, Share, Spec, Workload
from dovetail.spec.permits import Ratios
from dovetail.spec.workload import Pace
from dovetail.whynot import Explanation, barring
from dovetail_cli import library
from dovetail_cli.project import Places
from dovetail_cli.render.whynot import of_node, of_workload


def test_a_workload_that_waits_is_told_why_and_what_would_help(
    dovetail: Shell, project: Path, engine: Engine
) -> None:
    text = (project / "workloads" / "train.yaml").read_text(encoding="utf-8")
    (project / "workloads" / "train.yaml").write_text(text.replace("replicas: 2", "replicas: 4"), encoding="utf-8")
    engine.bound = 48_000
    assert dovetail("explain", "research/train") == 0
    lines = dovetail.out.splitlines()
    assert lines[0].startswith("dovetail explain: research/train   2 of 4 replicas admitted   plan FEASIBLE")
    assert "    missing  2 replicas of 4 GPU, 1 cpu each" in lines
    assert "    nodes    3 of 3 could host one if they were empty" in lines
    assert any(line.startswith("    +  2 more nodes in h100") for line in lines)


def test_without_ways_nothing_more_is_planned(dovetail: Shell, project: Path, engine: Engine) -> None:
    asked: list[object] = []
    engine.meanwhile = asked.append
    assert dovetail("explain", "research/train", "--ways", "0") == 0
    assert len(asked) == 1
    assert "admitted in full" in dovetail.out


def limits_of(monkeypatch: pytest.MonkeyPatch, engine: Engine) -> list[Limits]:
    """Return what will be given to the engine."""
    asked: list[Limits] = []
    engine.bound = 96_000

    def solve(spec: Spec, limits: Limits, **named: Any) -> Plan:
        asked.append(limits)
        return engine.solve(spec, limits, **named)

    monkeypatch.setattr(library, "solve", solve)
    return asked


def test_ways_share_seconds_unless_limits_are_given(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = limits_of(monkeypatch, engine)
    assert dovetail("explain", "search/web") == 0
    assert asked[0] == Limits()
    assert len(asked) > 1
    assert all(limits.work and limits.time and limits.time <= 20 for limits in asked[1:])
    asked.clear()
    assert dovetail("explain", "search/web", "--work", "3") == 0
    assert set(asked) == {Limits(work=3.0)}


def test_ways_start_from_the_plan_that_is_explained(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints: list[object] = []

    def solve(spec: Spec, limits: Limits, **named: Any) -> Plan:
        hints.append(named["hint"])
        plans.append(engine.solve(spec, limits, **named))
        return plans[-1]

    plans: list[Plan] = []
    engine.bound = 96_000
    monkeypatch.setattr(library, "solve", solve)
    assert dovetail("explain", "search/web") == 0
    assert len(hints) > 1
    assert all(hint == plans[0].placements for hint in hints[1:])


@pytest.mark.parametrize("replicas", [2, 4])
def test_when_time_is_up_it_says_so(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, replicas: int
) -> None:
    monkeypatch.setattr("dovetail_cli.commands.explain._PATIENCE", 0.0)
    asked = limits_of(monkeypatch, engine)
    text = (project / "workloads" / "train.yaml").read_text(encoding="utf-8")
    (project / "workloads" / "train.yaml").write_text(text.replace("replicas: 2", f"replicas: {replicas}"), "utf-8")
    assert dovetail("explain", "research/train") == 0
    assert len(asked) == 1
    assert "Time was up before more was planned" in dovetail.out
    assert dovetail("explain", "research/train", "-o", "json") == 0
    assert json.loads(dovetail.out)["spec"]["cut"] is True
    dovetail("explain", "research/train", "-o", "json", "--work", "5")  # the stand-in knows nothing of policies
    assert json.loads(dovetail.out)["spec"]["cut"] is False


def test_a_plan_may_be_given(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    engine.error = AssertionError("nothing is to be planned")
    assert dovetail("explain", "search/web", "--plan", "plan.yaml", "--ways", "0") == 0
    (project / "policy.yaml").write_text("", encoding="utf-8")
    assert dovetail("explain", "search/web", "--plan", "plan.yaml") == 8
    assert "made for other documents" in dovetail.err


@pytest.mark.parametrize("state", ["--base", "--current"])
def test_a_plan_that_starts_from_another_is_explained_with_that(
    dovetail: Shell, project: Path, engine: Engine, state: str
) -> None:
    assert dovetail("plan", "--out", "today.yaml") == 0
    assert dovetail("plan", "--base", "today.yaml", "--out", "plan.yaml") == 0
    asked = ("explain", "search/web", "--plan", "plan.yaml", "--ways", "0")
    assert dovetail(*asked) == 8
    assert "give what ran then by --base or --current" in dovetail.err
    engine.error = AssertionError("nothing is to be planned")
    assert dovetail(*asked, state, "today.yaml") == 0


def test_ways_start_from_what_runs_today(
    dovetail: Shell, project: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dovetail("plan", "--out", "today.yaml") == 0
    running: list[int] = []

    def noted(spec: Spec, *given: object, **named: object) -> Plan:
        running.append(len(spec.current.replicas))
        return engine.solve(spec, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(library, "solve", noted)
    assert dovetail("explain", "research/train", "--base", "today.yaml", "--work", "1") == 0
    assert len(running) > 1
    assert all(running)


@pytest.mark.parametrize("thing", ["search/web", "h100-000"])
def test_a_plan_that_does_not_verify_is_not_explained(
    dovetail: Shell, project: Path, engine: Engine, thing: str
) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    plan = (project / "plan.yaml").read_text(encoding="utf-8")
    (project / "plan.yaml").write_text(plan.replace("h100-000", "h100-900"), encoding="utf-8")
    assert dovetail("explain", thing, "--plan", "plan.yaml", "--ways", "0") == 4
    assert dovetail.out == ""
    assert "does not verify" in dovetail.err


def test_a_node_tells_what_it_holds_and_has_left(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("explain", "h100-000") == 0
    assert "in      rack h100-rack0" in dovetail.out
    assert "GPUs    4 H100-80GB, " in dovetail.out
    assert "research/batch#0" in dovetail.out


def test_codes_are_explained_without_a_project(
    dovetail: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dovetail("explain", "dt1103") == 0
    assert dovetail.out.startswith("DT1103: ")
    assert dovetail("explain", "DT9999") == 64


@pytest.mark.parametrize("asked", [("-o", "json"), ("--also", "yaml=out.yaml")])
@pytest.mark.parametrize("thing", ["DT1103", "h100-000"])
def test_codes_and_nodes_are_told_as_a_table_alone(
    dovetail: Shell, project: Path, engine: Engine, thing: str, asked: tuple[str, str]
) -> None:
    assert dovetail("explain", thing, *asked) == 64
    assert "explained as a table alone" in dovetail.err
    assert not (project / "out.yaml").exists()


@pytest.mark.parametrize(
    "asked",
    [
        ("--plan", "nosuchfile"),
        ("--base", "nosuchfile"),
        ("--work", "3"),
        ("--memory", "1Gi"),
        ("--ways", "12"),
        ("--as-of", "2026-01-31"),
    ],
)
def test_codes_are_explained_without_plans(dovetail: Shell, asked: tuple[str, str]) -> None:
    assert dovetail("explain", "DT4102", *asked) == 64
    assert "codes are explained without a project" in dovetail.err
    assert f"hint: leave {asked[0]} out" in dovetail.err


def test_codes_are_explained_without_a_path(dovetail: Shell, project: Path) -> None:
    assert dovetail("explain", "DT4102", str(project)) == 64
    assert "hint: leave PATH out" in dovetail.err


def test_a_node_is_explained_without_ways(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("explain", "h100-000", "--ways", "3") == 64
    assert "of a node no ways are planned" in dovetail.err
    assert "hint: leave --ways out" in dovetail.err


def test_a_node_of_a_plan_is_explained_without_a_search(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("plan", "--out", "plan.yaml") == 0
    assert dovetail("explain", "h100-000", "--plan", "plan.yaml") == 0
    assert dovetail("explain", "h100-000", "--plan", "plan.yaml", "--work", "3", "--jobs", "1") == 64
    assert "with --plan, a node is explained without a search" in dovetail.err
    assert "hint: leave --work, --jobs out" in dovetail.err


HELD = """\
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: spare}
spec:
  rule: {reserve: {replicas: 1, request: {gpus: 1}}}
  enforcement: hard
"""


@pytest.mark.parametrize(
    "line", ["explain hold:spare", "whatif --drop hold:spare", "whatif --scale hold:spare=2", "plan --pin hold:spare"]
)
def test_places_that_are_held_are_no_workload(dovetail: Shell, project: Path, engine: Engine, line: str) -> None:
    (project / "held.yaml").write_text(HELD, encoding="utf-8")
    assert dovetail(*line.split()) == 64
    assert "there is no" in dovetail.err


def test_what_is_unknown_is_named_with_what_is_near(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("explain", "research/trian") == 64
    assert "did you mean research/train?" in dovetail.err
    assert dovetail("explain", "one-tenant-per-node") == 64
    assert "it is a policy: dovetail policies tells of it" in dovetail.err


@pytest.mark.parametrize(("status", "code"), [("infeasible", 5), ("unknown", 7)])
def test_without_a_plan_nothing_is_said_of_what_a_node_holds(
    dovetail: Shell, project: Path, engine: Engine, status: str, code: int
) -> None:
    engine.outcome = Outcome(status)  # type: ignore[arg-type]
    assert dovetail("explain", "h100-000") == code
    assert "there is no plan that says what it holds" in dovetail.out
    assert not {"idle", "left", "Holds", "Waits"} & set(dovetail.out.replace(",", " ").split())


def test_a_node_tells_what_of_it_failed() -> None:
    spec = make_spec([node("n", 3, failed_gpus=frozenset({0, 2}), cordoned=True)])
    told = of_node(spec, plan_for(spec, {}), "n").splitlines()
    assert "  GPUs    3 H100-80GB, 1 idle" in told
    assert "  state   cordoned, gpu 0,2 failed" in told


@pytest.mark.parametrize(("status", "code"), [("infeasible", 5), ("unknown", 7)])
def test_without_a_plan_it_says_so(dovetail: Shell, project: Path, engine: Engine, status: str, code: int) -> None:
    engine.outcome = Outcome(status)  # type: ignore[arg-type]
    assert dovetail("explain", "research/train") == code
    assert "NO PLAN" in dovetail.out


def test_who_is_admitted_is_told_what_other_places_would_change(
    dovetail: Shell, project: Path, engine: Engine
) -> None:
    assert dovetail("explain", "research/train", "--ways", "0") == 0
    assert "everything else where it is" in dovetail.out
    assert dovetail("explain", "research/train", "--ways", "0", "-o", "json") == 0
    found = json.loads(dovetail.out)
    assert (found["kind"], found["spec"]["workload"]) == ("Explanation", "research/train")
    assert found["spec"]["tried"]["replicas"] >= 1


def test_a_node_is_told_as_a_table_alone(dovetail: Shell, project: Path, engine: Engine) -> None:
    assert dovetail("explain", "h100-004", "-o", "json") == 64


def test_a_node_tells_how_its_gpus_are_shared_and_why() -> None:
    asked = replace(request(), share=Share(250, barred=("time-slice",)))
    spec = make_spec(
        [node("n", 2, mechanism="devicePlugin", sharing=EqualParts())],
        [workload("safe", 1, roles=[role("", 1, asked)]), workload("note", 2, share=200)],
    )
    plan = plan_for(spec, places({"safe#0": place("n", 0), "note#0": place("n", 0), "note#1": place("n", 1)}))
    told = of_node(spec, plan, "n")
    assert "gpu 0-1  mps, 2 clients  gpu 0 has 2 clients; time-slice does not do for safe" in told


def test_a_node_that_promises_more_than_it_has_tells_both() -> None:
    rule = Promises(Ratios(cpu=1500))
    spec = make_spec([node("n", 1, cpu=8000)], [workload("w", 1, gpus=1)], [policy("twice", rule)])
    told = of_node(spec, plan_for(spec, {}), "n")
    assert "12 of 12 left, which promises more than its 8" in told
    assert "MiB left\n" in told


def test_a_node_tells_what_policies_keep_free_on_it() -> None:
    spec = make_spec([node("n", 2), node("m", 0)], [], [policy("spare", Reserve(replicas=1, request=request(1)))])
    plan = solve(spec)
    assert "    spare  1 place on gpu 0" in of_node(spec, plan, "n").splitlines()
    assert "Keeps free" not in of_node(spec, plan, "m")
    whole = make_spec([node("n", 2)], [], [policy("whole", Reserve(domains=1, of="node"))])
    assert "    whole  all of n" in of_node(whole, solve(whole), "n").splitlines()


def told_of(work: Workload, policies: list[Policy], nodes: int = 1) -> list[str]:
    spec = make_spec([node(f"n{index}", 2) for index in range(nodes)], [work], policies)
    plan = solve(spec)
    bars = barring(spec, plan, spec.by_id["w"])
    text = of_workload(Explanation(spec, plan, spec.by_id["w"], bars), Places(DocumentSet((), Path())))
    return [" ".join(line.split()) for line in text.splitlines()]


def test_policies_that_keep_out_are_told_from_those_that_apply() -> None:
    ample, few = policy("ample", Quota((("gpus", 9000),))), policy("few", Quota((("gpus", 1000),)))
    lines = told_of(workload("w", 3, gpus=1), [ample, few], 2)
    assert "! few quota without it one more replica would have a place" in lines
    assert "= ample quota without it one more replica would have no place either" in lines
    lines = told_of(workload("w", 2, gpus=1), [ample, few, policy("none", Quota((("gpus", 0),)))])
    assert "! none quota without it one more replica would have a place" in lines
    lines = told_of(workload("w", 3, gpus=1, type="gang"), [few])
    assert (
        "= few quota forbids 3 more replicas as such; without it 3 more replicas would have no place either" in lines
    )
    assert "fewer than 3 more replicas would not do" in lines
    lines = told_of(workload("w", 2, gpus=1, type="gang"), [few, policy("all", Quota((("gpus", 0),)))])
    assert "! few quota without it and all 2 more replicas would have places" in lines
    lines = told_of(workload("w", 2, gpus=1), [ample])
    assert "Hard policies that apply to it" in lines
    assert "ample quota" in lines


def test_a_workload_tells_what_it_takes_of_which_gpus() -> None:
    asked = replace(request(), share=Share(100, elsewhere=(Pace("L4", 400),)))
    work = workload("note", roles=[role("", 1, asked)])
    spec = make_spec([node("quick", 1), node("slow", 1, accelerator="L4")], [work])
    plan = plan_for(spec, places({"note#0": place("slow", 0)}))
    told = of_workload(Explanation(spec, plan, work), Places(DocumentSet((), Path())))
    assert "takes    0.1 of H100-80GB, 0.4 of L4" in told
