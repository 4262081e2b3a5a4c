"""PolicyTests: worlds of their own, places judged without a search, and what is wrong with a test."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.documents import load_project
from dovetail.faults import Refused
from dovetail.plan import Outcome, Plan
from dovetail.spec import Spec
from dovetail.testing import CaseResult, check_tests, prepare, run

AS_OF = dt.date(2026, 6, 1)
PROJECT = """\
apiVersion: dovetail/v1alpha1
kind: Project
metadata: {name: shop}
spec: {documents: ["*.yaml"]}
---
apiVersion: dovetail/v1alpha1
kind: Cluster
metadata: {name: big}
spec:
  nodeGroups:
  - {name: big, count: 9, accelerator: A100-80GB, gpus: 8, cpu: 64, memory: 1Ti}
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: web, namespace: search}
spec: {type: service, replicas: 3, request: {gpus: 1, cpu: 1}}
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: apart}
spec: {match: {workloads: {}}, rule: {separate: {by: tenant, at: node}}, enforcement: hard}
---
apiVersion: dovetail/v1alpha1
kind: Policy
metadata: {name: on-big-nodes}
spec: {match: {workloads: {}, nodes: {groups: [big]}}, rule: {require: {}}, enforcement: {soft: {weight: 2}}}
---
apiVersion: dovetail/v1alpha1
kind: Waiver
metadata: {name: web-pilot}
spec: {policy: apart, match: {workloads: {names: [search/web]}}, reason: pilot, owner: us, expires: 2026-12-31}
"""
HEAD = "apiVersion: dovetail/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\nspec:\n"
WORLD = """\
  policies: [apart]
  documents:
  - kind: Cluster
    metadata: {name: tiny}
    spec: {nodeGroups: [{name: n, count: 2, accelerator: H100-80GB, gpus: 2, cpu: 8, memory: 64Gi}]}
  - {kind: Workload, metadata: {name: a, namespace: red}, spec: {type: job, replicas: 2, request: {gpus: 1}}}
  - {kind: Workload, metadata: {name: b, namespace: blue}, spec: {type: job, request: {gpus: 1}}}
"""
TOGETHER = "    placements: {red/a#0: {node: n-000, gpus: [0]}, blue/b#0: {node: n-000, gpus: [1]}}\n"
ONE_GPU_TWICE = (
    "    placements: {red/a#0: {node: n-000, gpus: [0]}, "
    "red/a#1: {node: n-000, gpus: [1]}, blue/b#0: {node: n-000, gpus: [1]}}\n"
)
APART = "    placements: {red/a#0: {node: n-000, gpus: [0]}, blue/b#0: {node: n-001, gpus: [1]}}\n"


def never(spec: Spec) -> Plan:
    raise AssertionError("nothing is to be planned")


def case(name: str, body: str, *expected: str) -> str:
    return f"  - name: {name}\n{body}    expect:\n" + "".join(f"    - {{{each}}}\n" for each in expected)


def project(folder: Path, test: str) -> Path:
    (folder / "dovetail.yaml").write_text(PROJECT, encoding="utf-8")
    (folder / "test.yaml").write_text(HEAD + test, encoding="utf-8")
    return folder


def results(folder: Path, test: str) -> list[CaseResult]:
    return list(run(prepare(load_project(project(folder, test)), as_of=AS_OF), never))


def faults(folder: Path, test: str) -> list[tuple[str, int, int]]:
    with pytest.raises(Refused) as refused:
        check_tests(load_project(project(folder, test)), as_of=AS_OF)
    places = [(fault.code, fault.position) for fault in refused.value.faults]
    return [(code, place.line, place.column) if place else (code, 0, 0) for code, place in places]


def test_results_violations_and_subjects_are_judged(tmp_path: Path) -> None:
    said = "policy: apart, result: fail, violation: 1, subjects: {n-000: 1}"
    found = results(
        tmp_path,
        f"{WORLD}  cases:\n{case('together', TOGETHER, said, 'policy: apart, subjects: {}')}"
        + case("apart", APART, "policy: apart, result: pass, violation: 0, subjects: {}"),
    )
    assert [result.verdict for result in found] == ["fail", "pass"]
    assert [check.ok for check in found[0].checks] == [True, False]
    assert found[0].checks[1].actual == "fail, 1 extra value in a domain by n-000 (1)"
    assert [result.status for result in found] == [None, None]


@pytest.mark.parametrize(
    "wrong",
    [
        "result: pass",
        "result: waived",
        "violation: 2",
        "violation: 0",
        "subjects: {n-001: 1}",
        "subjects: {n-000: 2}",
    ],
)
def test_each_claim_of_a_policy_counts(tmp_path: Path, wrong: str) -> None:
    found = results(tmp_path, f"{WORLD}  cases:\n{case('together', TOGETHER, f'policy: apart, {wrong}')}")
    assert [result.verdict for result in found] == ["fail"]


def test_workloads_figures_and_tiers_of_given_places_are_judged_too(tmp_path: Path) -> None:
    expected = ["workload: red/a, admitted: partial", "workload: red/a, replicas: 1"]
    expected += [
        "workload: blue/b, admitted: full",
        "summary: gpusAllocated, equals: 2",
        'tier: "admitted[0]", equals: 2000',
    ]
    found = results(tmp_path, f"{WORLD}  cases:\n{case('apart', APART, *expected)}")
    assert [check.ok for check in found[0].checks] == [True] * 5


def test_a_world_of_its_own_leaves_the_projects_workloads_and_waivers_out(tmp_path: Path) -> None:
    test = f"{WORLD}  cases:\n{case('c', APART, 'policy: apart, result: pass')}"
    trials = prepare(load_project(project(tmp_path, test)), as_of=AS_OF)
    spec = trials[0].spec  # type: ignore[attr-defined]
    assert [workload.id for workload in spec.workloads] == ["blue/b", "red/a"]
    assert [node.name for node in spec.cluster.nodes] == ["n-000", "n-001"]
    assert [policy.name for policy in spec.policies] == ["apart"]
    assert not spec.waivers


def test_without_documents_of_its_own_the_world_is_the_project(tmp_path: Path) -> None:
    body = "    patches: [{scale: {workload: search/web, replicas: 2}}]\n"
    body += "    placements: {search/web#0: {node: big-000, gpus: [0]}}\n"
    expected = "policy: on-big-nodes, result: pass", "workload: search/web, admitted: partial"
    test = "  cases:\n" + case("c", body, *expected)
    assert [result.verdict for result in results(tmp_path, test)] == ["pass"]


def test_files_that_are_given_make_the_world(tmp_path: Path) -> None:
    (tmp_path / "worlds").mkdir()
    lines = "".join(f"{line[2:]}\n" for line in WORLD.splitlines()[2:])
    documents = [f"apiVersion: dovetail/v1alpha1\n{each}" for each in _documents(lines)]
    (tmp_path / "worlds" / "tiny.yaml").write_text("---\n".join(documents), encoding="utf-8")
    test = "  policies: [apart]\n  given: [worlds/*.yaml]\n  cases:\n"
    test += case("c", TOGETHER, "policy: apart, result: fail")
    assert [result.verdict for result in results(tmp_path, test)] == ["pass"]


def _documents(lines: str) -> list[str]:
    import yaml

    return [yaml.safe_dump(each) for each in yaml.safe_load(lines)]


def test_waivers_are_judged_at_the_date_of_a_case(tmp_path: Path) -> None:
    waiver = (
        "  - kind: Waiver\n    metadata: {name: w}\n    spec: {policy: apart, match: {workloads: {names: [red/a]}}, "
    )
    waiver += "reason: pilot, owner: us, expires: 2026-06-30}\n"
    test = f"{WORLD}{waiver}  cases:\n"
    test += case("last day", f"    asOf: 2026-06-30\n{TOGETHER}", "policy: apart, result: waived")
    test += case("a day later", f"    asOf: 2026-07-01\n{TOGETHER}", "policy: apart, result: fail")
    assert [result.verdict for result in results(tmp_path, test)] == ["pass", "pass"]


def test_what_runs_today_is_given_by_a_placement(tmp_path: Path) -> None:
    today = "  - kind: Placement\n    metadata: {name: today}\n    spec:\n      placements: "
    today += "{red/a#0: {node: n-000, gpus: [0]}, blue/b#0: {node: n-000, gpus: [1]}}\n"
    test = f"{WORLD}{today}  cases:\n{case('as today', TOGETHER, 'policy: apart, result: pass, violation: 1')}"
    assert [result.verdict for result in results(tmp_path, test)] == ["pass"]


def test_a_case_without_places_is_planned_once_for_equal_worlds(tmp_path: Path) -> None:
    asked: list[Spec] = []

    def solve(spec: Spec) -> Plan:
        asked.append(spec)
        return Plan(spec.name, "sha256:0", Outcome("infeasible"), conflict=("apart",))

    expected = ["status: infeasible, conflict: [apart]", "status: infeasible", "workload: red/a, admitted: none"]
    test = f"{WORLD}  cases:\n{case('one', '', *expected)}{case('two', '', 'status: optimal')}"
    test += case(
        "three", "    patches: [{scale: {workload: red/a, replicas: 1}}]\n", "status: infeasible, conflict: [apart]"
    )
    trials = prepare(load_project(project(tmp_path, test)), as_of=AS_OF)
    found = list(run(trials, solve))
    assert [[check.ok for check in result.checks] for result in found] == [[True, True, False], [False], [True]]
    assert found[0].checks[0].actual == "infeasible, conflict apart"
    assert [trial.planned for trial in trials] == [True] * 3
    assert len(asked) == 2


def test_without_an_answer_a_case_is_undecided_and_not_missed(tmp_path: Path) -> None:
    test = f"{WORLD}  cases:\n{case('c', '', 'policy: apart, result: pass')}{case('d', '', 'status: unknown')}"
    trials = prepare(load_project(project(tmp_path, test)), as_of=AS_OF)
    found = run(trials, lambda spec: Plan(spec.name, "sha256:0", Outcome("unknown", "work")))
    assert [result.verdict for result in found] == ["undecided", "pass"]


MIG = WORLD.replace("request: {gpus: 1}", "request: {mig: 1g.10gb}")
"""The world with workloads on MIG instances, of which both may share a GPU."""


@pytest.mark.parametrize(("second", "verdict"), [("1g.10gb@1", ["pass"]), ("1g.10gb@0", None), ("2g.20gb@2", None)])
def test_places_on_instances_are_judged_and_must_fit(tmp_path: Path, second: str, verdict: list[str] | None) -> None:
    rows = "red/a#0: {node: n-000, gpus: [0], instance: 1g.10gb@0}"
    rows += f", blue/b#0: {{node: n-000, gpus: [0], instance: {second}}}"
    test = f"{MIG}  cases:\n{case('c', f'    placements: {{{rows}}}' + chr(10), 'policy: apart, result: fail')}"
    if verdict is None:
        assert {code for code, _, _ in faults(tmp_path, test)} == {"DT1813"}
    else:
        assert [result.verdict for result in results(tmp_path, test)] == verdict


CASES = HEAD.count("\n") + WORLD.count("\n") + 2
"""The line that the first case of `WORLD` starts on."""

ANY = case("c", "", "status: optimal")
QUOTA = "{kind: Policy, metadata: {name: few}, spec: {rule: {quota: {limit: {gpus: 1}}}, enforcement: hard}}"
TWICE = "  - {kind: Workload, metadata: {name: b, namespace: blue}, spec: {type: job, request: {gpus: 1}}}\n"


def of_world(body: str, *expected: str) -> str:
    return f"{WORLD}  cases:\n{case('c', body, *expected or ('policy: apart, result: fail',))}"


@pytest.mark.parametrize(
    ("test", "wanted"),
    [
        (f"  policies: [apart, appart]\n  cases:\n{ANY}", [("DT1808", 5, 21)]),
        (f"  given: [worlds/*.yaml]\n  cases:\n{ANY}", [("DT1811", 5, 11)]),
        (f"  given: [../*.yaml]\n  cases:\n{ANY}", [("DT1811", 5, 11)]),
        (f"  given: [dovetail.yaml]\n  cases:\n{ANY}", [("DT1812", 5, 11)]),
        (of_world(APART, "status: optimal"), [("DT1814", CASES + 3, 16)]),
        (of_world(APART, "policy: on-big-nodes, result: pass"), [("DT1808", CASES + 3, 16)]),
        (of_world("", "status: infeasible, conflict: [apart, other]"), [("DT1808", CASES + 2, 46)]),
        (of_world("", "policy: apart"), [("DT1810", CASES + 2, 7)]),
        (of_world(f"    patches: [{{set: {QUOTA}}}]\n"), [("DT1808", CASES + 1, 53)]),
        (of_world("    patches: [{drop: {policy: on-big-nodes}}]\n"), [("DT1808", CASES + 1, 31)]),
        (f"{WORLD}  - {QUOTA}\n  cases:\n{ANY}", [("DT1808", CASES - 1, 37)]),
        (of_world(APART.replace("n-001", "x")), [("DT1813", CASES + 1, 53)]),
        (of_world(TOGETHER.replace("a#0", "a#7")), [("DT1813", CASES + 1, 18)]),
        (of_world(TOGETHER.replace("[1]", "[0]")), [("DT1813", CASES + 1, 18)]),
        (of_world(ONE_GPU_TWICE), [("DT1813", CASES + 1, 53)]),
        (of_world(APART.replace("[1]", "[0, 1]")), [("DT1813", CASES + 1, 53)]),
        (of_world(f"    asOf: 2026-02-30\n{APART}"), [("DT1201", CASES + 1, 11)]),
        (f"{WORLD}  cases:\n{ANY}{ANY}", [("DT1815", CASES + 3, 11)]),
        (f"{WORLD}{TWICE}  cases:\n{ANY}", [("DT1301", CASES - 1, 39)]),
    ],
)
def test_what_is_wrong_with_a_test_is_told_at_its_place(
    tmp_path: Path, test: str, wanted: list[tuple[str, int, int]]
) -> None:
    assert faults(tmp_path, test) == wanted


def test_a_policy_that_the_test_leaves_out_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        results(tmp_path, of_world(APART, "policy: on-big-nodes, result: pass"))
    (fault,) = refused.value.faults
    assert fault.message == "the policy 'on-big-nodes' is not under test"
    assert "add it to the `policies` of the test" in str(fault.hint)


def test_judging_never_imports_a_solver(tmp_path: Path) -> None:
    project(tmp_path, f"{WORLD}  cases:\n{case('c', TOGETHER, 'policy: apart, result: fail')}")
    code = (
        "import sys; from dovetail_cli.main import run; code = run(['test', sys.argv[1]]); "
        "print([name for name in ('ortools', 'highspy', 'pyomo', 'numpy') if name in sys.modules]); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n")
