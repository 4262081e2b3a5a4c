"""Patches: what each kind changes in a Spec, and that it changes nothing else."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from tests.whatif.projects import PROJECT, patched
from tests.whatif.projects import asked as asked_of

from dovetail.resources import schemas_folder
from dovetail.spec import Node, Spec
from dovetail.whatif import TABLE, Patch


def homes(spec: Spec, group: str) -> list[tuple[str, str, str]]:
    return [(n.name, n.domains["block"], n.domains["rack"]) for n in spec.cluster.nodes if n.group == group]


def without(spec: Spec, *fields: str) -> dict[str, object]:
    return {f.name: getattr(spec, f.name) for f in dataclasses.fields(spec) if f.name not in fields}


def changed_nodes(before: Spec, after: Spec) -> list[Node]:
    return [new for old, new in zip(before.cluster.nodes, after.cluster.nodes, strict=True) if old != new]


def test_the_table_lists_every_kind_that_the_schema_honours() -> None:
    schema = json.loads((schemas_folder() / "scenario.schema.json").read_text(encoding="utf-8"))
    kinds = schema["$defs"]["patch"]["properties"]
    assert set(TABLE) == {kind for kind, each in kinds.items() if "x-dovetail-unsupported" not in each}


def test_a_patch_without_hooks_changes_nothing(tmp_path: Path) -> None:
    spec = patched(tmp_path, "{drop: {workload: pair}}").base
    assert Patch().applied(spec) is spec


@pytest.mark.parametrize("name", ["h100-block0/h100-rack1", "h100-rack1"])
def test_a_failing_domain_takes_its_nodes_down(tmp_path: Path, name: str) -> None:
    asked = patched(tmp_path, f"{{fail: {{rack: {name}}}}}")
    changed = changed_nodes(asked.base, asked.changed)
    assert [(n.name, n.down, n.cordoned) for n in changed] == [("h100-002", True, False), ("h100-003", True, False)]
    assert without(asked.base, "cluster") == without(asked.changed, "cluster")


def test_a_node_fails_by_its_name(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{fail: {node: beta}}")
    assert [n.name for n in changed_nodes(asked.base, asked.changed)] == ["beta"]


def test_a_cordoned_domain_takes_nothing_new(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{cordon: {block: h100-block1}}")
    changed = changed_nodes(asked.base, asked.changed)
    # h100-007 is cordoned already.
    assert [(n.name, n.down, n.cordoned) for n in changed] == [(f"h100-00{i}", False, True) for i in (4, 5, 6)]


def test_added_nodes_go_on_with_the_names_and_domains_of_their_group(tmp_path: Path) -> None:
    spec = patched(tmp_path, "{add: {group: h100, nodes: 5}}").changed
    assert homes(spec, "h100")[8:] == [
        ("h100-008", "h100-block2", "h100-block2/h100-rack4"),
        ("h100-009", "h100-block2", "h100-block2/h100-rack4"),
        ("h100-010", "h100-block2", "h100-block2/h100-rack5"),
        ("h100-011", "h100-block2", "h100-block2/h100-rack5"),
        ("h100-012", "h100-block3", "h100-block3/h100-rack6"),
    ]


def test_added_nodes_are_what_more_of_the_count_would_have_been(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{add: {group: h100, nodes: 4}}")
    cluster = PROJECT.split("---")[0].replace("count: 8", "count: 12").partition("spec:\n")[2]
    lines = "".join(
        f"      {line}\n" for line in cluster.splitlines() if "h100-007" not in line and "nodes:" not in line
    )
    bigger = asked_of(
        tmp_path, "  patches:\n  - set:\n      kind: Cluster\n      metadata: {name: demo}\n      spec:\n" + lines
    )
    new = [node for node in asked.changed.cluster.nodes if node.group == "h100"][8:]
    assert tuple(new) == bigger.changed.cluster.nodes[8:12]


def test_added_nodes_stand_right_after_their_group(tmp_path: Path) -> None:
    cluster = patched(tmp_path, "{add: {group: h100, nodes: 1}}").changed.cluster
    assert [node.name for node in cluster.nodes][7:10] == ["h100-007", "h100-008", "alpha"]
    assert cluster.groups[0].names[-1] == "h100-008"


def test_added_nodes_join_a_shared_domain_and_get_their_own_where_domains_are_listed(tmp_path: Path) -> None:
    spec = patched(tmp_path, "{add: {group: edge, nodes: 2}}").changed
    assert homes(spec, "edge")[2:] == [("edge-002", "b9", "b9/edge-rack0"), ("edge-003", "b9", "b9/edge-rack1")]


def test_added_nodes_are_healthy_and_as_their_group_says(tmp_path: Path) -> None:
    spec = patched(tmp_path, "{add: {group: edge, nodes: 1}}").changed
    new, old = spec.cluster.by_name["edge-002"], spec.cluster.by_name["alpha"]
    assert dataclasses.replace(new, name="alpha", domains=old.domains) == old


def test_nodes_are_added_twice_without_a_name_twice(tmp_path: Path) -> None:
    spec = patched(tmp_path, "{add: {group: h100, nodes: 1}}", "{add: {group: h100, nodes: 2}}").changed
    assert [home[0] for home in homes(spec, "h100")][8:] == ["h100-008", "h100-009", "h100-010"]
    assert {home[2] for home in homes(spec, "h100")[8:]} == {"h100-block2/h100-rack4", "h100-block3/h100-rack5"}


def test_what_is_added_can_fail(tmp_path: Path) -> None:
    spec = patched(tmp_path, "{add: {group: h100, nodes: 2}}", "{fail: {rack: h100-rack4}}").changed
    assert [node.name for node in spec.cluster.nodes if node.down] == ["h100-008", "h100-009"]


@pytest.mark.parametrize(
    ("workload", "role", "replicas", "least"),
    [
        ("research/train", "", 6, 6),  # atomic: all
        ("search/web", "", 9, 1),  # a service's default
        ("search/web", "", 0, 0),
        ("pair", "hand", 5, 0),
    ],
)
def test_scaling_keeps_what_the_type_says_of_least_replicas(
    tmp_path: Path, workload: str, role: str, replicas: int, least: int
) -> None:
    given = f", role: {role}" if role else ""
    asked = patched(tmp_path, f"{{scale: {{workload: {workload}{given}, replicas: {replicas}}}}}")
    found = asked.changed.by_id[workload]
    assert (found.by_role[role].replicas, found.min_replicas) == (replicas, least)
    assert without(asked.base, "workloads") == without(asked.changed, "workloads")


def test_least_replicas_that_were_asked_for_stay_unless_there_are_fewer(tmp_path: Path) -> None:
    job = "{kind: Workload, metadata: {name: j}, spec: {type: job, replicas: 9, minReplicas: 4, request: {cpu: 1}}}"
    least = [
        patched(tmp_path, f"{{set: {job}}}", f"{{scale: {{workload: j, replicas: {n}}}}}")
        .changed.by_id["j"]
        .min_replicas
        for n in (12, 5, 2)
    ]
    assert least == [4, 4, 2]


@pytest.mark.parametrize(
    ("spec", "sizes", "least"),
    [
        ("type: gang, atomic: false, replicas: 4, minReplicas: 4", (8,), 4),  # asked for, though it is the default
        ("type: gang, atomic: false, replicas: 4", (8,), 8),
        ("type: gang, replicas: 4, minReplicas: 4", (8,), 8),  # atomic: all
        ("type: service, replicas: 4, minReplicas: 2", (1, 3), 2),
        ("type: service, replicas: 1, minReplicas: 0", (0, 3), 0),
    ],
)
def test_least_replicas_are_those_of_the_document(
    tmp_path: Path, spec: str, sizes: tuple[int, ...], least: int
) -> None:
    work = f"{{set: {{kind: Workload, metadata: {{name: j}}, spec: {{{spec}, request: {{cpu: 1}}}}}}}}"
    scales = [f"{{scale: {{workload: j, replicas: {size}}}}}" for size in sizes]
    assert patched(tmp_path, work, *scales).changed.by_id["j"].min_replicas == least


@pytest.mark.parametrize(
    ("role", "replicas", "least", "in_all"), [("leader", 3, 3, 5), ("leader", 0, 0, 2), ("worker", 4, 2, 3)]
)
def test_a_fixed_role_of_an_elastic_gang_stays_fixed(
    tmp_path: Path, role: str, replicas: int, least: int, in_all: int
) -> None:
    leader = "{name: leader, replicas: 1, request: {cpu: 1}}"
    worker = "{name: worker, replicas: {min: 2, max: 8}, request: {cpu: 1}}"
    gang = f"{{kind: Workload, metadata: {{name: g}}, spec: {{type: gang, roles: [{leader}, {worker}]}}}}"
    scale = f"{{scale: {{workload: g, role: {role}, replicas: {replicas}}}}}"
    found = patched(tmp_path, f"{{set: {gang}}}", scale).changed.by_id["g"]
    assert (found.by_role[role].replicas, found.by_role[role].least, found.min_replicas) == (replicas, least, in_all)


def test_a_scaled_gang_that_may_have_none_still_runs_with_one(tmp_path: Path) -> None:
    gang = "{kind: Workload, metadata: {name: g}, spec: {type: gang, replicas: {min: 0, max: 8}, request: {cpu: 1}}}"
    asked = patched(tmp_path, f"{{set: {gang}}}", "{scale: {workload: g, replicas: 4}}")
    assert asked.changed.by_id["g"].min_replicas == 1


def test_a_dropped_workload_is_gone(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{drop: {workload: search/web}}")
    assert set(asked.base.by_id) - set(asked.changed.by_id) == {"search/web"}


def test_a_dropped_policy_takes_its_waivers_along(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{drop: {policy: apart}}")
    assert [len(asked.base.policies), len(asked.base.waivers)] == [1, 1]
    assert [asked.changed.policies, asked.changed.waivers] == [(), ()]


def test_set_replaces_a_document_of_the_same_identity(tmp_path: Path) -> None:
    policy = "{kind: Policy, metadata: {name: apart}, spec: {rule: {admission: {}}, enforcement: audit}}"
    asked = patched(tmp_path, f"{{set: {policy}}}")
    assert [p.rule.kind for p in asked.base.policies] == ["separate"]
    assert [p.rule.kind for p in asked.changed.policies] == ["admission"]


def test_set_adds_a_document(tmp_path: Path) -> None:
    job = "{kind: Workload, metadata: {name: web}, spec: {type: job, request: {cpu: 1}}}"
    asked = patched(tmp_path, f"{{set: {job}}}")
    assert set(asked.changed.by_id) - set(asked.base.by_id) == {"web"}


def test_the_last_set_of_a_document_wins(tmp_path: Path) -> None:
    job = (
        "{{set: {{kind: Workload, metadata: {{name: web}}, spec: {{type: job, replicas: {}, request: {{cpu: 1}}}}}}}}"
    )
    asked = patched(tmp_path, job.format(2), job.format(7))
    assert asked.changed.by_id["web"].replicas == 7


def test_patches_read_as_words(tmp_path: Path) -> None:
    asked = patched(
        tmp_path,
        "{set: {kind: Objective, metadata: {name: other}, spec: {tiers: [admitted]}}}",
        "{add: {group: h100, nodes: 1}}",
        "{fail: {rack: h100-rack0}}",
        "{cordon: {node: alpha}}",
        "{scale: {workload: pair, role: hand, replicas: 1}}",
        "{drop: {workload: search/web}}",
        "{drop: {policy: apart}}",
        "{price: {group: h100, perGpuHour: 2.5, perHour: 1}}",
        "{repartition: {nodes: {groups: [edge], names: [alpha]}, instances: [3g.20gb, 4g.20gb@0]}}",
        "{repartition: {nodes: {}, instances: []}}",
    )
    assert [str(step.patch) for step in asked.scenario.steps] == [
        "Objective other set",
        "1 more node in h100",
        "rack h100-rack0 fails",
        "node alpha cordoned",
        "workload pair.hand with 1 replica",
        "workload search/web dropped",
        "policy apart dropped",
        "h100 at 1 per node and hour, 2.5 per GPU and hour",
        "GPUs of groups edge, names alpha cut into 3g.20gb + 4g.20gb@0",
        "GPUs of all nodes cut into nothing",
    ]


def test_a_price_holds_for_all_nodes_of_a_group_and_those_added_later(tmp_path: Path) -> None:
    patches = ["{price: {group: h100, perHour: 2.5}}", "{add: {group: h100, nodes: 1}}"]
    patches.append("{price: {group: edge, perGpuHour: 1}}")
    found = patched(tmp_path, *patches).changed.cluster.nodes
    assert {(n.group, n.price, n.gpu_price) for n in found} == {("h100", 2_500_000, 0), ("edge", 0, 1_000_000)}


def test_gpus_that_are_cut_anew_have_their_layout_today(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{repartition: {nodes: {groups: [edge]}, instances: [3g.20gb, 4g.20gb@0]}}")
    found = {gpu: [str(each) for each in layout] for gpu, layout in asked.changed.current.gpus.items()}
    assert found == {"alpha/0": ["4g.20gb@0", "3g.20gb@4"], "beta/0": ["4g.20gb@0", "3g.20gb@4"]}
    assert without(asked.base, "current") == without(asked.changed, "current")


def test_an_empty_layout_is_mig_mode_without_instances(tmp_path: Path) -> None:
    asked = patched(tmp_path, "{repartition: {nodes: {domains: [h100-rack0]}, instances: []}}")
    assert asked.changed.current.gpus == {f"h100-00{n}/{gpu}": () for n in (0, 1) for gpu in (0, 1)}
