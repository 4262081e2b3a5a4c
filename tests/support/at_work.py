"""Small clusters of racks that are at work, and what waits there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.support.specs import make_spec, node, place, workload

from dovetail.engine.construction.construct import construct
from dovetail.model.legal import legalise
from dovetail.model.score import debt, hard_policies, sound, view_of
from dovetail.model.state import State, today_state
from dovetail.placement import Place, View
from dovetail.problem import Problem, compile_problem
from dovetail.progress import Stop
from dovetail.rules import context_of
from dovetail.spec import Node, Policy, Spec, Workload

GANG: Mapping[str, Any] = {"type": "gang", "checkpoint_every": 600_000}
LOW: Mapping[str, Any] = {"priority": 100, "preemptible": True}
HIGH: Mapping[str, Any] = {"priority": 900}


def racks(**nodes: int) -> list[Node]:
    """Return nodes of four GPUs, `x=2` for two in rack `x`, `x0` and `x1`."""
    return [node(f"{rack}{i}", 4, domains={"rack": rack}) for rack, n in nodes.items() for i in range(n)]


def running(**rows: str) -> dict[str, Place]:
    """Return places of replicas of one GPU: `w="x0 x0"` has two on `x0`."""
    used: dict[str, int] = {}
    found = {}
    for name, hosts in rows.items():
        for ordinal, host in enumerate(hosts.split()):
            found[f"{name}#{ordinal}"] = place(host, used.get(host, 0))
            used[host] = used.get(host, 0) + 1
    return found


def ones(**counts: int) -> list[Workload]:
    return [workload(name, count, gpus=1) for name, count in counts.items()]


def on(view: View, name: str) -> list[str]:
    """Return the nodes of a workload's replicas, in order."""
    return sorted(where.node for who, where in view.places.items() if who.workload == name)


def planned(nodes: Sequence[Node], work: Sequence[Workload], where: Mapping[str, Place], *more: Policy) -> Spec:
    return make_spec(nodes, work, policies=more, running=where)


Step = Callable[[Problem, State, Stop, Callable[[], bool]], State]


def stepped(spec: Spec, step: Step) -> tuple[dict[str, int], View]:
    """Return the values of the tiers, and the view, of what construction begins and a step of it goes on from."""
    problem = compile_problem(context_of(spec))
    before = legalise(problem, construct(problem, today_state(problem), Stop()))
    state = step(problem, before, Stop(), lambda: False)
    view = view_of(problem, state)
    assert sound(problem, view)
    assert not debt(problem, view, hard_policies(problem))
    return {tier.name: tier.measure(view, problem.context) for tier in problem.tiers}, view
