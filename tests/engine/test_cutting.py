"""GPUs of alike nodes are cut all at once beside work that stands or falls together."""

from __future__ import annotations

from dataclasses import replace

from tests.support.mig_specs import card, mig_request
from tests.support.specs import make_spec, node, workload

from dovetail.engine.construction.construct import construct
from dovetail.engine.construction.cutting import Cutting
from dovetail.problem import compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Role, Topology

CARD = "A100-80GB"


def test_room_is_left_where_a_gang_is_meant_to_be() -> None:
    """Six single GPUs and six instances are dealt out to one node, as the other one is for a gang within a node."""
    asked = mig_request(CARD, "3g.40gb", cpu=1000)
    work = [
        workload("gang", 2, type="gang", gpus=4, cpu=1000, priority=900, topology=Topology(within="node")),
        workload("single", 5, gpus=1, cpu=1000, priority=900),
        workload("slice", priority=900, roles=[Role("", 6, asked, asked.mig_milli)]),
    ]
    nodes = [node(f"n{i}", 8, cpu=64_000, accelerator=CARD) for i in range(2)]
    spec = make_spec(nodes, work)
    spec = replace(spec, accelerators={CARD: card(CARD)}, cluster=replace(spec.cluster, reconfiguration="gpu"))
    problem = compile_problem(context_of(spec))
    cut = Cutting(problem, Stop()).exactly()
    gang = problem.shapes_of_workload["gang"][0]
    assert not cut.admitted()[gang]
    assert cut.admitted().total() == 11
    assert construct(problem, cut, Stop()).admitted() == {s.index: s.demand for s in problem.shapes}
