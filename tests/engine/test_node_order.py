"""Documents tell nodes in any order: the plan is the same, and its certificate shows the same."""

from __future__ import annotations

from dataclasses import replace

from tests.build.text import cluster, document, spec_of, workload

from dovetail.engine.choosing import only_on
from dovetail.engine.ladder import solve
from dovetail.plan import write
from dovetail.problem import compile_problem
from dovetail.progress import Limits
from dovetail.rules import context_of
from dovetail.spec import Spec
from dovetail.verify import verify

GROUPS = (
    "{name: b, count: 2, accelerator: H100-80GB, gpus: 4, islands: [[0, 1], [2, 3]], domains: {rack: {size: 2}}}",
    "{name: a, count: 3, accelerator: A100-80GB, gpus: 2, domains: {rack: {size: 2}}}",
)
WORK = (
    workload("type: gang\nreplicas: 3\nrequest: {gpus: 2, cpu: 1}\ntopology: {within: rack}", "g"),
    workload("type: job\nreplicas: 5\nrequest: {gpus: 1, cpu: 1}", "j"),
    document("Policy", "even", "rule: {spread: {over: rack, maxSkew: 1}}\nenforcement: {soft: {weight: 1}}"),
)


def ordered(*groups: str) -> Spec:
    return spec_of(cluster("\n".join(groups), "rack node"), *WORK)


def test_the_order_of_groups_and_islands_changes_nothing() -> None:
    spec = ordered(*GROUPS)
    other = ordered(GROUPS[1], GROUPS[0].replace("[[0, 1], [2, 3]]", "[[2, 3], [0, 1]]"))
    assert spec.cluster.nodes != other.cluster.nodes
    plans = [solve(each, Limits(work=5)) for each in (spec, other)]
    assert write(plans[0]) == write(plans[1])
    assert verify(other, plans[0]).ok


def test_nodes_are_chosen_by_name_where_some_are_down() -> None:
    spec = ordered(*GROUPS)
    down = tuple(replace(node, down=node.name == "a-000") for node in spec.cluster.nodes)
    problem = compile_problem(context_of(replace(spec, cluster=replace(spec.cluster, nodes=down))))
    only = only_on(problem, {1})
    assert [node.name for node in only.nodes if not node.cordoned] == [problem.nodes[1].name]
