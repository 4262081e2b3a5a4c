"""Node groups become nodes: names, capacities, overrides (S1.3)."""

from __future__ import annotations

from tests.build.text import SMALL, cluster, codes, faults_of, nodes_of, spec_of


def test_counted_nodes_are_numbered_from_000_and_keep_their_names_as_the_group_grows() -> None:
    few = [node.name for node in nodes_of("{name: g, gpus: 0, count: 2}")]
    many = [node.name for node in nodes_of("{name: g, gpus: 0, count: 1002}")]
    assert few == ["g-000", "g-001"]
    assert many[:2] == few
    assert many[-3:] == ["g-999", "g-1000", "g-1001"]


def test_named_nodes_keep_the_order_of_the_document() -> None:
    found = nodes_of('{name: g, gpus: 0, names: ["n[09-10]", ip-10-0-3-7.ec2.internal, "a,b"]}')
    assert [node.name for node in found] == ["n09", "n10", "ip-10-0-3-7.ec2.internal", "a", "b"]


def test_offered_memory_rounds_down_and_reserved_memory_up() -> None:
    node = nodes_of("{name: g, gpus: 0, count: 1, cpu: 4, memory: 10.9Mi, reserved: {cpu: 0.5, memory: 1.1Mi}}")[0]
    assert (node.cpu, node.memory) == (3_500, 8)


def test_without_levels_the_node_is_the_only_one() -> None:
    found = spec_of(SMALL).cluster
    assert found.levels == ("node",)
    assert found.nodes[0].domains == {}


def test_the_template_of_a_group_knows_only_the_domains_that_all_its_nodes_share() -> None:
    text = cluster("{name: g, gpus: 0, count: 4, domains: {rack: {size: 2}}}", "block rack node")
    assert spec_of(text).cluster.groups[0].template.domains == {"block": "g"}


def test_accelerators_are_known_by_alias_and_kept_by_id() -> None:
    found = spec_of(cluster("{name: g, gpus: 1, count: 1, accelerator: NVIDIA-H100-80GB-HBM3}"))
    assert found.cluster.nodes[0].accelerator == "H100-80GB"
    assert list(found.accelerators) == ["H100-80GB"]


def test_an_accelerator_document_replaces_the_entry_of_the_catalogue() -> None:
    own = "apiVersion: dovetail/v1alpha1\nkind: Accelerator\nmetadata: {name: H100-80GB}\nspec: {memory: 79Gi}\n"
    found = spec_of(SMALL, own).accelerators["H100-80GB"]
    assert (found.memory, found.aliases) == (80_896, ())


def test_an_accelerator_document_may_not_take_the_name_of_another_one() -> None:
    own = "apiVersion: dovetail/v1alpha1\nkind: Accelerator\nmetadata: {name: A30}\nspec: {memory: 24Gi}\n"
    faults = faults_of(SMALL, own)
    assert codes(faults) == ["DT1305"]
    assert faults[0].hint == "name it 'A30-24GB' to replace that one"


def test_a_node_of_a_mixed_cluster_without_gpu_has_no_accelerator() -> None:
    node = nodes_of("{name: g, gpus: 0, count: 1}")[0]
    assert (node.accelerator, node.healthy_gpus()) == (None, ())


def test_without_a_cluster_there_is_no_spec() -> None:
    own = "apiVersion: dovetail/v1alpha1\nkind: Accelerator\nmetadata: {name: mine}\nspec: {memory: 79Gi}\n"
    faults = faults_of(own)
    assert codes(faults) == ["DT1316"]
    assert faults[0].position is None


def test_without_a_project_the_cluster_gives_its_name() -> None:
    assert spec_of(SMALL).name == "c"
