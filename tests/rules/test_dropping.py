"""A policy that no document names is dropped with what it stands for, and then costs what planning shows."""

from __future__ import annotations

from dataclasses import replace

from tests.support.specs import make_spec, node, policy, workload

from dovetail.engine import solve
from dovetail.policylist import priced
from dovetail.rules import policy_of, strategy_of, without_policy
from dovetail.rules.quota import Quota
from dovetail.spec import Group, NodeGroup, Spec, Topology
from dovetail.whatif import Drop


def scattered(topology: Topology) -> Spec:
    """Return two racks with room for a gang of three over both of them."""
    nodes = [node(f"n{index}", 2, domains={"rack": f"r{index // 2}"}) for index in range(4)]
    work = workload("w", 3, gpus=2, type="gang", topology=topology)
    demanded = policy_of([work])
    assert demanded is not None
    return make_spec(nodes, [work], [demanded, policy("ample", Quota((("gpus", 9000),)))])


def test_what_workloads_demand_goes_with_the_policy_and_what_they_prefer_stays() -> None:
    spec = scattered(Topology("rack", prefer="rack", groups=(Group("node", 1),)))
    found = without_policy(spec, "workload-topology")
    assert [each.name for each in found.policies] == ["ample"]
    assert found.by_id["w"].topology == Topology(prefer="rack")
    assert without_policy(spec, "ample").workloads == spec.workloads
    assert without_policy(spec, "none").policies == spec.policies
    assert Drop(policy="workload-topology").applied(spec) == found


def test_its_price_is_what_a_plan_without_it_is_worth() -> None:
    spec = scattered(Topology("rack"))
    found = priced(spec, ["workload-topology", "ample"], lambda asked, hint: solve(asked, hint=hint))
    prices = {
        each.policy: [price.range.low for price in each.prices if price.name == "admitted[0]"]
        for each in found.priced
    }
    assert prices == {"workload-topology": [6000], "ample": [0]}


def test_nodes_of_one_profile_are_of_several_without_their_policy() -> None:
    single = [node("n", 2, mig_strategy="single", group="g"), node("m", 2)]
    demanded = strategy_of(single)
    assert demanded is not None
    spec = make_spec(single, [], [demanded])
    group = NodeGroup("g", replace(single[0], name="g"), ("n",), True)
    spec = replace(spec, cluster=replace(spec.cluster, groups=(group,)))
    found = without_policy(spec, "mig-strategy")
    assert {each.mig_strategy for each in (*found.cluster.nodes, found.cluster.groups[0].template)} == {"mixed"}
    assert found.policies == ()
