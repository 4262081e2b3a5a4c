"""Scenarios that do not fit their project: each fault with its code and its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.whatif.projects import AS_OF, FIRST_LINE, asked, documents_of

from dovetail.faults import CODES, Refused
from dovetail.whatif import Scenario, Spot, prepare, step

Found = tuple[str, int, int]


def found(folder: Path, scenario: str, *, more: str = "") -> list[Found]:
    """Return code, line (from the scenario's first one on) and column of each fault."""
    with pytest.raises(Refused) as refused:
        asked(folder, scenario, more=more)
    places = [(fault.code, fault.position) for fault in refused.value.faults]
    start = FIRST_LINE + more.count("\n")
    return [(code, place.line - start, place.column) if place else (code, 0, 0) for code, place in places]


POLICY = "{kind: Policy, metadata: {name: apart}, spec: {rule: {admission: {}}, enforcement: audit}}"


@pytest.mark.parametrize(
    ("patches", "faults"),
    [
        (["{fail: {row: r1}}"], [("DT1801", 1, 13)]),
        (["{cordon: {rack: nowhere}}"], [("DT1802", 1, 21)]),
        (["{fail: {node: h100-099}}"], [("DT1802", 1, 19)]),
        (["{fail: {rack: h100-block0}}"], [("DT1802", 1, 19)]),
        (["{add: {group: h200, nodes: 1}}"], [("DT1804", 1, 19)]),
        (["{add: {group: h100, nodes: 1000000}}"], [("DT1805", 1, 32)]),
        (["{scale: {workload: web, replicas: 1}}"], [("DT1806", 1, 24)]),
        (["{drop: {workload: nobody}}"], [("DT1806", 1, 23)]),
        (["{scale: {workload: pair, replicas: 1}}"], [("DT1807", 1, 24)]),
        (["{scale: {workload: pair, role: foot, replicas: 1}}"], [("DT1807", 1, 36)]),
        (["{scale: {workload: search/web, role: hand, replicas: 1}}"], [("DT1807", 1, 36)]),
        (["{drop: {policy: unknown}}"], [("DT1808", 1, 21)]),
        (["{drop: {policy: apart}}", f"{{set: {POLICY}}}"], [("DT1809", 2, 6)]),
        (["{price: {group: h200, perHour: 1}}"], [("DT1804", 1, 21)]),
        (["{price: {group: h100, perHour: 0.0000001}}"], [("DT1203", 1, 36)]),
        (["{price: {group: h100}}"], [("DT1109", 1, 6)]),
        (["{repartition: {nodes: {groups: [h200]}, instances: []}}"], [("DT1311", 1, 37)]),
        (["{repartition: {nodes: {matchLabels: {zone: far}}, instances: []}}"], [("DT1817", 1, 27)]),
        (["{repartition: {nodes: {names: [alpha]}, instances: [9g.9gb]}}"], [("DT1423", 1, 57)]),
        (["{repartition: {nodes: {names: [alpha]}, instances: [4g.20gb@4]}}"], [("DT1424", 1, 57)]),
        (["{repartition: {nodes: {names: [alpha]}, instances: [4g.20gb, 4g.20gb]}}"], [("DT1424", 1, 66)]),
        (["{fail: {row: r1}}", "{drop: {workload: nobody}}"], [("DT1801", 1, 13), ("DT1806", 2, 23)]),
        (["{drop: {workload: pair}}", "{scale: {workload: pair, role: hand, replicas: 1}}"], [("DT1806", 2, 24)]),
    ],
)
def test_a_patch_that_does_not_fit_is_refused_at_its_place(
    tmp_path: Path, patches: list[str], faults: list[Found]
) -> None:
    assert found(tmp_path, "  patches:\n" + "".join(f"  - {patch}\n" for patch in patches)) == faults


@pytest.mark.parametrize("name", ["ranked", "elastic"])
def test_a_size_that_makes_no_whole_groups_or_steps_is_refused(tmp_path: Path, name: str) -> None:
    head = "---\napiVersion: dovetail/v1alpha1\nkind: Workload\n"
    more = (
        f"{head}metadata: {{name: ranked}}\n"
        "spec: {type: gang, replicas: 4, request: {gpus: 1}, topology: {groups: [{of: 2, within: rack}]}}\n"
        f"{head}metadata: {{name: elastic}}\n"
        "spec: {type: gang, replicas: {min: 2, max: 8, step: 2}, request: {gpus: 1}}\n"
    )
    for replicas, faults in ((6, []), (7, [("DT1816", 1, 23 + len(name) + 13)])):
        patch = f"  patches:\n  - {{scale: {{workload: {name}, replicas: {replicas}}}}}\n"
        if faults:
            assert found(tmp_path, patch, more=more) == faults
        else:
            asked(tmp_path, patch, more=more)


TEAMS = """\
---
apiVersion: dovetail/v1alpha1
kind: Workload
metadata: {name: teams}
spec:
  type: gang
  roles:
  - {name: leader, replicas: 1, request: {gpus: 1}}
  - {name: worker, replicas: 4, request: {gpus: 1}}
  topology: {groups: [{roles: {leader: 1, worker: 4}, within: rack}]}
"""


@pytest.mark.parametrize(
    ("patches", "faults"),
    [
        (["leader, replicas: 2", "worker, replicas: 8"], []),
        (["worker, replicas: 8"], [("DT1816", 1, 55)]),
        (["worker, replicas: 8", "leader, replicas: 3"], [("DT1816", 2, 55)]),
        (["worker, replicas: 8", "leader, replicas: 3", "leader, replicas: 2"], []),
        (["worker, replicas: 7"], [("DT1816", 1, 55)]),
    ],
)
def test_roles_of_a_group_make_as_many_groups_each(tmp_path: Path, patches: list[str], faults: list[Found]) -> None:
    lines = (f"  - {{scale: {{workload: teams, role: {patch}}}}}\n" for patch in patches)
    scenario = "  patches:\n" + "".join(lines)
    if faults:
        assert found(tmp_path, scenario, more=TEAMS) == faults
    else:
        asked(tmp_path, scenario, more=TEAMS)


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        ("{workload: nobody, admitted: full}", ("DT1806", 1, 16)),
        ("{policy: unknown, result: pass}", ("DT1808", 1, 14)),
        ("{workload: pair}", ("DT1810", 1, 5)),
        ("{summary: moves}", ("DT1810", 1, 5)),
        ("{atMost: 4}", ("DT1810", 1, 5)),
        ("{summary: moves, status: optimal}", ("DT1810", 1, 22)),
        ("{status: optimal, atMost: 4}", ("DT1810", 1, 23)),
        ("{status: optimal, conflict: [apart]}", ("DT1810", 1, 23)),
    ],
)
def test_an_expectation_that_cannot_be_judged_is_refused(tmp_path: Path, expected: str, fault: Found) -> None:
    assert found(tmp_path, f"  expect:\n  - {expected}\n") == [fault]


def test_two_domains_of_one_name_need_the_path(tmp_path: Path) -> None:
    cluster = (
        "{set: {kind: Cluster, metadata: {name: demo}, spec: {levels: [{name: block}, {name: rack}, {name: node}], "
        "nodeGroups: [{name: a, count: 1, cpu: 1, memory: 1Gi, gpus: 0, domains: {rack: {name: r}}}, "
        "{name: b, count: 1, cpu: 1, memory: 1Gi, gpus: 0, domains: {rack: {name: r}}}]}}}"
    )
    assert found(tmp_path, f"  patches:\n  - {cluster}\n  - {{fail: {{rack: r}}}}\n") == [("DT1803", 2, 19)]
    asked(tmp_path, f"  patches:\n  - {cluster}\n  - {{fail: {{rack: a/r}}}}\n")


def test_a_dropped_workload_cannot_be_expected(tmp_path: Path) -> None:
    scenario = "  patches:\n  - {drop: {workload: pair}}\n  expect:\n  - {workload: pair, admitted: full}\n"
    assert found(tmp_path, scenario) == [("DT1806", 3, 16)]


def test_what_is_meant_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        asked(tmp_path, "  patches:\n  - {fail: {rack: h100-rak1}}\n")
    assert refused.value.faults[0].hint == "did you mean h100-rack1?"


def test_faults_of_a_set_document_stand_in_the_scenario(tmp_path: Path) -> None:
    scenario = (
        "  patches:\n  - set:\n      kind: Workload\n      metadata: {name: new}\n      spec:\n"
        "        type: job\n        request: {gpus: 1}\n        accelerators: [H100-80GB, H111]\n"
    )
    assert found(tmp_path, scenario) == [("DT1304", 7, 35)]


def test_a_second_cluster_is_refused(tmp_path: Path) -> None:
    group = "{name: a, count: 1, cpu: 1, memory: 1Gi, gpus: 0}"
    cluster = f"{{kind: Cluster, metadata: {{name: other}}, spec: {{nodeGroups: [{group}]}}}}"
    assert [fault[0] for fault in found(tmp_path, f"  patches:\n  - {{set: {cluster}}}\n")] == ["DT1316"]


def test_without_a_document_the_option_is_named(tmp_path: Path) -> None:
    made = step({"fail": {"rack": "r3"}}, Spot(option="--fail rack=r3"))
    with pytest.raises(Refused) as refused:
        prepare(documents_of(tmp_path), Scenario(steps=(made,)), as_of=AS_OF)
    (fault,) = refused.value.faults
    assert (fault.position, fault.message) == (None, "--fail rack=r3: there is no rack 'r3'")


def test_every_code_of_scenarios_and_tests_is_tested() -> None:
    others = Path(__file__).parents[1] / "testing" / "test_policytests.py"
    text = "".join(path.read_text(encoding="utf-8") for path in (Path(__file__), others))
    assert [code for code in CODES if code.startswith("DT18") and f'"{code}"' not in text] == []
