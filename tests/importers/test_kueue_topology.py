"""Topologies of Kueue with nodes become clusters; what is wrong with them is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest
from tests.importers.test_slurm_topology import cluster_of

from dovetail.faults import Refused
from dovetail.importers.kueue_topology import import_kueue_topology
from dovetail.importers.project import ImportedProject
from dovetail_cli.main import run

TOPOLOGY = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Topology
metadata: {name: default}
spec:
  levels:
  - nodeLabel: cloud.provider.com/topology-block
  - nodeLabel: cloud.provider.com/topology-rack
  - nodeLabel: kubernetes.io/hostname
"""


def kube_node(name: str, rack: str | None, **more: object) -> dict[str, object]:
    """Return a node of Kubernetes in block b."""
    labels = {"cloud.provider.com/topology-block": "b", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    labels |= {"cloud.provider.com/topology-rack": rack} if rack else {}
    free = {"cpu": "95500m", "memory": "1055761840Ki", "nvidia.com/gpu": "8", "pods": "110"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": free}, "spec": more}


def gpus(labels: dict[str, str], free: dict[str, str]) -> dict[str, object]:
    """Return a node with labels and allocatable resources about its GPUs."""
    node = kube_node("n", "r")
    told, offered = (
        cast(dict[str, dict[str, object]], node[part])[key]
        for part, key in (("metadata", "labels"), ("status", "allocatable"))
    )
    told |= {f"nvidia.com/gpu.{key}": value for key, value in labels.items()}
    del offered["nvidia.com/gpu"]
    offered |= {f"nvidia.com/{key}": value for key, value in free.items()}
    return node


def kueue(tmp_path: Path, nodes: list[dict[str, object]], topology: str = TOPOLOGY) -> ImportedProject:
    """Import a Topology with nodes."""
    (tmp_path / "topology.yaml").write_text(topology, encoding="utf-8")
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}, indent=1), encoding="utf-8")
    return import_kueue_topology(tmp_path / "topology.yaml", tmp_path / "nodes.json")


def test_labels_of_a_topology_become_levels(tmp_path: Path) -> None:
    nodes = [kube_node("n1", "r1"), kube_node("n2", "r2", unschedulable=True), kube_node("n3", None)]
    found = cluster_of(kueue(tmp_path, nodes), tmp_path / "out")
    assert found.levels == ("block", "rack", "node")
    assert [node.name for node in found.nodes] == ["n1", "n2"]
    assert "the label of a level: 1 of 3 nodes" in (tmp_path / "out" / "dovetail.yaml").read_text("utf-8")
    one = found.by_name["n1"]
    assert (one.domains["rack"], one.gpus, one.accelerator, one.cpu) == ("b/r1", 8, "H100-80GB", 95_500)
    assert one.memory == 1_055_761_840 // 1024
    assert found.by_name["n2"].cordoned


def test_nodes_that_are_left_out_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [kube_node("n0", "r"), *(kube_node(f"n{number}", None) for number in range(1, 8))]
    (warning,) = kueue(tmp_path, nodes).warnings
    label = "cloud.provider.com/topology-rack"
    assert warning.message == f"left out for lack of the label {label}: n1, n2, n3, n4, n5 and 2 more"
    assert (warning.code, warning.severity) == ("DT1959", "warning")
    assert warning.position
    assert warning.hint
    given = ["--topology", str(tmp_path / "topology.yaml"), "--nodes", str(tmp_path / "nodes.json")]
    assert run(["import", "kueue-topology", *given, "--out", str(tmp_path / "out")]) == 0
    assert "n5 and 2 more" in capsys.readouterr().err


def test_all_nodes_with_labels_are_no_reason_to_warn(tmp_path: Path) -> None:
    assert kueue(tmp_path, [kube_node("n", "r")]).warnings == ()


@pytest.mark.parametrize(
    ("labels", "free", "sign"),
    [
        ({}, {"amd.com/gpu": "8"}, "amd.com/gpu"),
        ({}, {"gpu.intel.com/xe": "4"}, "gpu.intel.com/xe"),
        ({"count": "8"}, {}, "nvidia.com/gpu.count"),
    ],
)
def test_gpus_that_are_not_read_are_told(
    labels: dict[str, str], free: dict[str, str], sign: str, tmp_path: Path
) -> None:
    node = gpus(labels, {})
    cast(dict[str, dict[str, str]], node["status"])["allocatable"] |= free
    found = kueue(tmp_path, [kube_node("m", "r"), node])
    (warning,) = found.warnings
    assert warning.message == f"no GPUs of nodes are imported that have {sign}: n"
    assert (warning.code, warning.severity) == ("DT1959", "warning")
    assert {n.name: n.gpus for n in cluster_of(found, tmp_path / "out").nodes} == {"m": 8, "n": 0}


def test_a_host_without_gpus_is_no_reason_to_warn(tmp_path: Path) -> None:
    assert kueue(tmp_path, [kube_node("m", "r"), gpus({"count": "0"}, {})]).warnings == ()


@pytest.mark.parametrize(("memory", "mebibytes"), [("128974848000m", 123), ("134217728999m", 128), ("129e6", 123)])
def test_memory_is_read_as_kubernetes_writes_it(memory: str, mebibytes: int, tmp_path: Path) -> None:
    node = kube_node("n", "r")
    cast(dict[str, dict[str, str]], node["status"])["allocatable"]["memory"] = memory
    assert cluster_of(kueue(tmp_path, [node]), tmp_path / "out").by_name["n"].memory == mebibytes


def test_memory_that_is_no_amount_is_told_as_such(tmp_path: Path) -> None:
    node = kube_node("n", "r")
    cast(dict[str, dict[str, str]], node["status"])["allocatable"]["memory"] = "12Gib"
    with pytest.raises(Refused) as refused:
        kueue(tmp_path, [node])
    assert "'12Gib' has an unknown unit of memory" in refused.value.faults[0].message


def test_a_node_that_is_not_ready_has_failed(tmp_path: Path) -> None:
    nodes = [kube_node(name, "r", unschedulable=name == "b") for name in "abc"]
    for each, ready in zip(nodes, ("Unknown", "False", "True"), strict=True):
        conditions = [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]
        each["status"] = {**cast(dict[str, object], each["status"]), "conditions": conditions}
    found = cluster_of(kueue(tmp_path, nodes), tmp_path / "out")
    assert [node.down for node in found.nodes] == [True, True, False]


@pytest.mark.parametrize(
    ("topology", "nodes", "words"),
    [
        (TOPOLOGY.replace("kind: Topology", "kind: Other"), [kube_node("n", "r")], "no Topology objects"),
        (TOPOLOGY.replace("levels", "tiers"), [kube_node("n", "r")], "has 'spec.levels'"),
        (TOPOLOGY.replace("-rack", "-block"), [kube_node("n", "r")], "is there twice"),
        (TOPOLOGY, [kube_node("n", None)], "no node of"),
        (TOPOLOGY, [kube_node("n", "r"), kube_node("n", "r")], "the node 'n' is there twice"),
        (TOPOLOGY, [kube_node("n", "r/x")], "cannot name a domain"),
        (TOPOLOGY, [{"metadata": {}}], "a node has a name"),
        (TOPOLOGY, [{**kube_node("n", "r"), "status": {}}], "how much cpu"),
        (TOPOLOGY, [gpus({}, {"gpu": "8k"})], "no number of GPUs"),
        (TOPOLOGY, [gpus({"product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}, {"gpu": "56"})], "that MIG cuts"),
        (TOPOLOGY, [gpus({}, {"gpu": "0", "mig-1g.10gb": "56"})], "that MIG cuts"),
        (TOPOLOGY, [gpus({"product": "NVIDIA-L4-SHARED"}, {"gpu": "80"})], "has the label nvidia.com/gpu.count"),
        (TOPOLOGY, [gpus({"count": "8", "replicas": "x"}, {"gpu.shared": "80"})], "no number of GPUs"),
    ],
)
def test_a_fault_of_kueue_is_told(topology: str, nodes: list[dict[str, object]], words: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        kueue(tmp_path, nodes, topology)
    assert any(words in fault.message for fault in refused.value.faults), refused.value.faults
    assert all(fault.position and fault.hint for fault in refused.value.faults), refused.value.faults


def test_a_label_that_no_node_has_is_named_with_what_was_meant(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        kueue(tmp_path, [kube_node("n", "r")], TOPOLOGY.replace("-rack", "-rak"))
    assert [fault.hint for fault in refused.value.faults] == ["did you mean cloud.provider.com/topology-rack?"]


@pytest.mark.parametrize("resource", ["gpu", "gpu.shared"])
@pytest.mark.parametrize(("offered", "number"), [("80", 8), ("70", 7)])
def test_a_gpu_that_is_offered_several_times_over_is_one(
    resource: str, offered: str, number: int, tmp_path: Path
) -> None:
    labels = {"product": "NVIDIA-A100-SXM4-80GB-SHARED", "count": "8", "replicas": "10"}
    (node,) = cluster_of(kueue(tmp_path, [gpus(labels, {resource: offered})]), tmp_path / "out").nodes
    assert (node.gpus, node.accelerator) == (number, "A100-80GB")


def test_levels_are_names_whatever_their_labels_are(tmp_path: Path) -> None:
    topology = TOPOLOGY.replace("topology-block", "topology-1").replace("topology-rack", "null")
    node = kube_node("n", "r")
    labels = cast(dict[str, dict[str, object]], node["metadata"])["labels"]
    labels |= {"cloud.provider.com/topology-1": "b", "cloud.provider.com/null": "r"}
    assert cluster_of(kueue(tmp_path, [node], topology), tmp_path / "out").levels == ("1", "null", "node")
