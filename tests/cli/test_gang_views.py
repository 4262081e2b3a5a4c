"""Views of gangs: ranks in order with their GPUs, and the domains around them."""

from __future__ import annotations

from dataclasses import replace

from tests.support.plans import plan_for
from tests.support.specs import grouped_gang, make_spec, node, place, request, role, workload

from dovetail.placement import Places
from dovetail.plan import Plan
from dovetail.spec import ReplicaId, Spec
from dovetail_cli.render import gangs


def spec_and_places() -> tuple[Spec, Places]:
    """Return a gang of a leader without GPU and four workers on three nodes of two racks, and a lone job."""
    nodes = [node(f"n{i}", 4, domains={"rack": f"r{i // 2}"}) for i in range(3)]
    roles = [role("lead", 1, request(0)), role("work", 4, request(2))]
    work = [workload("train", type="gang", roles=roles, communicates=True), workload("job", 1, gpus=1)]
    found = {
        ReplicaId("train", "lead", 0): place("n0"),
        ReplicaId("train", "work", 0): place("n0", 0, 1),
        ReplicaId("train", "work", 1): place("n0", 2, 3),
        ReplicaId("train", "work", 2): place("n1", 0, 1),
        ReplicaId("train", "work", 3): place("n2", 1, 3),
        ReplicaId("job", "", 0): place("n2", 0),
    }
    return make_spec(nodes, work, levels=("rack", "node")), found


def words(lines: list[str]) -> list[str]:
    """Return lines with single spaces."""
    return [" ".join(line.split()) for line in lines]


def test_ranks_follow_roles_and_indices_and_gpus_are_counted_through() -> None:
    spec, places = spec_and_places()
    assert words(gangs.lines(plan_for(spec, places), spec, "gang")) == [
        "train 5 replicas, 8 GPUs",
        "rank replica node GPUs GPU ranks in",
        "0 lead#0 n0 - - r0",
        "1-2 work#0-1 n0 0-3 0-3 r0",
        "3 work#2 n1 0-1 4-5 r0",
        "4 work#3 n2 1,3 6-7 r1",
    ]


def test_the_tree_shows_the_domains_of_a_gang() -> None:
    spec, places = spec_and_places()
    assert words(gangs.lines(plan_for(spec, places), spec, "topology")) == [
        "train 5 replicas, 8 GPUs, domains: rack 2, node 3",
        "r0 4 replicas ranks 0-3 n[0-1]",
        "r1 1 replica ranks 4 n2",
    ]


def test_the_tree_tells_the_narrowest_link_and_the_slowest_member() -> None:
    spec, places = spec_and_places()
    nodes = tuple(replace(n, speed=940 if n.name == "n1" else 1000) for n in spec.cluster.nodes)
    cluster = replace(spec.cluster, nodes=nodes, bandwidth={"rack": 50_000, "node": 64_000})
    first = "train 5 replicas, 8 GPUs, domains: rack 2, node 3"
    assert words(gangs.lines(plan_for(spec, places), replace(spec, cluster=cluster), "topology"))[0] == (
        f"{first}, slowest member 0.94 (n1)"  # its racks have no domain in common
    )
    inside = {replica: where for replica, where in places.items() if where.node != "n2"}
    assert words(gangs.lines(plan_for(spec, inside), replace(spec, cluster=cluster), "topology"))[0] == (
        "train 4 replicas, 6 GPUs, domains: rack 1, node 2, narrowest link 50 GB/s (rack), slowest member 0.94 (n1)"
    )


def test_nodes_that_the_documents_lack_are_in_no_domain() -> None:
    spec, places = spec_and_places()
    elsewhere = {replica: where._replace(node=f"old-{where.node}") for replica, where in places.items()}
    plan = replace(plan_for(spec, places), placements=elsewhere)
    assert words(gangs.lines(plan, spec, "topology"))[:2] == [
        "train 5 replicas, 8 GPUs, domains: rack 1, node 3",
        "(none) 5 replicas ranks 0-4 old-n[0-2]",
    ]


def test_gpus_that_the_documents_lack_have_no_links() -> None:
    spec, places = spec_and_places()
    cluster = replace(spec.cluster, bandwidth={"rack": 50_000, "node": 64_000, "island": 600_000})
    plan = replace(
        plan_for(spec, places), placements={ReplicaId("train", "work", i): place("n0", i, 9) for i in (0, 1)}
    )
    told = words(gangs.lines(plan, replace(spec, cluster=cluster), "topology"))
    assert told[0] == "train 2 replicas, 4 GPUs, domains: rack 1, node 1"


def _view(plan: Plan, spec: Spec | None) -> list[str]:
    return [row.removesuffix(" (none)") for row in words(gangs.lines(plan, spec, "gang"))[2:]]


def test_ranks_go_group_by_group() -> None:
    """A launcher gives consecutive ranks to a group, of whichever roles it is."""
    spec, found = grouped_gang()
    plan = plan_for(spec, found)
    assert _view(plan, spec) == [
        "0 lead#0 a 0 0",
        "1-2 work#0-1 a 1-2 1-2",
        "3 lead#1 b 0 3",
        "4-5 work#2-3 b 1-2 4-5",
    ]
    assert [row.split()[0] for row in _view(plan, None)] == ["-"] * len(_view(plan, None))


def test_rows_name_those_who_are_placed_and_gpus_in_the_order_of_ranks() -> None:
    work = workload("g", type="gang", roles=[role("", 3, request(2), least=2)])
    spec = make_spec([node("a", 8)], [replace(work, min_replicas=2)])
    plan = plan_for(spec, {ReplicaId("g", "", 0): place("a", 1, 4), ReplicaId("g", "", 2): place("a", 2, 3)})
    assert _view(plan, spec) == _view(plan, None) == ["0-1 #0,2 a 1,4,2-3 0-3"]


def test_a_plan_without_gangs_says_so() -> None:
    spec, _ = spec_and_places()
    assert words(gangs.lines(plan_for(spec, {}), spec, "gang")) == ["no gang has a place"]
