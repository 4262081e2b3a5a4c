"""Plans of which a recovery restarts what cannot restart there, and which tell the truth of everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.support.mig_specs import card, mig_request
from tests.support.plans import plan_for
from tests.support.specs import make_spec, node, place, places, policy, replica, request, role, workload

from dovetail.mig import Instance
from dovetail.placement import Place
from dovetail.plan import Plan
from dovetail.rules import policy_of
from dovetail.rules.modes import Modes
from dovetail.rules.survive import Survive
from dovetail.spec import Current, EqualParts, Group, Node, Policy, Spec, Topology, Workload

A100 = "A100-40GB"


def _told(
    nodes: Sequence[Node], work: Sequence[Workload], rows: dict[str, Place], lie: Place, *others: Policy
) -> tuple[Spec, Plan]:
    """Return a plan that has the first replica on node `a` restart elsewhere, though none that it has can."""
    held = policy_of(work)
    policies = [policy("lose", Survive(of="node"), enforcement="audit"), *([] if held is None else [held]), *others]
    spec = make_spec(nodes, work, policies, levels=("rack", "node"))
    plan = plan_for(spec, places(rows))
    assert "a" not in plan.recovery.get("lose", {})
    more = {"a": places({next(iter(rows)): lie})}
    return spec, replace(plan, recovery={"lose": {**plan.recovery.get("lose", {}), **more}})


def _in(rack: str, name: str, accelerator: str = "H100-80GB") -> Node:
    return node(name, 1, accelerator=accelerator, domains={"rack": rack})


def out_of_its_group() -> tuple[Spec, Plan]:
    """Return a plan of which half a group restarts in another rack than where the rest of it is."""
    work = workload("w", 2, type="service", gpus=1, topology=Topology(groups=(Group("rack", of=2),)))
    nodes = [_in("r0", "a"), _in("r0", "b"), _in("r1", "c")]
    return _told(nodes, [work], {"w#0": place("a", 0), "w#1": place("b", 0)}, place("c", 0))


def on_another_accelerator() -> tuple[Spec, Plan]:
    """Return a plan of which a replica of a gang restarts on another accelerator than the rest of its role."""
    roles = [role("lead", 1, request(1)), role("work", 2, request(1))]
    gang = replace(workload("g", type="gang", roles=roles), mix="perRole")
    nodes = [_in("r0", "a"), _in("r0", "b"), _in("r0", "c", A100), _in("r0", "d", A100)]
    rows = {"g.work#0": place("a", 0), "g.work#1": place("b", 0), "g.lead#0": place("c", 0)}
    return _told(nodes, [gang], rows, place("d", 0))


def across_islands() -> tuple[Spec, Plan]:
    """Return a plan of which a replica restarts on GPUs of two islands."""
    parted = node("b", 4, islands=((0, 1), (2, 3)), domains={"rack": "r0"})
    nodes = [node("a", 2, domains={"rack": "r0"}), parted]
    work = [workload("v", 2, gpus=1), workload("w", 1, gpus=2)]
    rows = {"w#0": place("a", 0, 1), "v#0": place("b", 0), "v#1": place("b", 2)}
    return _told(nodes, work, rows, place("b", 1, 3))


def in_a_closed_mode() -> tuple[Spec, Plan]:
    """Return a plan of which a share restarts where clients take turns, which a hard policy rules out."""
    whole = node("a", 1, mechanism="devicePlugin", sharing=EqualParts(), domains={"rack": "r0"})
    nodes = [whole, node("b", 1, domains={"rack": "r0"})]
    no_turns = policy("no-turns", Modes(("whole", "mig", "mps")))
    return _told(nodes, [workload("w", 1, share=250)], {"w#0": place("a", 0)}, place("b", 0), no_turns)


def on_a_failed_gpu() -> tuple[Spec, Plan]:
    """Return a plan of which a replica restarts on an idle instance of a GPU that has failed."""
    a100 = "A100-80GB"
    nodes = [_in("r0", "a", a100), replace(_in("r0", "b", a100), gpus=2, failed_gpus=frozenset({0}))]
    one = workload("w", roles=[role("", 1, mig_request(a100, "1g.10gb"))])
    spec = make_spec(nodes, [one], [policy("lose", Survive(of="node"), enforcement="audit")])
    layout = (Instance("1g.10gb", 0),)
    spec = replace(spec, accelerators={a100: card(a100)}, current=Current(gpus={"a/0": layout, "b/0": layout}))
    plan = plan_for(spec, {replica("w#0"): Place("a", (0,), "1g.10gb@0")})
    assert not plan.recovery
    return spec, replace(plan, recovery={"lose": {"a": {replica("w#0"): Place("b", (0,), "1g.10gb@0")}}})
