"""Where nodes sit: every way of saying it, ragged trees, and paths as identities (S1.1, S1.3)."""

from __future__ import annotations

from tests.build.text import JOB, cluster, codes, faults_of, nodes_of, policy, spec_of, workload

PLAIN = "name: g, gpus: 0"


def racks(domains: str, levels: str = "rack node", nodes: str = "count: 5") -> list[str]:
    return [node.domains["rack"] for node in nodes_of(f"{{{PLAIN}, {nodes}, domains: {domains}}}", levels)]


def test_a_size_cuts_in_order_and_the_last_domain_may_be_smaller() -> None:
    assert racks("{rack: {size: 2}}") == ["g-rack0", "g-rack0", "g-rack1", "g-rack1", "g-rack2"]


def test_sizes_may_be_ragged() -> None:
    assert racks("{rack: {sizes: [1, 3, 1]}}") == ["g-rack0", "g-rack1", "g-rack1", "g-rack1", "g-rack2"]


def test_a_name_holds_the_whole_group() -> None:
    assert racks("{rack: {name: r7}}") == ["r7"] * 5


def test_a_level_left_out_is_one_domain_named_after_the_group() -> None:
    assert racks("{}") == ["g"] * 5


def test_ranges_name_domains_in_any_order() -> None:
    nodes = 'names: ["n[1-4]", x]'
    ranges = '{rack: {ranges: {b: ["n[2-3]", x], a: "n1,n4"}}}'
    assert racks(ranges, nodes=nodes) == ["a", "b", "b", "a", "b"]


def test_a_label_of_the_group_or_of_a_node_names_the_domain() -> None:
    text = cluster(
        "{name: g, gpus: 0, count: 3, labels: {row: r1}, domains: {rack: {fromLabel: row}}}", levels="rack node"
    )
    found = spec_of(text + "  nodes: {g-001: {labels: {row: r2}}}").cluster.nodes
    assert [node.domains["rack"] for node in found] == ["r1", "r2", "r1"]


def test_inner_domains_count_over_the_group_and_their_path_tells_the_outer_one() -> None:
    found = racks("{block: {sizes: [4, 1]}, rack: {size: 2}}", levels="block rack node")
    blocks = ["g-block0"] * 4 + ["g-block1"]
    inner = ["g-rack0", "g-rack0", "g-rack1", "g-rack1", "g-rack2"]
    assert found == [f"{block}/{rack}" for block, rack in zip(blocks, inner, strict=True)]


def test_levels_run_from_the_outermost_to_the_node() -> None:
    node = nodes_of(f"{{{PLAIN}, count: 1, domains: {{rack: {{name: r}}}}}}", "zone block rack node")[0]
    assert list(node.domains.items()) == [("zone", "g"), ("block", "g/g"), ("rack", "g/g/r")]


def test_groups_meet_in_a_domain_of_the_same_path() -> None:
    found = nodes_of(
        """
        {name: a, gpus: 0, count: 1, domains: {rack: {name: r1}}}
        {name: b, gpus: 0, count: 1, domains: {rack: {name: r1}}}
        """,
        "rack node",
    )
    assert {node.domains["rack"] for node in found} == {"r1"}


def test_one_name_under_two_parents_is_two_domains() -> None:
    ranges = '{block: {ranges: {b0: "n[1-2]", b1: "n[3-4]"}}, rack: {name: r1}}'
    assert racks(ranges, "block rack node", 'names: ["n[1-4]"]') == ["b0/r1", "b0/r1", "b1/r1", "b1/r1"]


def test_a_range_may_be_named_by_the_path_it_has() -> None:
    ranges = '{block: {size: 2}, rack: {ranges: {g-block0/r: "n[1-2]", g-block1/r: "n[3-4]"}}}'
    found = racks(ranges, "block rack node", 'names: ["n[1-4]"]')
    assert found == ["g-block0/r", "g-block0/r", "g-block1/r", "g-block1/r"]


def test_a_selector_takes_a_path_or_a_last_part_that_one_domain_has() -> None:
    groups = """
        {name: a, gpus: 0, count: 4, domains: {block: {size: 2}, rack: {size: 1}}}
        {name: b, gpus: 0, count: 1, domains: {rack: {name: a-block0}}}
        """
    select = "match: {nodes: {domains: [a-rack2, a-block0/a-rack0, a-block0, b]}}\nrule: {forbid: {}}"
    found = spec_of(cluster(groups, "block rack node"), workload(JOB), policy(select))
    assert found.policies[0].nodes is not None
    assert found.policies[0].nodes.domains == ("a-block0", "a-block0/a-rack0", "a-block1/a-rack2", "b")


def test_domains_of_a_cluster_without_levels_are_refused() -> None:
    assert codes(faults_of(cluster(f"{{{PLAIN}, count: 1, domains: {{rack: {{size: 1}}}}}}"))) == ["DT1306"]


def test_equal_positions_share_one_mapping() -> None:
    found = nodes_of(f"{{{PLAIN}, count: 100, domains: {{rack: {{size: 50}}}}}}", "rack node")
    assert len({id(node.domains) for node in found}) == 2
